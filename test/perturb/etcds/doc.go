// Package etcds disturbs one call of quorate's to real members at a time, and wants the
// cluster to end as it does undisturbed: the same objects and members, no member restarted
// more often, no two down at once, and a history of clients that is linearizable.
//
// The members are etcd processes on loopback, whose volumes the guard examines; the
// reconciler and its client are the real ones, and Kubernetes is that of package
// reconcilertest, whose StatefulSet starts and stops the processes. quorate reaches each
// member through a door that disturbs the call; members and clients reach each other without
// one. Each disturbance has a name, by which it is tried again:
//
//	go test ./test/perturb/etcds -run 'Call/^roll$/MoveLeader-1/hangs$' -args -log
//
// A run without -all tries a few of them, always the same. What a whole one comes to is in
// docs/perturbations.md.
package etcds
