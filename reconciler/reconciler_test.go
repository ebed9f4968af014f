package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestBootstrapIsDrivenToIdle(t *testing.T) {
	inWorld(t, func(w *world) {
		w.untilIdle()
		want := []string{
			"create the record", "issue certificates", "apply Service orders-peers", "apply Service orders-client",
			"apply PodDisruptionBudget orders", "create 3 members", "record cluster c1", "end the roll", "record that 3.6.16 is applied",
		}
		got := w.lines("step", "action")
		got = slices.DeleteFunc(got, func(a string) bool { return a == "end the roll" })
		want = slices.DeleteFunc(want, func(a string) bool { return a == "end the roll" })
		if !slices.Equal(got, want) {
			t.Errorf("steps %q, want %q", got, want)
		}
		if done := w.lines("done", "action"); len(done) != len(w.lines("step", "action")) {
			t.Errorf("done %q", done)
		}
		r := w.record()
		if r.ClusterID != "c1" || len(r.Members) != 3 || r.Applied == nil || r.Applied.Version != "3.6.16" || r.Applied.Commit != "0a1b2c3" {
			t.Errorf("the record is %+v", r)
		}
		if p := partitionOf(w.set()); p != 3 {
			t.Errorf("at rest the partition is %d, want it above every pod", p)
		}
	})
}

func TestBootstrapWritesEachObjectOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.untilIdle()
		writes := w.api.writes()
		created := slices.DeleteFunc(slices.Clone(writes), func(s string) bool { return strings.HasPrefix(s, "update ") })
		slices.Sort(created)
		want := []string{
			"create configmaps orders-record",
			"create secrets orders-ca", "create secrets orders-client", "create secrets orders-peer", "create secrets orders-peer-ca", "create secrets orders-server",
			"patch poddisruptionbudgets orders", "patch services orders-client", "patch services orders-peers", "patch statefulsets orders",
		}
		if !slices.Equal(created, want) {
			t.Errorf("writes %q, want %q", created, want)
		}
		if n := len(writes) - len(created); n != 2 {
			t.Errorf("the record was updated %d times, want 2: formed and applied", n)
		}
	})
}

func TestPassAtRestAsksTheAPINothing(t *testing.T) {
	formed(t, func(w *world) {
		wait, err := w.pass()
		if err != nil || wait != 30*time.Second {
			t.Errorf("wait %s, error %v", wait, err)
		}
		if requests := w.api.requests(); len(requests) > 0 {
			t.Errorf("requests at rest: %q", requests)
		}
		if w.log.Len() > 0 || len(w.drainEvents()) > 0 {
			t.Errorf("something was said again:\n%s", w.log)
		}
	})
}

func TestPatchUpgradeIsDrivenToIdle(t *testing.T) {
	for _, leader := range []string{"orders-0", "orders-1", "orders-2"} {
		t.Run(leader+" leads", func(t *testing.T) {
			formed(t, func(w *world) { upgradeToIdle(w, leader) }, clustertest.SetVersion("3.6.12"))
		})
	}
}

func upgradeToIdle(w *world, leader string) {
	w.Helper()
	w.etcd.leader = leader
	w.commit(clustertest.SetVersion("3.6.16"))
	w.untilIdle()
	steps := w.lines("step", "action")
	restarts := slices.DeleteFunc(slices.Clone(steps), func(a string) bool { return !strings.HasPrefix(a, "restart ") })
	want := []string{"restart orders-2 3.6.12 → 3.6.16", "restart orders-1 3.6.12 → 3.6.16", "restart orders-0 3.6.12 → 3.6.16"}
	if !slices.Equal(restarts, want) {
		w.Errorf("restarts %q, want %q", restarts, want)
	}
	if len(steps) < 2 || steps[0] != "back up through "+leader || steps[1] != "start the roll 3.6.12 → 3.6.16" {
		w.Errorf("the upgrade begins with %q", steps)
	}
	for _, member := range w.etcd.members {
		leads := slices.Index(steps, "restart "+member+" 3.6.12 → 3.6.16")
		if member == leader && !strings.HasPrefix(steps[leads-1], "move the leader "+leader) {
			w.Errorf("before %s restarts the step is %q", member, steps[leads-1])
		}
	}
	r := w.record()
	if r.Applied.Version != "3.6.16" || r.Applied.Commit != w.wish.Commit || r.Backup == nil || r.Backup.For != "3.6.16" {
		w.Errorf("the record is %+v", r)
	}
	if _, err := (backup.Store{}).Verify(w.Context(), r.Backup.URL); err != nil {
		w.Error(err)
	}
	w.api.ClearActions()
	w.mustPass()
	if requests := w.api.requests(); len(requests) > 0 {
		w.Errorf("requests at rest: %q", requests)
	}
}

