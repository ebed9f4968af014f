package statuses_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
)

// board is a source, a writer and an API server, with a clock that stands.
type board struct {
	*testing.T
	api      *reconcilertest.FakeAPI
	w        *statuses.Writer
	now      time.Time
	list     []schema.Status
	partial  bool
	revision uint64
	// shards is how many shards were taken.
	shards    uint64
	elsewhere bool
	lease     error
	// told counts the calls of Written.
	told int
	log  strings.Builder
}

func (b *board) Statuses() ([]schema.Status, bool) { return b.list, !b.partial }
func (b *board) StatusRevision() uint64            { return b.revision }
func (b *board) Elsewhere(schema.Status) bool      { return b.elsewhere }
func (b *board) Shards() uint64                    { return b.shards }
func (b *board) Written()                          { b.told++ }
func (b *board) MarkedSet(namespace, name string) (*appsv1.StatefulSet, bool) {
	set, err := b.api.AppsV1().StatefulSets(namespace).Get(b.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, false
	}
	return set, true
}

func newBoard(t *testing.T) *board {
	b := &board{T: t, api: reconcilertest.NewFakeAPI(), now: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)}
	b.restart()
	return b
}

// restart begins with a writer that knows nothing.
func (b *board) restart() {
	b.w = &statuses.Writer{
		Kube: b.api, By: statuses.ByOf(state.Owner{Source: "https://git@main:.", Instance: "default"}), Lease: func() error { return b.lease },
		Now: func() time.Time { return b.now }, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
	}
}

// show changes what there is to write.
func (b *board) show(list ...schema.Status) {
	b.list = list
	b.revision++
}

// rounds makes rounds for so long, and returns how many requests of each verb there were.
func (b *board) rounds(long time.Duration) map[string]int {
	b.Helper()
	b.api.ClearActions()
	for end := b.now.Add(long); b.now.Before(end); b.now = b.now.Add(statuses.Every) {
		if err := b.w.Round(b.Context(), b); err != nil {
			b.Fatal(err)
		}
	}
	count := map[string]int{}
	for _, a := range b.api.Actions() {
		if a.GetVerb() != "get" || a.GetResource().Resource != "statefulsets" {
			count[a.GetVerb()]++
		}
	}
	return count
}

