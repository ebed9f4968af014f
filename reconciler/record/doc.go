// Package record is what outlives the process about one cluster: the ConfigMap that
// quorate writes beside it, its parts, and how it is stored. It holds what cannot be
// seen in Kubernetes or asked of etcd: which the members are, which change of them is
// under way, what a restore or a recovery has begun. The guard reads it before each
// start of a member, and older and newer quorates read what this one wrote: the names of
// its fields never change.
//
// What a record means for the next step is for the planner to say.
package record