// An image that does not exist stops the roll at one member, and a revert mends
// it.
func TestBadImageStopsTheRollAndARevertMendsIt(t *testing.T) {
	formed(t, func(w *world) {
		w.broken = map[string]corev1.ContainerStateWaiting{"3.6.16": {Reason: "ImagePullBackOff", Message: "manifest unknown"}}
		w.commit(clustertest.SetVersion("3.6.16"))
		p := w.until(func(p plan.Plan) bool { return p.Hold != nil && p.Hold.Kind == plan.HoldStopped })
		if !strings.Contains(p.Hold.Message, "orders-2") || !strings.Contains(p.Hold.Message, "cannot be pulled") {
			t.Errorf("the hold says %q", p.Hold.Message)
		}
		if w.versionOf("orders-1") != "3.6.12" || w.versionOf("orders-0") != "3.6.12" {
			t.Error("another member was touched")
		}
		w.commit(clustertest.SetVersion("3.6.12"))
		w.untilIdle()
		if v := w.versionOf("orders-2"); v != "3.6.12" {
			t.Errorf("orders-2 runs %q after the revert", v)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// A commit may change labels, which are carried out at once, and the version,
// which needs a backup and a roll.
func TestLabelsBesideAVersionDoNotStartTheRoll(t *testing.T) {
	formed(t, func(w *world) {
		before := w.set().Spec.Template.Annotations[naming.AnnotationTemplateHash]
		w.commit(clustertest.SetVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} })
		for w.set().Labels["team"] == "" {
			w.mustPass()
		}
		if now := w.set().Spec.Template.Annotations[naming.AnnotationTemplateHash]; now != before {
			t.Error("the new label brought the new template with it, before the backup and the health gate")
		}
		w.untilIdle()
		if w.record().Backup == nil {
			t.Error("no backup was taken")
		}
	}, clustertest.SetVersion("3.6.12"))
}

// I11: between the last restart and the end of a roll the partition is 0: a
// template that is applied then takes every member at once.
func TestLabelsBesideAVersionAtPartitionZeroRestartNobody(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"))
		w.until(func(plan.Plan) bool { return partitionOf(w.set()) == 0 && w.versionOf("orders-0") == "3.6.16" })
		w.log.Reset()
		w.commit(clustertest.SetVersion("3.6.12"), func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} })
		w.mustPass()
		for _, member := range w.etcd.members {
			if v := w.versionOf(member); v != "3.6.16" {
				t.Errorf("%s runs %s after %q", member, v, w.lines("step", "action"))
			}
		}
	}, clustertest.SetVersion("3.6.12"), func(c *schema.EtcdCluster) { c.Spec.Upgrade.Soak = &metav1.Duration{} })
}

func TestEditByHandIsTakenBackAndNamed(t *testing.T) {
	formed(t, func(w *world) {
		w.scale(1, "kubectl-edit")
		w.mustPass()
		if n := *w.set().Spec.Replicas; n != 3 {
			t.Errorf("%d replicas after the pass", n)
		}
		reasons := w.lines("step", "reason")
		if len(reasons) != 1 || !strings.Contains(reasons[0], "spec.replicas") || !strings.Contains(reasons[0], "kubectl-edit") {
			t.Errorf("reasons %q", reasons)
		}
	})
}