// written is what stands in the ConfigMap of a cluster, nil for nothing.
func (b *board) written(name string) *corev1.ConfigMap {
	cm, err := b.api.CoreV1().ConfigMaps("shop").Get(b.Context(), naming.Status(schema.KindCluster, name), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return cm
}

func clusterStatus(name string, phase schema.Phase, reason, message string) schema.Status {
	s := schema.NewStatus(schema.KindCluster, "shop", name, phase, reason, message)
	s.Status.Commit = "0a1b2c3"
	s.Status.Cluster = &schema.ClusterStatus{Version: schema.VersionStatus{Wanted: "3.6.16"}, Plan: []schema.StepStatus{}}
	return s
}

func idle(name string) schema.Status {
	return clusterStatus(name, schema.PhaseReady, "Idle", "the cluster is what Git says")
}

// 230.
func TestAStatusIsWrittenWhenItChangesAndNeverAtRest(t *testing.T) {
	b := newBoard(t)
	b.show(idle("orders"), schema.NewStatus(schema.KindBackupSchedule, "shop", "orders", schema.PhaseReady, "BackupTaken", "the last backup is good"))
	if got := b.rounds(time.Minute); got["create"] != 2 || got["update"] > 0 {
		t.Fatalf("at first: %v", got)
	}
	cm := b.written("orders")
	const want = `apiVersion: status.quorate.dev/v1alpha1
kind: EtcdCluster
metadata:
  name: orders
  namespace: shop
status:
  cluster:
    replicas:
      healthy: 0
      members: 0
      wanted: 0
    version:
      wanted: 3.6.16
  commit: 0a1b2c3
  conditions:
  - lastTransitionTime: "2026-03-01T02:00:00Z"
    message: the cluster is what Git says
    reason: Idle
    status: "True"
    type: Ready
  - lastTransitionTime: "2026-03-01T02:00:00Z"
    reason: Idle
    status: "False"
    type: Reconciling
  - lastTransitionTime: "2026-03-01T02:00:00Z"
    reason: Idle
    status: "False"
    type: Stalled
`
	if cm == nil || cm.Data[naming.KeyStatus] != want {
		t.Errorf("written\n%v\nwant\n%s", cm, want)
	}
	for label, value := range map[string]string{
		naming.LabelStatus: "cluster", naming.LabelStatusOf: "orders", naming.LabelPhase: "Ready", naming.LabelReason: "Idle",
		naming.LabelWantedVersion: "3.6.16", naming.LabelCommit: "0a1b2c3", naming.LabelCluster: "",
	} {
		if cm.Labels[label] != value {
			t.Errorf("label %s is %q", label, cm.Labels[label])
		}
	}
	// Passes go on, and find the same; a restart does, too.
	b.revision++
	b.restart()
	if got := b.rounds(3 * time.Hour); got["create"]+got["update"]+got["delete"]+got["patch"] > 0 || got["list"] != 18 {
		t.Errorf("at rest, in three hours: %v", got)
	}
	b.show(clusterStatus("orders", schema.PhaseStalled, "Unhealthy", "orders-1 does not answer"), b.list[1])
	if got := b.rounds(time.Minute); got["update"] != 1 || got["create"] > 0 {
		t.Errorf("after a change: %v", got)
	}
}

func TestAConditionKeepsTheTimeSinceWhenItHolds(t *testing.T) {
	b := newBoard(t)
	begun := b.now
	b.show(clusterStatus("orders", schema.PhaseStalled, "Unhealthy", "orders-1 does not answer"))
	b.rounds(time.Minute)
	b.restart()
	b.show(clusterStatus("orders", schema.PhaseStalled, "Stopped", "the roll stopped"))
	b.rounds(time.Minute)
	changed := b.now
	b.show(idle("orders"))
	b.rounds(time.Minute)
	s, written, err := statuses.Read(b.written("orders"))
	if err != nil || !written.Equal(changed) {
		t.Errorf("written %s, %v; changed %s", written, err, changed)
	}
	for of, at := range map[string]time.Time{schema.ConditionStalled: changed, schema.ConditionReady: changed, schema.ConditionReconciling: begun} {
		if got := s.Condition(of).LastTransitionTime; got != at.Format(time.RFC3339) {
			t.Errorf("%s since %s, want %s", of, got, at)
		}
	}
}

func TestAStatusGoesWithItsObject(t *testing.T) {
	b := newBoard(t)
	foreign := idle("theirs")
	cm, err := statuses.ConfigMap(foreign, statuses.ByOf(state.Owner{Source: "elsewhere"}), b.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.api.CoreV1().ConfigMaps("shop").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.show(idle("orders"), idle("sessions"))
	b.rounds(time.Minute)
	// A daemon that has not read Git yet, or not all of it, knows nothing of what is gone.
	b.restart()
	b.partial = true
	b.show()
	if got := b.rounds(time.Hour); got["delete"] > 0 {
		t.Errorf("with a part of the statuses: %v", got)
	}
	b.partial = false
	b.show(idle("orders"))
	if got := b.rounds(statuses.GoneAfter); got["delete"] > 0 {
		t.Errorf("at once: %v", got)
	}
	if got := b.rounds(time.Minute); got["delete"] != 1 || b.written("sessions") != nil || b.written("orders") == nil {
		t.Errorf("after a minute: %v", got)
	}
	b.rounds(time.Hour)
	if b.written("theirs") == nil {
		t.Error("the status that another quorate wrote is gone")
	}
}

// What another process tells of is its to remove.
func TestAStatusOfAnotherProcessStays(t *testing.T) {
	b := newBoard(t)
	b.show(idle("orders"))
	b.rounds(time.Minute)
	b.elsewhere = true
	b.show()
	if got := b.rounds(time.Hour); got["delete"] > 0 {
		t.Errorf("%v", got)
	}
}

// What another process has written of a cluster that is this one's now is not what this one has
// written before, and is mended at once.
func TestATakenShardIsLookedAt(t *testing.T) {
	b := newBoard(t)
	b.show(idle("orders"))
	b.rounds(time.Minute)
	cm, err := statuses.ConfigMap(clusterStatus("orders", schema.PhaseReconciling, "Rolling", "orders-2 restarts"), statuses.ByOf(state.Owner{Source: "https://git@main:.", Instance: "default"}), b.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.api.CoreV1().ConfigMaps("shop").Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.shards++
	b.rounds(time.Minute)
	if text := b.written("orders").Data[naming.KeyStatus]; strings.Contains(text, "Rolling") {
		t.Errorf("it still says %s", text)
	}
}

// What comes back within the minute was never gone.
func TestAStatusOutlivesAShortAbsence(t *testing.T) {
	b := newBoard(t)
	b.show(idle("orders"))
	b.rounds(time.Minute)
	for range 5 {
		b.show()
		b.rounds(statuses.GoneAfter / 2)
		b.show(idle("orders"))
		if got := b.rounds(statuses.GoneAfter); got["delete"]+got["create"]+got["update"] > 0 {
			t.Fatalf("%v", got)
		}
	}
}

func TestWritesAreBounded(t *testing.T) {
	b := newBoard(t)
	const fleet = 300
	for i := range fleet {
		b.list = append(b.list, idle(fmt.Sprintf("c%03d", i)))
	}
	b.revision++
	for written := 0; written < fleet; {
		got := b.rounds(statuses.Every)["create"]
		if got == 0 || got > statuses.MaxWrites {
			t.Fatalf("%d writes in one round, after %d", got, written)
		}
		written += got
	}
	// One that changes all the time is written now and then, and keeps no other waiting.
	updates := 0
	for i := range 60 {
		b.list[0] = clusterStatus("c000", schema.PhaseReconciling, "Waiting", fmt.Sprint(i))
		b.revision++
		updates += b.rounds(statuses.Every)["update"]
	}
	if most := int(60*statuses.Every/statuses.MinPause) + 1; updates < 2 || updates > most {
		t.Errorf("%d writes of one object in two minutes, at most %d", updates, most)
	}
	b.rounds(time.Minute)
	if s, _, err := statuses.Read(b.written("c000")); err != nil || s.Condition(schema.ConditionReconciling).Message != "59" {
		t.Errorf("the last change is not written: %+v, %v", s, err)
	}
}

// 231.
func TestAForeignConfigMapIsLeftAlone(t *testing.T) {
	b := newBoard(t)
	name := naming.Status(schema.KindCluster, "orders")
	_, err := b.api.CoreV1().ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.show(idle("orders"))
	b.rounds(time.Hour)
	if cm := b.written("orders"); cm == nil || cm.Data["a"] != "b" || strings.Count(b.log.String(), "stands where a status should be") != 1 {
		t.Errorf("it is %v; the log\n%s", cm, b.log.String())
	}
}

func TestWhatOthersDoToAStatusIsMended(t *testing.T) {
	b := newBoard(t)
	b.show(idle("orders"))
	b.rounds(time.Minute)
	for name, harm := range map[string]func(cm *corev1.ConfigMap) error{
		"edited": func(cm *corev1.ConfigMap) error {
			cm.Data[naming.KeyStatus] = "{"
			_, err := b.api.CoreV1().ConfigMaps("shop").Update(t.Context(), cm, metav1.UpdateOptions{})
			return err
		},
		"deleted": func(cm *corev1.ConfigMap) error {
			return b.api.CoreV1().ConfigMaps("shop").Delete(t.Context(), cm.Name, metav1.DeleteOptions{})
		},
	} {
		if err := harm(b.written("orders")); err != nil {
			t.Fatal(err)
		}
		b.rounds(statuses.CheckEvery + time.Minute)
		if cm := b.written("orders"); cm == nil || !strings.Contains(cm.Data[naming.KeyStatus], "the cluster is what Git says") {
			t.Errorf("%s: %v", name, cm)
		}
		// And where it is written before the next check.
		if err := harm(b.written("orders")); err != nil {
			t.Fatal(err)
		}
		b.show(clusterStatus("orders", schema.PhaseStalled, "Refused", name))
		b.rounds(time.Minute)
		if cm := b.written("orders"); cm == nil || !strings.Contains(cm.Data[naming.KeyStatus], name) {
			t.Errorf("%s, then changed: %v", name, cm)
		}
		b.show(idle("orders"))
		b.rounds(time.Minute)
	}
}

// 323: a write that was done, but answered with an error, is not forgotten where the status
// becomes again what it was before: it is read again.
func TestAWriteWithoutAnAnswerIsReadAgain(t *testing.T) {
	b := newBoard(t)
	b.show(idle("orders"))
	b.rounds(time.Minute)
	lost, client := errors.New("etcdserver: request timed out"), &fake.Clientset{}
	client.AddReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o, err := b.api.Invokes(a, nil)
		if a.GetVerb() == "update" && lost != nil {
			err, lost = lost, nil
		}
		return true, o, err
	})
	b.w.Kube = client
	b.show(clusterStatus("orders", schema.PhaseStalled, "Refused", "it is refused"))
	if err := b.w.Round(t.Context(), b); err == nil || !strings.Contains(b.written("orders").Data[naming.KeyStatus], "it is refused") {
		t.Fatalf("%v; it says %s", err, b.written("orders").Data[naming.KeyStatus])
	}
	b.show(idle("orders"))
	b.rounds(2 * time.Minute)
	if text := b.written("orders").Data[naming.KeyStatus]; strings.Contains(text, "it is refused") {
		t.Errorf("it still says %s", text)
	}
}

// 326: such a write costs one pause: as soon as the status was read again, the one that holds is written.
func TestAStatusThatWasReadAgainIsWrittenAtOnce(t *testing.T) {
	for _, verb := range []string{"create", "update"} {
		b := newBoard(t)
		if verb == "update" {
			b.show(clusterStatus("orders", schema.PhaseReconciling, "Forming", "the cluster is forming"))
			b.rounds(time.Minute)
		}
		lost, client := errors.New("etcdserver: request timed out"), &fake.Clientset{}
		client.AddReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			o, err := b.api.Invokes(a, nil)
			if a.GetVerb() == verb && lost != nil {
				err, lost = lost, nil
			}
			return true, o, err
		})
		b.w.Kube = client
		b.show(clusterStatus("orders", schema.PhaseReconciling, "Rolling", "orders-2 restarts"))
		if err := b.w.Round(t.Context(), b); err == nil {
			t.Fatal("the write has an answer")
		}
		b.show(idle("orders"))
		b.rounds(2*statuses.MinPause + statuses.Every)
		if text := b.written("orders").Data[naming.KeyStatus]; !strings.Contains(text, "the cluster is what Git says") {
			t.Errorf("%s: it still says %s", verb, text)
		}
	}
}

