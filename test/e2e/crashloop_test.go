package e2e

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCrashLoops keeps a member from starting in ways that lose no data: that is a
// matter for a person, and no reason to replace it. Clients write meanwhile, and
// the member comes back when the cause is gone.
func TestCrashLoops(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "crashloop")
	want := spec{version: "3.6.16", replicas: 3, backup: "Required", more: soonRepaired}
	w.create(want)
	history := w.recordHistory("history/")
	for _, tc := range []struct {
		name, member string
		// breaks keeps the member from starting until the function that it returns
		// is called.
		breaks func(w *world, member string) (fix func())
		says   []string
	}{
		{"82: a database that cannot be opened", "orders-2", (*world).noDatabase, []string{"orders-2", "failed to open database", "orders-2 comes back once the cause is fixed", "delete its pod and its volume claim data-orders-2"}},
		{"92: a full disk", "orders-1", (*world).fillDisk, []string{"orders-1", "no space left on device"}},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T, v.mark = t, w.daemon.Log.Mark()
			members, claims := v.record().Members, v.claimUIDs()
			fix := tc.breaks(&v, tc.member)
			hold := v.awaitHold("Unhealthy", rollLimit, tc.says...)
			t.Logf("quorate says: %s", hold.Hold())
			v.expectNothingDone(v.mark, members)
			fix()
			v.awaitIdle(want.version, rollLimit)
			v.expectNothingDone(v.mark, members)
			for claim, uid := range v.claimUIDs() {
				if claims[claim] != uid {
					t.Errorf("claim %s is another one", claim)
				}
			}
			v.expectVersion(3, want.version)
			v.expectRecord(3)
			v.checkHistory(history)
			v.expectProgress(history)
		})
		if !ok {
			return // the next cause would meet another cluster
		}
	}
}

func (w *world) noDatabase(member string) (fix func()) {
	w.Helper()
	_, fix = w.blockDatabase(member)
	return fix
}

// fillDisk leaves no room on a member's volume, and restarts it.
func (w *world) fillDisk(member string) (fix func()) {
	w.Helper()
	sandbox := w.cluster.Sandbox
	if sandbox == nil {
		w.Skip("only in the sandbox can a volume be filled")
	}
	w.must(sandbox.FillVolume(w.Context(), w.namespace, "data-"+member))
	w.deletePod(member)
	return func() {
		w.Helper()
		w.must(sandbox.DrainVolume(w.Context(), w.namespace, "data-"+member))
	}
}

// TestOutOfMemory gives members less memory than etcd needs: the roll stops at the
// first, with the reason, and more memory fixes it (81).
func TestOutOfMemory(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "memory")
	limited := func(limit string) string {
		return "  etcd:\n    resources:\n      limits: {memory: " + limit + "}\n"
	}
	want := spec{version: "3.6.16", replicas: 3, more: limited("512Mi")}
	w.create(want)
	history, pods, members, before := w.recordHistory("history/"), w.watchPods(), w.record().Members, w.uids()

	// Sometimes etcd gets by for a moment, and a soak is there to find out.
	want.more, want.soak = limited("12Mi"), "30s"
	w.commit("Give it too little memory", want)
	hold := w.awaitHold("Stopped", rollLimit, "the roll stopped at orders-2", "OOMKilled", "12Mi")
	t.Logf("quorate says: %s", hold.Hold())
	w.expectNothingDone(w.mark, members)
	w.expectRoll(pods, "orders-2")
	w.expectNoOther(before, w.uids(), "orders-2")

	want.more, want.soak = limited("256Mi"), "0s"
	w.commit("Give it enough", want)
	w.awaitDone(changeLimit)
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	w.eventually("no container to be out of memory", holdLimit, func(ctx context.Context) (bool, error) {
		now, err := w.cluster.Client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: clusterSelector})
		if err != nil {
			return false, err
		}
		for _, p := range now.Items {
			if p.Spec.Containers[0].Resources.Limits.Memory().String() != "256Mi" {
				return false, nil
			}
		}
		return true, nil
	})
	w.checkHistory(history)
	w.expectProgress(history)
}
