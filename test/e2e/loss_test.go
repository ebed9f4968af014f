package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// TestLostVolume takes a member's volume away. It must not start on an empty
// one under its old identity, and it is not replaced before its time of grace is
// over: the others keep the quorum.
func TestLostVolume(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "volume")
	want := spec{version: "3.5.35", replicas: 3}
	w.create(want)
	writer, before := w.load(), w.uids()

	// 77: the claim and its pod.
	background := metav1.DeleteOptions{}
	w.must(w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Delete(t.Context(), "data-orders-2", background))
	w.must(w.cluster.Client.CoreV1().Pods(w.namespace).Delete(t.Context(), "orders-2", background))

	// 78: the guard refuses.
	w.awaitGuarded("orders-2")
	// 87: quorate says so and does nothing meanwhile, not even an upgrade.
	w.mark = 0
	w.awaitHold("Waiting", holdLimit, "orders-2 has lost its data", "it is replaced", "unless it comes back")
	want.version = "3.6.16"
	w.commit("Upgrade", want)
	time.Sleep(2 * quiet)
	if hold := w.daemon.Log.LastHold(); !strings.HasPrefix(hold, "Waiting hold: orders-2 has lost its data") {
		t.Errorf("the last hold is not that orders-2 has lost its data: %s", hold)
	}
	says := lab.Hold("orders-2 has lost its data", "it is replaced")
	if n := len(w.lines(0, says)); n > 3 { // as often as something else was said in between
		t.Errorf("the same was said %d times", n)
	}
	if n := w.events()["StartRoll"] + w.events()["RestartMember"] + w.events()["BeginLeave"]; n > 0 {
		t.Error("quorate acted in spite of a lost member")
	}
	after := w.uids()
	for _, other := range []string{"orders-0", "orders-1"} {
		if before[other] != after[other] {
			t.Errorf("%s was replaced", other)
		}
	}
	if r := w.record(); len(r.Members) != 3 {
		t.Errorf("the record has members %v", r.Members)
	}
	w.finishLoad(writer)
}

// guardSaid is what the guard of a pod said last.
func (w *world) guardSaid(ctx context.Context, pod string) string {
	w.Helper()
	p, err := w.cluster.Client.CoreV1().Pods(w.namespace).Get(ctx, pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	w.must(err)
	for _, s := range p.Status.InitContainerStatuses {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if s.Name == naming.ContainerGuard && t != nil {
				return t.Message
			}
		}
	}
	return ""
}

// awaitGuarded waits until each of some pods is there again and does not start on its empty volume.
func (w *world) awaitGuarded(members ...string) {
	w.Helper()
	for _, member := range members {
		w.eventually("the guard to refuse "+member, rollLimit, func(ctx context.Context) (bool, error) {
			return strings.Contains(w.guardSaid(ctx, member), "is empty although this member had joined"), nil
		})
	}
}

// TestUnreachableMember cuts a pod off the network before an upgrade: the gate
// holds until it is back.
func TestUnreachableMember(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "cut")
	sandbox := w.cluster.Sandbox
	if sandbox == nil {
		t.Skip("only in the sandbox can a pod be cut off")
	}
	want := spec{version: "3.5.21", replicas: 3}
	w.create(want)
	before := w.uids()
	w.must(w.cluster.MoveLeader(t.Context(), w.namespace, name, "orders-0"))
	w.must(sandbox.CutPod(t.Context(), w.namespace, "orders-1"))

	// 57, 40: one member that is not the first to go is unhealthy.
	want.version = "3.5.35"
	w.commit("Upgrade", want)
	w.awaitHold("Unhealthy", holdLimit, "orders-1", "nothing is restarted")
	time.Sleep(quiet)
	for pod, uid := range w.uids() {
		if before[pod] != uid {
			t.Errorf("%s was replaced", pod)
		}
	}
	says := lab.Hold("orders-2 has lost its data", "it is replaced")
	if n := len(w.lines(0, says)); n > 3 { // as often as something else was said in between
		t.Errorf("the same was said %d times", n)
	}
	if n := w.events()["StartRoll"]; n > 0 {
		t.Error("the roll was started")
	}
	w.must(sandbox.HealPod(t.Context(), w.namespace, "orders-1"))
	w.awaitIdle(want.version, rollLimit)
	w.expectVersion(3, want.version)
}