func TestOnlyTheLeaderWrites(t *testing.T) {
	b := newBoard(t)
	b.show(idle("orders"))
	b.lease = errors.New("the lease is lost")
	if err := b.w.Round(t.Context(), b); !errors.Is(err, b.lease) || len(b.api.Actions()) > 0 {
		t.Errorf("%v, %v", err, b.api.Actions())
	}
}

// A status that was not written, for whatever reason, is not reported as written: it is written later, though nothing has changed
// since. It keeps no other waiting, and its cluster is left.
func TestWhatWasNotWrittenIsPending(t *testing.T) {
	for name, c := range map[string]struct {
		enter error
		write func() error
		// next is how much later it is tried again.
		next time.Duration
	}{
		"refused":  {enter: errors.New("another quorate reconciles it"), next: statuses.Every},
		"answered": {write: func() error { return errors.New("etcdserver: request timed out") }, next: 2 * statuses.MinPause},
		"panicked": {write: func() error { panic("out of range") }, next: 2 * statuses.MinPause},
	} {
		t.Run(name, func(t *testing.T) {
			b, entered, inside := newBoard(t), 0, 0
			b.w.Enter = func(context.Context, string) (leave func(), err error) {
				if entered++; entered == 1 && c.enter != nil {
					return nil, c.enter
				}
				inside++
				return func() { inside-- }, nil
			}
			b.api.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				if write := c.write; write != nil {
					c.write = nil
					return true, nil, write()
				}
				return false, nil, nil
			})
			b.show(idle("orders"), idle("sessions"))
			if err := b.w.Round(t.Context(), b); err == nil || b.told > 0 || inside != 0 {
				t.Errorf("at first: %v; told of %d times, %d clusters are not left", err, b.told, inside)
			}
			if b.written("orders") != nil || b.written("sessions") == nil {
				t.Errorf("at first: orders %v, sessions %v", b.written("orders"), b.written("sessions"))
			}
			b.now = b.now.Add(c.next)
			if err := b.w.Round(t.Context(), b); err != nil || b.told != 1 || inside != 0 {
				t.Errorf("later: %v; told of %d times, %d clusters are not left", err, b.told, inside)
			}
			if b.written("orders") == nil || b.written("sessions") == nil {
				t.Errorf("later: orders %v, sessions %v", b.written("orders"), b.written("sessions"))
			}
		})
	}
}