func TestObserveModeTouchesNothing(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })
		w.until(func(p plan.Plan) bool { return p.Hold != nil && p.Hold.Kind == plan.HoldObserve })
		if writes := w.api.writes(); len(writes) > 0 || len(w.etcd.calls) > 0 {
			t.Errorf("writes %q, calls %q", writes, w.etcd.calls)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// I12: a file with errors holds its cluster, whatever else it says.
func TestFileWithErrorsHolds(t *testing.T) {
	formed(t, func(w *world) {
		w.wish = desired.Cluster{Commit: "bad", Problems: []string{"clusters/orders.yaml:7: spec.version: it is a number"}}
		w.wish.Metadata.Namespace, w.wish.Metadata.Name = "shop", "orders"
		w.mustPass()
		if requests := w.api.requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
		if holds := w.lines("hold", "message"); len(holds) != 1 || !strings.Contains(holds[0], "it is a number") {
			t.Errorf("holds %q", holds)
		}
	})
}

func TestRunCarriesOutWhatGitSays(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.r.Run(ctx)
		}()
		w.r.SetDesired([]desired.Cluster{w.wish})
		for range 100 {
			time.Sleep(Soon)
			w.settle()
			if len(w.lines("idle", "message")) > 0 {
				break
			}
		}
		if len(w.lines("idle", "message")) != 1 {
			t.Errorf("never idle:\n%s", w.log)
		}
		stop()
		<-ended
	})
}

func TestFailedPassIsTriedAgainAndSaidOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		refused := 0
		w.api.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			refused++
			return refused <= 3, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "orders-record", fmt.Errorf("no"))
		})
		w.r.SetDesired([]desired.Cluster{w.wish})
		go func() {
			for w.r.Next(w.Context()) {
			}
		}()
		for range 100 {
			time.Sleep(Soon)
			synctest.Wait()
		}
		if refused <= 3 {
			t.Errorf("tried %d times", refused)
		}
		if failed := w.lines("failed", "error"); len(failed) != 1 || !strings.Contains(failed[0], "create the record") {
			t.Errorf("said %q", failed)
		}
	})
}

// A file that says the same and has an error now, or none any more, is looked at.
func TestSameWish(t *testing.T) {
	good, other, bad := inGit().Identified(), inGit(clustertest.SetReplicas(5)).Identified(), inGit().Identified()
	bad.Problems = []string{"bad"}
	if !desired.Same(good, good) || !desired.Same(bad, bad) || desired.Same(good, other) || desired.Same(good, bad) || desired.Same(bad, good) {
		t.Errorf("%s, %s, %s", good.Digest, other.Digest, bad.Digest)
	}
	from := func(url string) desired.Cluster {
		c := inGit()
		c.Restore = &desired.Restore{Name: "back", Source: schema.RestoreSource{ObjectURL: url}}
		return c.Identified()
	}
	first, second := from("s3://b/1.db"), from("s3://b/2.db")
	if !desired.Same(first, from("s3://b/1.db")) || desired.Same(first, second) || desired.Same(first, good) {
		t.Errorf("with restores: %s, %s, without %s", first.Digest, second.Digest, good.Digest)
	}
}

func TestSameCommitQueuesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		key, _ := w.r.Queue().Get()
		w.r.Queue().Done(key)
		w.r.SetDesired([]desired.Cluster{w.wish})
		if n, told := w.r.Queue().Len(), w.lines("orphan", "cluster"); n != 0 || len(told) > 0 {
			t.Errorf("%d keys are queued, and no file is said to name %q", n, told)
		}
		w.commit(clustertest.SetVersion("3.6.12"))
		w.r.SetDesired([]desired.Cluster{w.wish})
		if n := w.r.Queue().Len(); n != 1 {
			t.Errorf("%d keys are queued after a change", n)
		}
	})
}

func TestChangesOfUnnamedClustersAreLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.r.Enqueue("shop/orders")
		if w.r.Queue().Len() != 0 {
			t.Error("a cluster that Git does not name was queued")
		}
		if got := w.r.Desired(); len(got) != 0 {
			t.Errorf("desired %v", got)
		}
	})
}

// A change in Kubernetes is looked at when it happens, not when the next look is due.
func TestChangesOfNamedClustersAreLookedAt(t *testing.T) {
	formed(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		key, _ := w.r.Queue().Get()
		w.r.Queue().Done(key)
		w.r.Queue().Forget(key)
		w.deletePod("orders-2")
		synctest.Wait()
		if n := w.r.Queue().Len(); n != 1 {
			t.Errorf("%d keys are queued", n)
		}
	})
}

