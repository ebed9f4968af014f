// Package perturb disturbs one request of quorate's at a time, and wants the world to end
// as it does undisturbed: the same objects but for UIDs and times, the same members, no
// more restarts, and no invariant broken on the way.
//
// The reconciler, its executor, queues, caches and status writer are the real ones, as the
// daemon runs them, and are killed and started again. Kubernetes and etcd are those of
// package reconcilertest, whose time runs faster. Each disturbance has a name, by which it
// is tried again:
//
//	go test ./test/perturb -run 'Write/^upgrade$/patch-statefulsets-orders-3/killed-after$' -args -log
//
// A run without -all tries one disturbance in forty, always the same. What a whole one comes
// to is in docs/perturbations.md.
package perturb