// What has no namespace to be written in keeps nothing else from being told of. It is written once that is there.
func TestWhatHasNoNamespaceIsWrittenLater(t *testing.T) {
	b, missing := newBoard(t), true
	b.api.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if cm, ok := a.(clienttesting.CreateAction).GetObject().(*corev1.ConfigMap); ok && missing && cm.Labels[naming.LabelStatusOf] == "orders" {
			return true, nil, apierrors.NewNotFound(corev1.Resource("namespaces"), "shop")
		}
		return false, nil, nil
	})
	b.show(idle("orders"), idle("sessions"))
	if err := b.w.Round(t.Context(), b); err != nil || b.told != 1 || b.written("orders") != nil || b.written("sessions") == nil {
		t.Errorf("at first: %v; told of %d times, orders %v, sessions %v", err, b.told, b.written("orders"), b.written("sessions"))
	}
	missing = false
	b.now = b.now.Add(statuses.CheckEvery)
	if err := b.w.Round(t.Context(), b); err != nil || b.told != 2 || b.written("orders") == nil {
		t.Errorf("later: %v; told of %d times, orders %v", err, b.told, b.written("orders"))
	}
}

// Clusters that are refused each time, and writes that panic each time, do not use up all rounds.
func TestWhatIsNeverWrittenKeepsNoOtherWaiting(t *testing.T) {
	for _, how := range []string{"refused", "panicked"} {
		b := newBoard(t)
		bad := func(name string) bool { return strings.Contains(name, "bad") }
		b.w.Enter = func(_ context.Context, cluster string) (leave func(), err error) {
			if how == "refused" && bad(cluster) {
				return nil, errors.New("another quorate reconciles it")
			}
			return func() {}, nil
		}
		b.api.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if cm, ok := a.(clienttesting.CreateAction).GetObject().(*corev1.ConfigMap); ok && bad(cm.Labels[naming.LabelStatusOf]) {
				panic("out of range")
			}
			return false, nil, nil
		})
		b.show(idle("bad-1"), idle("bad-2"), idle("bad-3"), idle("bad-4"), idle("orders"))
		for range 2 {
			if err := b.w.Round(t.Context(), b); err == nil {
				t.Errorf("%s: no error", how)
			}
			b.now = b.now.Add(statuses.Every)
		}
		if b.written("orders") == nil || b.told > 0 {
			t.Errorf("%s: %v; told of %d times", how, b.written("orders"), b.told)
		}
	}
}

