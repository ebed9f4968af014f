package reconciler_test

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
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestBootstrapIsDrivenToIdle(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.UntilIdle()
		want := []string{
			"create the record", "issue certificates", "apply Service orders-peers",
			"apply PodDisruptionBudget orders", "create 3 members", "record cluster c1", "apply Service orders-client", "end the roll", "record that 3.6.16 is applied",
		}
		got := w.Lines("step started", "action")
		got = slices.DeleteFunc(got, func(a string) bool { return a == "end the roll" })
		want = slices.DeleteFunc(want, func(a string) bool { return a == "end the roll" })
		if !slices.Equal(got, want) {
			t.Errorf("steps %q, want %q", got, want)
		}
		if done := w.Lines("step done", "action"); len(done) != len(w.Lines("step started", "action")) {
			t.Errorf("done %q", done)
		}
		r := w.Record()
		if r.ClusterID != "c1" || len(r.Members) != 3 || r.Applied == nil || r.Applied.Version != "3.6.16" || r.Applied.Commit != "0a1b2c3" {
			t.Errorf("the record is %+v", r)
		}
		if p := observe.Partition(w.Set()); p != 3 {
			t.Errorf("at rest the partition is %d, want it above every pod", p)
		}
	})
}

func TestBootstrapWritesEachObjectOnce(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.UntilIdle()
		writes := w.API.Writes()
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
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		wait, err := w.Pass()
		if err != nil || wait != 30*time.Second {
			t.Errorf("wait %s, error %v", wait, err)
		}
		if requests := w.API.Requests(); len(requests) > 0 {
			t.Errorf("requests at rest: %q", requests)
		}
		if w.Log.Len() > 0 || len(w.DrainEvents()) > 0 {
			t.Errorf("something was said again:\n%s", w.Log)
		}
	})
}

func TestPatchUpgradeIsDrivenToIdle(t *testing.T) {
	for _, leader := range []string{"orders-0", "orders-1", "orders-2"} {
		t.Run(leader+" leads", func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) { upgradeToIdle(w, leader) }, clustertest.SetVersion("3.6.12"))
		})
	}
}

func upgradeToIdle(w *reconcilertest.World, leader string) {
	w.Helper()
	w.Etcd.Leader = leader
	w.Commit(clustertest.SetVersion("3.6.16"))
	w.UntilIdle()
	steps := w.Lines("step started", "action")
	restarts := slices.DeleteFunc(slices.Clone(steps), func(a string) bool { return !strings.HasPrefix(a, "restart ") })
	want := []string{"restart orders-2 3.6.12 → 3.6.16", "restart orders-1 3.6.12 → 3.6.16", "restart orders-0 3.6.12 → 3.6.16"}
	if !slices.Equal(restarts, want) {
		w.Errorf("restarts %q, want %q", restarts, want)
	}
	if len(steps) < 2 || steps[0] != "back up through "+leader || steps[1] != "start the roll 3.6.12 → 3.6.16" {
		w.Errorf("the upgrade begins with %q", steps)
	}
	for _, member := range w.Etcd.Members {
		leads := slices.Index(steps, "restart "+member+" 3.6.12 → 3.6.16")
		if member == leader && !strings.HasPrefix(steps[leads-1], "move the leader "+leader) {
			w.Errorf("before %s restarts the step is %q", member, steps[leads-1])
		}
	}
	r := w.Record()
	if r.Applied.Version != "3.6.16" || r.Applied.Commit != w.Wish.Commit || r.Backup == nil || r.Backup.For != "3.6.16" {
		w.Errorf("the record is %+v", r)
	}
	if _, err := (backup.Store{}).Verify(w.Context(), r.Backup.URL); err != nil {
		w.Error(err)
	}
	w.API.ClearActions()
	w.MustPass()
	if requests := w.API.Requests(); len(requests) > 0 {
		w.Errorf("requests at rest: %q", requests)
	}
}