// What fails because quorate ends is no failure.
func TestTheEndIsNoFailure(t *testing.T) {
	formed(t, func(w *world) {
		ctx, end := context.WithCancel(w.Context())
		w.api.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			end()
			return true, nil, ctx.Err()
		})
		w.commit(func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "shop"} })
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.r.Next(ctx)
		if ctx.Err() == nil {
			t.Fatal("nothing was asked for")
		}
		if told := w.lines("failed", "error"); len(told) > 0 {
			t.Errorf("told: %q", told)
		}
	})
}

// A step that somebody undoes each time is taken less and less often.
func TestAStepThatIsUndoneIsSlowedDown(t *testing.T) {
	formed(t, func(w *world) {
		var waits []time.Duration
		for range 3 {
			if err := w.api.CoreV1().Services("shop").Delete(w.Context(), "orders-client", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			wait, err := w.pass()
			if err != nil {
				t.Fatal(err)
			}
			waits = append(waits, wait)
		}
		if !slices.Equal(waits, []time.Duration{0, Soon, 2 * Soon}) {
			t.Errorf("waits %s", waits)
		}
	})
}

func TestRepeatedStepsAreSlowedDown(t *testing.T) {
	var p pace
	var waits []time.Duration
	for range 4 {
		waits = append(waits, p.after("shop/orders", "apply Service orders-client"))
	}
	if want := []time.Duration{0, Soon, 2 * Soon, 4 * Soon}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	for range 100 {
		p.after("shop/orders", "apply Service orders-client")
	}
	if w := p.after("shop/orders", "apply Service orders-client"); w != 5*time.Minute {
		t.Errorf("at last %s", w)
	}
	if w := p.after("shop/orders", "something else"); w != 0 {
		t.Errorf("another step waits %s", w)
	}
}

// A default takes the place of nothing that was set: neither of a limit nor of the
// lease.
func TestDefaultsOverrideNothing(t *testing.T) {
	other, noon := errors.New("another quorate acts"), time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	set := Options{
		Workers: 7, MaxDisrupted: 8, MaxBackups: 9, MaxDrills: 10, Resync: 11 * time.Second,
		Lease: func() error { return other }, Now: func() time.Time { return noon },
	}
	got := set.withDefaults()
	if !errors.Is(got.Lease(), other) || !got.Now().Equal(noon) {
		t.Errorf("lease %v, now %s", got.Lease(), got.Now())
	}
	if got.Workers != 7 || got.MaxDisrupted != 8 || got.MaxBackups != 9 || got.MaxDrills != 10 || got.Resync != 11*time.Second {
		t.Errorf("%+v", got)
	}
	if d := (Options{}).withDefaults(); d.Workers < 1 || d.MaxDisrupted != 1 || d.MaxBackups < 1 || d.MaxDrills < 1 || d.Resync <= 0 || d.Lease() != nil || d.Now().IsZero() {
		t.Errorf("the defaults: %+v", d)
	}
}

// What changes between each decision and its action, such as a cache that no longer
// follows, is told after a few seconds, and asked about less and less often.
func TestAChangeThatLastsIsTold(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(clustertest.SetVersion("3.6.16"))
		w.r.SetDesired([]desired.Cluster{w.wish})
		changes := 0
		w.api.PrependReactor("patch", "statefulsets", func(clienttesting.Action) (bool, runtime.Object, error) {
			changes++
			return true, nil, apierrors.NewConflict(appsv1.Resource("statefulsets"), "orders", errors.New("it was changed"))
		})
		w.log.Reset()
		for changes < MaxSilentConflicts-1 { // the caches may have lagged once before
			w.r.Next(w.Context())
		}
		if told := w.lines("failed", "error"); len(told) > 0 {
			t.Errorf("told at once: %q", told)
		}
		for begin := time.Now(); time.Since(begin) < 5*time.Minute; {
			w.r.Next(w.Context())
		}
		told := w.lines("failed", "error")
		if len(told) != 1 || !strings.Contains(told[0], state.ErrChanged.Error()) || !strings.HasPrefix(told[0], "start the roll") {
			t.Errorf("told: %q", told)
		}
		if changes > 20 {
			t.Errorf("%d tries in five minutes", changes)
		}
	}, clustertest.SetVersion("3.6.12"))
}