// What is not known yet, and what another quorate owns, is not written about.
func TestWhatIsUnknownOrOwnedByAnotherIsNotWritten(t *testing.T) {
	b := newBoard(t)
	other := clusterStatus("theirs", schema.PhaseStalled, "Refused", "another quorate acts on it")
	other.Status.Cluster.Hold = &schema.HoldStatus{Kind: "Refused", Rule: "owner"}
	b.show(other, schema.NewStatus(schema.KindCluster, "shop", "new", schema.PhaseUnknown, "NotLookedAt", "not reconciled yet"))
	if got := b.rounds(time.Minute); got["create"] > 0 {
		t.Errorf("%v", got)
	}
}

// 323: what the watches tell late of a StatefulSet is a reason to look at its labels.
func TestAStatefulSetSeenLateIsLabelled(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.R.StatusRevision()
		w.EditSet(func(set *appsv1.StatefulSet) { set.Labels["team"] = "checkout" })
		w.Settle()
		if w.R.StatusRevision() == before {
			t.Error("nobody looks at it")
		}
	})
}

// 232: the phase on a StatefulSet restarts no pod, is no drift, and ends where it should.
func TestThePhaseOnAStatefulSetIsNoDrift(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		before := w.Set()
		writer := &statuses.Writer{Kube: w.API, By: "x", Lease: func() error { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		if err := writer.Round(t.Context(), w.R.Own()); err != nil {
			t.Fatal(err)
		}
		set := w.Set()
		if set.Labels[naming.LabelPhase] != "Ready" || set.Labels[naming.LabelReason] != "Idle" || set.Labels[naming.LabelWantedVersion] != "3.6.16" || set.Labels[naming.LabelCommit] != "0a1b2c3" {
			t.Fatalf("labels %v", set.Labels)
		}
		if set.Generation != before.Generation || set.Spec.Template.String() != before.Spec.Template.String() || set.Spec.Template.Labels[naming.LabelPhase] != "" {
			t.Error("the spec has changed")
		}
		for range 3 {
			w.MustPass()
		}
		if s := w.Status(schema.KindCluster, "orders"); len(s.Status.Cluster.Drift)+len(s.Status.Cluster.Plan) > 0 {
			t.Errorf("it drifts: %+v, %+v", s.Status.Cluster.Drift, s.Status.Cluster.Plan)
		}
		w.API.ClearActions()
		if err := writer.Round(t.Context(), w.R.Own()); err != nil || len(w.API.Actions()) > 0 {
			t.Errorf("once more: %v, %v", err, w.API.Actions())
		}
	})
}