// An image that does not exist stops the roll at one member, and a revert mends
// it.
func TestBadImageStopsTheRollAndARevertMendsIt(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Broken = map[string]corev1.ContainerStateWaiting{"3.6.16": {Reason: "ImagePullBackOff", Message: "manifest unknown"}}
		w.Commit(clustertest.SetVersion("3.6.16"))
		p := w.Until(func(p decision.Plan) bool { return p.Hold != nil && p.Hold.Kind == decision.Stopped })
		if !strings.Contains(p.Hold.Message, "orders-2") || !strings.Contains(p.Hold.Message, "cannot be pulled") {
			t.Errorf("the hold says %q", p.Hold.Message)
		}
		if w.VersionOf("orders-1") != "3.6.12" || w.VersionOf("orders-0") != "3.6.12" {
			t.Error("another member was touched")
		}
		w.Commit(clustertest.SetVersion("3.6.12"))
		w.UntilIdle()
		if v := w.VersionOf("orders-2"); v != "3.6.12" {
			t.Errorf("orders-2 runs %q after the revert", v)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// A commit may change labels, which are applied at once, and the version,
// which needs a backup and a roll.
func TestLabelsBesideAVersionDoNotStartTheRoll(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Set().Spec.Template.Annotations[naming.AnnotationTemplateHash]
		w.Commit(clustertest.SetVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} })
		for w.Set().Labels["team"] == "" {
			w.MustPass()
		}
		if now := w.Set().Spec.Template.Annotations[naming.AnnotationTemplateHash]; now != before {
			t.Error("the new label brought the new template with it, before the backup and the health gate")
		}
		w.UntilIdle()
		if w.Record().Backup == nil {
			t.Error("no backup was taken")
		}
	}, clustertest.SetVersion("3.6.12"))
}

// I11: between the last restart and the end of a roll the partition is 0: a
// template that is applied then takes every member at once.
func TestLabelsBesideAVersionAtPartitionZeroRestartNobody(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Until(func(decision.Plan) bool {
			return observe.Partition(w.Set()) == 0 && w.VersionOf("orders-0") == "3.6.16"
		})
		w.Log.Reset()
		w.Commit(clustertest.SetVersion("3.6.12"), func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} })
		w.MustPass()
		for _, member := range w.Etcd.Members {
			if v := w.VersionOf(member); v != "3.6.16" {
				t.Errorf("%s runs %s after %q", member, v, w.Lines("step started", "action"))
			}
		}
	}, clustertest.SetVersion("3.6.12"), func(c *schema.EtcdCluster) { c.Spec.Upgrade.Soak = &metav1.Duration{} })
}

func TestEditByHandIsTakenBackAndNamed(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Scale(1, "kubectl-edit")
		w.MustPass()
		if n := *w.Set().Spec.Replicas; n != 3 {
			t.Errorf("%d replicas after the pass", n)
		}
		reasons := w.Lines("step started", "reason")
		if len(reasons) != 1 || !strings.Contains(reasons[0], "another writer has set it to 1 (kubectl-edit") {
			t.Errorf("reasons %q", reasons)
		}
		if told := strings.Join(w.DrainEvents(), "\n"); !strings.Contains(told, "StatefulSet orders: kubectl-edit had changed .spec.replicas (1, wanted 3); Git wins") {
			t.Errorf("Events %q", told)
		}
	})
}

// 370: members that another writer takes away come back each time, however often.
func TestATruceKeepsNoMemberDown(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Running(func(reconcilertest.Running) {
			down := 0
			for range 40 {
				w.Scale(1, "autoscaler")
				for range 3 {
					time.Sleep(time.Second)
					w.Settle()
				}
				if *w.Set().Spec.Replicas != 3 {
					down++
				}
				time.Sleep(10 * time.Second)
			}
			if down > 0 {
				t.Errorf("after %d of 40 edits, members were not back within three seconds\n%s", down, w.Log)
			}
		})
	})
}

