package reconcilertest

import (
	"context"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/report"
)

// Process ends quorate, and lets it run again as the daemon runs it, in another process that
// reaches the API server and the members by other ways. Lists and watches that it cannot
// begin with are an error.
func (w *World) Process(kube kubernetes.Interface, members reconciler.Members) error {
	was := w.R
	w.end()
	ctx, stop := context.WithCancel(w.Context())
	w.members = members
	w.R = reconciler.New(kube, members, w.events, report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(w.Log, nil)), was.Options)
	w.Sign(was.Executor.Stores.Sign)
	r, ended := w.R, make(chan struct{})
	w.end = func() {
		stop()
		<-ended
		r.Close()
	}
	err := r.Start(ctx)
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	return err
}

// Stop ends quorate, until Process lets it run again.
func (w *World) Stop() {
	w.end()
	w.end = func() {}
}

// MemberID is the ID that etcd has given the member last.
func (e *FakeEtcd) MemberID(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.id(name)
}

// Listed are the members in etcd's list, and the learners among them.
func (e *FakeEtcd) Listed() (members []string, learners map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	learners = map[string]bool{}
	for name := range e.Learners {
		learners[name] = true
	}
	return append([]string(nil), e.Members...), learners
}

// Elect finds another leader where the one before is down, or no member any more.
func (e *FakeEtcd) Elect(up func(member string) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.Members, e.Leader) && up(e.Leader) {
		return
	}
	for _, name := range e.Members {
		if !e.Learners[name] && up(name) {
			e.Leader = name
			return
		}
	}
}

// claim makes the claim of a member's volume, where there is none yet.
func (w *World) claim(pod *corev1.Pod, labels map[string]string) {
	w.Helper()
	name := "data-" + pod.Name
	if _, err := w.API.Tracker().Get(ClaimsResource(), pod.Namespace, name); err == nil {
		return
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name, claim.Namespace, claim.Labels = name, pod.Namespace, labels
	w.Put(ClaimsResource(), claim)
}
