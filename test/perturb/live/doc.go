// Package live disturbs one write of quorate's at a time before a real API server, and wants
// the world to end as it does undisturbed, as package perturb does before client-go's fake.
//
// The daemon's loop is the real one, and so are the API server, its etcd, and the controllers
// of StatefulSets and disruption budgets; kubelets and members are played. Each process of
// quorate reaches the API server by a proxy of its own, which disturbs the write. No root and
// no node is needed. Each disturbance has a name, by which it is tried again:
//
//	go test ./test/perturb/live -run 'Write/^upgrade$/PATCH-statefulsets-orders-3/killed-after$' -args -log
//
// A run without -all tries one disturbance in forty-eight, always the same. What a whole one comes
// to is in docs/perturbations.md.
package live
