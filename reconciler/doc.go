// Package reconciler is the shell around the planner: it observes clusters,
// asks plan.Make what to do, and carries out one action at a time.
//
// # One pass
//
//	observe   caches for Kubernetes, the members themselves for etcd
//	plan      plan.Make; where it asks for confirmation, look again and ask again
//	again     read what matters past the caches, decide again: only the very same
//	          decision is carried out
//	execute   one idempotent method per action
//	report    the step or the hold, as log line, Event and metrics
//
// Then the cluster's key goes back into the queue. Nothing that decides is kept
// in the process: it may be killed between any two instructions.
//
// # Files
//
//	reconciler.go   the queue and the pass
//	cache.go        watches, and what they hold of one cluster
//	observe*.go     liveCluster → plan.Observed
//	ownership.go    what is in the way and not quorate's
//	etcd.go         the members: health, leadership, snapshots
//	execute.go      plan.Action → API calls
//	manifests*.go   rendering; drift.go: comparing by field ownership
//	record.go       what outlives the process; package guard reads it in a pod
//	backup*.go      snapshots in object stores
//	tls*.go         certificates
//	metrics.go      metrics; report.go: log lines and Events
package reconciler