// 370: so does the Service by which members find each other; what only clients see waits.
func TestATruceKeepsNoMemberLost(t *testing.T) {
	for name, waits := range map[string]bool{"orders-peers": false, "orders-client": true} {
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			w.Running(func(reconcilertest.Running) {
				waited := false
				for range 20 {
					service, _ := w.Contents()["Service "+name].(*corev1.Service)
					service.Spec.Selector = map[string]string{"app": "none"}
					if _, err := w.API.CoreV1().Services("shop").Update(w.Context(), service, metav1.UpdateOptions{FieldManager: "meddler"}); err != nil {
						t.Fatal(err)
					}
					for range 3 {
						time.Sleep(time.Second)
						w.Settle()
					}
					now, _ := w.Contents()["Service "+name].(*corev1.Service)
					waited = waited || now.Spec.Selector["app"] == "none"
				}
				if waited != waits {
					t.Errorf("Service %s waits: %t, want %t\n%s", name, waited, waits, w.Log)
				}
			})
		})
	}
}

// 294: scaled away by another writer in the midst of a roll that Git has given up, members
// come back with what Git says, and not with what none has proven.
func TestScaledAwayInTheMidstOfARollAndReverted(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Until(func(decision.Plan) bool { return observe.Partition(w.Set()) == 2 })
		w.Scale(0, "downscaler")
		w.Settle()
		w.Commit(clustertest.SetVersion("3.6.12"))
		p, err := w.R.Plan(w.Context(), w.Wish)
		if err != nil {
			t.Fatal(err)
		}
		steps := slices.DeleteFunc(p.Steps, func(s decision.Step) bool { return strings.HasPrefix(s.String(), "apply PodDisruptionBudget") })
		if len(steps) == 0 || !strings.Contains(steps[0].String(), "no member runs, and Git no longer wants what they would all come back with") {
			t.Errorf("the plan is\n%s", p.Text())
		}
	}, clustertest.SetVersion("3.6.12"))
}

func TestObserveModeTouchesNothing(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })
		w.Until(func(p decision.Plan) bool { return p.Hold != nil && p.Hold.Kind == decision.ObserveOnly })
		if writes := w.API.Writes(); len(writes) > 0 || len(w.Etcd.Calls) > 0 {
			t.Errorf("writes %q, calls %q", writes, w.Etcd.Calls)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// I12: a file with errors holds its cluster, whatever else it says.
func TestFileWithErrorsHolds(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Wish = desired.Cluster{Commit: "bad", Problems: []string{"clusters/orders.yaml:7: spec.version: it is a number"}}
		w.Wish.Metadata.Namespace, w.Wish.Metadata.Name = "shop", "orders"
		w.MustPass()
		if requests := w.API.Requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
		if holds := w.Lines("on hold", "reason"); len(holds) != 1 || !strings.Contains(holds[0], "it is a number") {
			t.Errorf("holds %q", holds)
		}
	})
}

func TestRunCarriesOutWhatGitSays(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.R.Run(ctx)
		}()
		w.R.SetDesired([]desired.Cluster{w.Wish})
		for range 100 {
			time.Sleep(state.MinRequeue)
			w.Settle()
			if len(w.Lines("cluster is up to date", "version")) > 0 {
				break
			}
		}
		if len(w.Lines("cluster is up to date", "version")) != 1 {
			t.Errorf("never idle:\n%s", w.Log)
		}
		stop()
		<-ended
	})
}

func TestFailedPassIsTriedAgainAndSaidOnce(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		refused := 0
		w.API.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			refused++
			return refused <= 3, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "orders-record", fmt.Errorf("no"))
		})
		w.R.SetDesired([]desired.Cluster{w.Wish})
		go func() {
			for w.R.Next(w.Context()) {
			}
		}()
		for range 100 {
			time.Sleep(state.MinRequeue)
			synctest.Wait()
		}
		if refused <= 3 {
			t.Errorf("tried %d times", refused)
		}
		if failed := w.Lines("pass failed", "error"); len(failed) != 1 || !strings.Contains(failed[0], "create the record") {
			t.Errorf("said %q", failed)
		}
	})
}

