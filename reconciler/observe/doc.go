// Package observe makes views of clusters: what the planner gets of Kubernetes and
// of etcd, and the live objects behind it, which an executor needs.
//
// All that is read is gathered first (gather.go), and then described without asking
// any server (describe.go): a view of fresh data is described by the same code as the one
// before it. A view decides nothing.
package observe
