package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestGitMendsWhatDoesNotRun takes from a cluster what its pods need: their nodes, and the
// priority class without which Kubernetes creates no pod. The data is whole, so that the
// commit that mends it is carried out without a quorum, and nothing is given up (296).
func TestGitMendsWhatDoesNotRun(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "remedy")
	label, class := "e2e.quorate.dev/"+w.namespace, w.namespace
	w.labelNodes(t.Context(), label, "yes")
	t.Cleanup(func() { w.labelNodes(context.Background(), label, "") })
	w.makePriority(class)
	t.Cleanup(func() { w.removePriority(context.Background(), class) })
	picky := spec{version: "3.6.16", replicas: 3, more: "  podTemplate:\n    spec:\n      nodeSelector: {" + label + ": \"yes\"}\n"}
	ranked := spec{version: "3.6.16", replicas: 3, more: "  podTemplate:\n    spec:\n      priorityClassName: " + class + "\n"}
	plain := spec{version: "3.6.16", replicas: 3}

	w.create(picky)
	history, id, members, claims := w.recordHistory("history/"), w.record().ClusterID, w.record().Members, w.claimUIDs()

	// No member has a node left.
	w.labelNodes(t.Context(), label, "")
	w.deleteAllPods()
	hold := w.awaitHold("Unhealthy", rollLimit, "there is no quorum", "with their volumes whole", "not scheduled", "commit what lets them start", "neither delete nor recover anything")
	t.Logf("quorate says: %s", hold.Hold())
	w.expectNothingDone(w.mark, members)
	w.apply("Take any node", plain)
	w.expectServing(3)

	// One pod is refused, the one that a roll begins with: a commit gives it what Kubernetes
	// admits, and the roll goes on.
	w.apply("Rank the pods", ranked)
	w.removePriority(t.Context(), class)
	w.mark = w.daemon.Log.Mark()
	w.deletePod("orders-2")
	hold = w.awaitHold("Unhealthy", rollLimit, "the pod of orders-2 cannot be created", class)
	t.Logf("quorate says: %s", hold.Hold())
	w.expectNothingDone(w.mark, members)
	w.apply("Rank them no more", plain)
	w.expectServing(3)

	// All of them are.
	w.makePriority(class)
	w.apply("Rank the pods again", ranked)
	w.removePriority(t.Context(), class)
	w.mark = w.daemon.Log.Mark()
	w.deleteAllPods()
	hold = w.awaitHold("Unhealthy", rollLimit, "there is no quorum", class, "commit what lets them start")
	t.Logf("quorate says: %s", hold.Hold())
	w.apply("Rank them no more, again", plain)

	w.expectVersion(3, plain.version)
	w.expectServing(3)
	w.expectRecord(3)
	if now := w.record(); now.ClusterID != id || len(now.Recovered) > 0 {
		t.Errorf("it is another cluster: %+v", now)
	}
	for claim, uid := range w.claimUIDs() {
		if claims[claim] != uid {
			t.Errorf("claim %s is another one", claim)
		}
	}
	w.checkHistory(history)
	w.expectProgress(history)
}

// labelNodes gives each node a label of the test's own, or takes it away.
func (w *world) labelNodes(ctx context.Context, label, value string) {
	w.Helper()
	nodes, err := w.cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	w.must(err)
	labels := map[string]any{label: nil}
	if value != "" {
		labels[label] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	w.must(err)
	for _, n := range nodes.Items {
		if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoSchedule }) {
			continue
		}
		_, err := w.cluster.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		w.must(err)
	}
}

// makePriority makes a priority class.
func (w *world) makePriority(class string) {
	w.Helper()
	classes := w.cluster.Client.SchedulingV1().PriorityClasses()
	_, err := classes.Create(w.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: 10}, metav1.CreateOptions{})
	w.must(err)
}

// removePriority deletes a priority class, if it is there.
func (w *world) removePriority(ctx context.Context, class string) {
	w.Helper()
	if err := w.cluster.Client.SchedulingV1().PriorityClasses().Delete(ctx, class, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
}