func TestSameCommitQueuesNothing(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		reconcilertest.Drop(w.Context(), w.R.Queue())
		w.R.SetDesired([]desired.Cluster{w.Wish})
		if n, told := w.R.Queue().Len(), w.Lines("cluster is not in Git any more", "cluster"); n != 0 || len(told) > 0 {
			t.Errorf("%d keys are queued, and no file is said to name %q", n, told)
		}
		w.Commit(clustertest.SetVersion("3.6.12"))
		w.R.SetDesired([]desired.Cluster{w.Wish})
		if n := w.R.Queue().Len(); n != 1 {
			t.Errorf("%d keys are queued after a change", n)
		}
	})
}

func TestChangesOfUnnamedClustersAreLeftAlone(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.R.Enqueue("shop/orders")
		if w.R.Queue().Len() != 0 {
			t.Error("a cluster that Git does not name was queued")
		}
		if got := w.R.Desired(); len(got) != 0 {
			t.Errorf("desired %v", got)
		}
	})
}

// A change in Kubernetes is looked at when it happens, not when the next look is due.
func TestChangesOfNamedClustersAreLookedAt(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		reconcilertest.Drop(w.Context(), w.R.Queue())
		w.DeletePod("orders-2")
		synctest.Wait()
		if n := w.R.Queue().Len(); n != 1 {
			t.Errorf("%d keys are queued", n)
		}
	})
}

// What fails because quorate ends is no failure.
func TestTheEndIsNoFailure(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		ctx, end := context.WithCancel(w.Context())
		w.API.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			end()
			return true, nil, ctx.Err()
		})
		w.Commit(func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "shop"} })
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.R.Next(ctx)
		if ctx.Err() == nil {
			t.Fatal("nothing was asked for")
		}
		if told := w.Lines("pass failed", "error"); len(told) > 0 {
			t.Errorf("told: %q", told)
		}
	})
}

// A step that another writer undoes each time is taken less and less often, although
// each time the change wakes the cluster.
func TestAStepThatIsUndoneIsSlowedDown(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		undo := func() {
			if err := w.API.CoreV1().Services("shop").Delete(w.Context(), "orders-client", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		var waits []time.Duration
		undo()
		for range 3 {
			wait, err := w.Pass()
			if err != nil || !w.AdmitsClients() {
				t.Fatalf("%v, and the Service is there: %t", err, w.AdmitsClients())
			}
			waits = append(waits, wait)
			undo()
			if left, err := w.Pass(); wait > 0 && (left != wait || err != nil || w.AdmitsClients()) {
				t.Errorf("woken meanwhile it waits %s, %v, and the Service is there: %t", left, err, w.AdmitsClients())
			} else if wait == 0 {
				waits = append(waits, left)
				undo()
			}
			time.Sleep(waits[len(waits)-1])
		}
		if !slices.Equal(waits, []time.Duration{0, state.MinRequeue, 2 * state.MinRequeue, 4 * state.MinRequeue}) {
			t.Errorf("waits %s", waits)
		}
	})
}

// What changes between each decision and its action, such as a cache that no longer
// follows, is told after a few seconds, and asked about less and less often.
func TestAChangeThatLastsIsTold(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.R.SetDesired([]desired.Cluster{w.Wish})
		changes := 0
		w.API.PrependReactor("patch", "statefulsets", func(clienttesting.Action) (bool, runtime.Object, error) {
			changes++
			return true, nil, apierrors.NewConflict(appsv1.Resource("statefulsets"), "orders", errors.New("it was changed"))
		})
		w.Log.Reset()
		for changes < queue.MaxSilentConflicts-1 { // the caches may have lagged once before
			w.R.Next(w.Context())
		}
		if told := w.Lines("pass failed", "error"); len(told) > 0 {
			t.Errorf("told at once: %q", told)
		}
		for begin := time.Now(); time.Since(begin) < 5*time.Minute; {
			w.R.Next(w.Context())
		}
		told := w.Lines("pass failed", "error")
		if len(told) != 1 || !strings.Contains(told[0], state.ErrChanged.Error()) || !strings.HasPrefix(told[0], "start the roll") {
			t.Errorf("told: %q", told)
		}
		if changes > 20 {
			t.Errorf("%d tries in five minutes", changes)
		}
	}, clustertest.SetVersion("3.6.12"))
}
