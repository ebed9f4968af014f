package reconcilertest

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"

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
	if set := w.Set(); set != nil && len(set.Spec.VolumeClaimTemplates) > 0 {
		claim.Spec = set.Spec.VolumeClaimTemplates[0].Spec
	}
	w.Put(ClaimsResource(), claim)
}

// ProtectClaims has claims that are deleted wait for the pods that use them, as Kubernetes does.
func (w *World) ProtectClaims() {
	w.API.PrependReactor("delete", "persistentvolumeclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		remove, _ := a.(clienttesting.DeleteActionImpl)
		claim, ok := w.API.find(a, remove.GetName()).(*corev1.PersistentVolumeClaim)
		if !ok || w.Pod(strings.TrimPrefix(claim.Name, "data-")) == nil {
			return false, nil, nil
		}
		if _, _, err := w.API.remove(a); err != nil {
			return true, nil, err
		}
		now := metav1.Now()
		claim.DeletionTimestamp, claim.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
		w.Put(ClaimsResource(), claim)
		return true, nil, nil
	})
	w.API.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		remove, _ := a.(clienttesting.DeleteActionImpl)
		if stopped, _, err := w.API.remove(a); stopped {
			return true, nil, err
		}
		w.release(remove.GetName())
		return false, nil, nil
	})
}

// release lets the claim of a pod that goes go with it, where it was deleted.
func (w *World) release(pod string) {
	o, err := w.API.Tracker().Get(ClaimsResource(), "shop", "data-"+pod)
	if err != nil {
		return
	}
	if claim, ok := o.(*corev1.PersistentVolumeClaim); ok && claim.DeletionTimestamp != nil {
		if err := w.API.Tracker().Delete(ClaimsResource(), "shop", claim.Name); err != nil {
			w.Fatal(err)
		}
	}
}