// 259: a cluster that goes to Observe loses the labels that nobody keeps true any more, by
// one write and no other; what a person writes there stays, and so does all else.
func TestAClusterThatIsOnlyObservedIsNotLabelled(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		now := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
		writer := &statuses.Writer{Kube: w.API, By: "x", Lease: func() error { return nil }, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
		round := func() (patches int) {
			t.Helper()
			w.MustPass()
			w.API.ClearActions()
			for range 3 {
				now = now.Add(statuses.CheckEvery)
				if err := writer.Round(t.Context(), w.R.Own()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			for _, a := range w.API.Actions() {
				if a.GetVerb() == "patch" {
					patches++
				}
			}
			return patches
		}
		w.R.SetDesired([]desired.Cluster{w.Wish})
		if n := round(); n != 1 || w.Set().Labels[naming.LabelPhase] != "Ready" {
			t.Fatalf("%d writes: %v", n, w.Set().Labels)
		}
		before := w.Set()
		w.Wish.Spec.Mode = schema.ModeObserve
		w.R.SetDesired([]desired.Cluster{w.Wish})
		us := w.R.Options.Owner
		w.R.Options.Owner = state.Owner{Source: "https://git.example.com/trial.git@main", Instance: "default"}
		if set, tell := w.R.MarkedSet("shop", "orders"); set != nil || tell {
			t.Errorf("one that only observes takes the labels off that another quorate writes on %v", set)
		}
		w.R.Options.Owner = us
		n, after := round(), w.Set()
		for _, label := range []string{naming.LabelPhase, naming.LabelReason, naming.LabelWantedVersion, naming.LabelCommit} {
			delete(before.Labels, label)
		}
		if n != 1 || !maps.Equal(after.Labels, before.Labels) || !reflect.DeepEqual(after.Spec, before.Spec) {
			t.Errorf("%d writes: %v, want %v", n, after.Labels, before.Labels)
		}
		after.Labels[naming.LabelPhase] = "mine"
		if _, err := w.API.AppsV1().StatefulSets("shop").Update(t.Context(), after, metav1.UpdateOptions{FieldManager: "kubectl-label"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := round(); n != 0 || w.Set().Labels[naming.LabelPhase] != "mine" {
			t.Errorf("%d writes after a person's: %v", n, w.Set().Labels)
		}
		w.Wish.Spec.Mode = schema.ModeEnforce
		w.R.SetDesired([]desired.Cluster{w.Wish})
		if n := round(); n != 1 || w.Set().Labels[naming.LabelPhase] != "Ready" {
			t.Errorf("%d writes once it may act again: %v", n, w.Set().Labels)
		}
	})
}

// Nothing is decided by what stands in a status: one that is forged, on the StatefulSet
// and beside it, leads to no step and to no other status.
func TestAForgedStatusDecidesNothing(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPass()
		before := fmt.Sprintf("%+v", w.Status(schema.KindCluster, "orders").Status.Conditions)
		forged, err := statuses.ConfigMap(clusterStatus("orders", schema.PhaseStalled, "Unhealthy", "rm -rf"), "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.API.CoreV1().ConfigMaps("shop").Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		set := w.Set()
		set.Labels[naming.LabelPhase], set.Labels[naming.LabelReason], set.Labels[naming.LabelWantedVersion] = "Stalled", "Unhealthy", "3.4.0"
		if _, err := w.API.AppsV1().StatefulSets("shop").Update(t.Context(), set, metav1.UpdateOptions{FieldManager: "kubectl-label"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.MustPass()
		}
		if after := fmt.Sprintf("%+v", w.Status(schema.KindCluster, "orders").Status.Conditions); after != before {
			t.Errorf("%s became %s", before, after)
		}
	})
}

// No package but this one reads what is written for people, and none of the reconciler's
// imports it but the loop that starts it.
func TestNothingElseReadsAStatus(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if filepath.Base(filepath.Dir(path)) == "statuses" {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, word := range []string{"statuses.Read", "naming.KeyStatus", "naming.LabelStatus", "naming.LabelPhase", "naming.LabelReason", "naming.LabelWantedVersion", "naming.LabelCommit"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s uses %s", path, word)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
