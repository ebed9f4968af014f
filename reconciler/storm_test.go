package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/needs"
)

// nowhere is a store that takes nothing.
func nowhere(c *schema.EtcdCluster) {
	c.Spec.Backup.Destination.ObjectURLTemplate = "file:///nowhere-at-all/{{ .UID }}.db"
}

// broken lets members give snapshots that no store takes.
func broken(w *reconcilertest.World) {
	w.Etcd.Stream = func(context.Context) io.Reader { return strings.NewReader("") }
}

// atMost wants no more of anything in a minute than most has.
func atMost(t *testing.T, what string, got, most reconcilertest.Minute) {
	t.Helper()
	if got.Requests > most.Requests || got.Writes > most.Writes || got.Rounds > most.Rounds || got.Deep > most.Deep ||
		got.Calls > most.Calls || got.Snapshots > most.Snapshots || got.Events > most.Events || got.Lines > most.Lines {
		t.Errorf("%s: %+v in a minute, want at most %+v", what, got, most)
	}
}

// 186: a backup that fails is tried less and less often, and so are the members asked
// and the API server, although each try writes the record, which wakes the cluster.
func TestBackupThatFailsIsTriedLessAndLessOften(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		broken(w)
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Running(func(r reconcilertest.Running) {
			first := r.Minute()
			if first.Snapshots < 5 {
				t.Errorf("it is tried %d times in the first minute", first.Snapshots)
			}
			atMost(t, "at first", first, reconcilertest.Minute{Requests: 90, Writes: 15, Rounds: 62, Deep: 12, Calls: 12, Snapshots: 12, Events: 3, Lines: 14})
			var sum reconcilertest.Minute
			for range 30 {
				m := r.Minute()
				atMost(t, "later", m, reconcilertest.Minute{Requests: 14, Writes: 2, Rounds: 8, Deep: 2, Calls: 2, Snapshots: 2, Events: 1, Lines: 2})
				sum.Snapshots += m.Snapshots
			}
			if sum.Snapshots < 5 || sum.Snapshots > 8 {
				t.Errorf("it is tried %d times in half an hour", sum.Snapshots)
			}
		})
	}, clustertest.SetVersion("3.6.12"))
}

// 186: while a step waits after its failures, the status says since when and until when,
// once, another step that is due need not wait, and a commit that changes the file ends
// the waiting.
func TestOnlyWhatHasFailedWaits(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		began := time.Now().UTC()
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Running(func(r reconcilertest.Running) {
			for range 10 {
				r.Minute()
			}
			w.WantPhase(schema.KindCluster, "orders", schema.PhaseStalled, "Failed")
			text := w.StatusYAML()
			unfolded := strings.Join(strings.Fields(text), " ")
			for _, part := range []string{"nowhere-at-all", "it has failed since " + began.Format("2006-01-02T15:04"), "is tried again within 5m0s of each failure"} {
				if !strings.Contains(unfolded, part) {
					t.Errorf("the status does not say %q:\n%s", part, text)
				}
			}
			for range 6 {
				r.Minute()
			}
			if after := w.StatusYAML(); after != text {
				t.Errorf("before\n%s\nafter one more failure\n%s", text, after)
			}
			if err := w.API.CoreV1().Services("shop").Delete(w.Context(), "orders-client", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if !w.AdmitsClients() {
				t.Error("the Service waits for the backup")
			}
			w.Commit(func(c *schema.EtcdCluster) { c.Spec.Backup.Destination = schema.Destination{} })
			w.R.SetDesired([]desired.Cluster{w.Wish})
			time.Sleep(2 * time.Second)
			if b := w.Record().Backup; b == nil {
				t.Errorf("no backup after the commit:\n%s", w.Log)
			}
		})
	}, clustertest.SetVersion("3.6.12"), nowhere)
}

// 604: a step that succeeds each time and does not last is said: which, and since when, in the
// same words each time it is taken again, until it lasts.
func TestAStepThatDoesNotLastIsSaid(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		began := time.Now().UTC()
		w.Running(func(r reconcilertest.Running) {
			// Another writer deletes the Service each second.
			ctx, lasts := context.WithCancel(w.Context())
			defer lasts()
			go func() {
				for ctx.Err() == nil {
					_ = w.API.CoreV1().Services("shop").Delete(ctx, "orders-client", metav1.DeleteOptions{})
					time.Sleep(time.Second)
				}
			}()
			for range 3 {
				r.Minute()
			}
			w.WantPhase(schema.KindCluster, "orders", schema.PhaseStalled, "Repeated")
			said := func() string {
				_, why := w.Status(schema.KindCluster, "orders").Phase()
				return why.Reason + ": " + why.Message
			}
			before := said()
			for _, part := range []string{"apply Service orders-client", "again and again since " + began.Format("2006-01-02T15:04"), "taken again within 5m0s of the last time"} {
				if !strings.Contains(before, part) {
					t.Errorf("the status does not say %q: %s", part, before)
				}
			}
			idle := 0
			for range 12 * 60 {
				time.Sleep(time.Second)
				if after := said(); strings.HasPrefix(after, "Idle") {
					idle++ // before it is undone once more
				} else if after != before {
					t.Errorf("the status says\n%s\nand said\n%s", after, before)
				}
			}
			if idle > 6 {
				t.Errorf("the step is said to last for %d seconds of twelve minutes", idle)
			}
			lasts()
			for range 6 {
				r.Minute()
			}
			w.WantPhase(schema.KindCluster, "orders", schema.PhaseReady, "Idle")
		})
	})
}

// 371: a repair waits for the store of its backup as long as that is down; the status says
// since when, and names the word in Git that lets it go on. That word is obeyed at once.
func TestARepairWaitsForItsStoreAndNamesTheWayOn(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		began := time.Now().UTC()
		reconcilertest.Ill(w, began.Add(-time.Hour), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{clustertest.Ended(naming.ContainerGuard, 3, "Error", "empty")}
		})
		w.Etcd.Change = func(r *state.Round) {
			r.Members[1].Problem, r.Members[1].Version, r.Members[1].Peers, r.Listened = "connection refused", "", state.PeersApart, true
		}
		w.Running(func(r reconcilertest.Running) {
			for range 10 {
				r.Minute()
			}
			w.WantPhase(schema.KindCluster, "orders", schema.PhaseStalled, "Failed")
			unfolded := strings.Join(strings.Fields(w.StatusYAML()), " ")
			for _, part := range []string{"nowhere-at-all", "it has failed since " + began.Format("2006-01-02T15:04"), "spec.upgrade.backup: Skip lets the repair of orders-1 go on without it"} {
				if !strings.Contains(unfolded, part) {
					t.Errorf("the status does not say %q:\n%s", part, unfolded)
				}
			}
			if leaving := w.Record().Leaving; leaving != nil {
				t.Errorf("%+v leaves without a backup", leaving)
			}
			w.Commit(clustertest.SkipBackup)
			w.R.SetDesired([]desired.Cluster{w.Wish})
			for range 5 {
				time.Sleep(time.Second)
				w.Settle()
			}
			if !slices.Contains(w.Lines("step done", "action"), "write down that orders-1 leaves") {
				t.Errorf("it is not repaired after the commit\n%s", w.Log)
			}
		})
	}, nowhere)
}

// 186: that a failure lasts is logged with its numbers, once.
func TestWaitingIsLoggedOnce(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.R.SetDesired([]desired.Cluster{w.Wish})
		begin := time.Now()
		for time.Since(begin) < time.Hour {
			_, _ = w.Pass()
			if time.Since(begin) < time.Minute {
				time.Sleep(time.Second)
			} else {
				time.Sleep(10 * time.Second) // tries are minutes apart by now
			}
		}
		if logged := w.Lines("step waits after its failures", "failures"); !slices.Equal(logged, []string{"5"}) {
			t.Errorf("logged %q", logged)
		}
	}, clustertest.SetVersion("3.6.12"), nowhere)
}

// 186: nor do backups and schedules of their own, which count their failures in their
// records.
func TestRequestedBackupsThatFailAreTriedLessAndLessOften(t *testing.T) {
	for name, request := range map[string]desired.Backup{
		"a backup":   clustertest.Once(),
		"a schedule": clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Schedule = "* * * * *" }),
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				broken(w)
				w.Running(func(r reconcilertest.Running) {
					w.R.SetBackups([]desired.Backup{request})
					snapshots := 0
					for range 60 {
						m := r.Minute()
						atMost(t, name, m, reconcilertest.Minute{Requests: 25, Writes: 8, Rounds: 12, Deep: 2, Calls: 2, Snapshots: 2, Events: 2, Lines: 8})
						snapshots += m.Snapshots
					}
					if snapshots < 1 || snapshots > 8 {
						t.Errorf("it is tried %d times in an hour", snapshots)
					}
				})
			})
		})
	}
}

// 187: members whose data cannot be compared are asked for their hashes now and then, not
// by each pass that only observes.
func TestMembersAreNotHashedByEachPass(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Etcd.Change = func(r *state.Round) {
			if r.Deep {
				r.Members[1].Problem = "hash of its keys: not done in 10s"
				r.Incomparable = "orders-1: " + r.Members[1].Problem
			}
		}
		w.Running(func(r reconcilertest.Running) {
			for minute, most := range []int{12, 3, 3} {
				statuses := 0
				if minute == 0 {
					statuses = 2 // the status of the cluster, and its phase on the StatefulSet
				}
				if m := r.Minute(); m.Deep > most || m.Deep == 0 || m.Writes > statuses {
					t.Errorf("minute %d: %+v", minute, m)
				}
			}
		})
	}, clustertest.SetVersion("3.6.12"))
}

// anyAction is one of each kind, as a cluster with three members could need it.
func anyAction(w *reconcilertest.World) map[string]action.Action {
	v := w.Look()
	set, pod := string(w.Set().UID), string(w.Pod("orders-2").UID)
	claim := ""
	for _, c := range w.Claims() {
		if c.Name == "data-orders-2" {
			claim = string(c.UID)
		}
	}
	list := []action.Action{
		action.CreateRecord{},
		action.ClaimCluster{To: reconcilertest.Us()},
		action.IssueCertificates{},
		action.ReissueCertificates{Secrets: []string{"orders-server"}},
		action.RenewCertificates{Secrets: []string{"orders-server"}},
		action.IssueClientCertificates{Secrets: []string{"orders-client-checkout"}},
		action.CopyCertificate{Secret: "orders-client-checkout", Namespace: "web"},
		action.DeleteCopy{Secret: "orders-client-checkout", Namespace: "web"},
		action.MakeAuthorities{},
		action.PublishTrust{Secret: "orders-trust-0123456789ab", Bundle: state.BundleBoth},
		action.KeepTrust{Secret: "orders-trust-0123456789ab"},
		action.SwitchCertificates{By: state.ByNext},
		action.RetireAuthorities{Keep: state.ByPresent},
		action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"},
		action.CreateSet{Replicas: 3},
		action.GrowVolume{Claim: "data-orders-2", UID: claim, Member: "orders-2", To: 16 << 30},
		action.RecordHoldings{Volumes: []action.Holding{{Claim: "data-orders-2", UID: claim, Member: "orders-2", PodUID: pod, Holds: "c1"}}},
		action.ReleaseSet{SetUID: set},
		action.TryClass{Class: "fast", Size: 8 << 30},
		action.RecordFormed{ClusterID: "c1", Members: map[string]string{"orders-0": "a0"}, BornOn: "3.5"},
		action.TakeBackup{Member: "orders-1", MemberID: "a1", ClusterID: "c1", For: "3.6.16"},
		action.StartRoll{SetUID: set, Partition: 3, From: "3.6.12", To: "3.6.16"},
		action.MoveLeader{From: "orders-0", FromID: "a0", To: "orders-1", ToID: "a1"},
		action.RestartMember{SetUID: set, Member: "orders-2", Ordinal: 2, PodUID: pod, MemberID: "a2", ByDeletion: true},
		action.Compact{Member: "orders-0", ID: "a0", Revision: 7},
		action.Defragment{Member: "orders-0", ID: "a0"},
		action.Disarm{Alarm: state.NoSpace, MemberID: "a1"},
		action.EndRoll{SetUID: set, Replicas: 3},
		action.BeginJoin{Member: "orders-3"},
		action.AddLearner{Member: "orders-3"},
		action.PromoteMember{Member: "orders-3", ID: "a3"},
		action.EndJoin{Member: "orders-3", ID: "a3"},
		action.DropLearner{Member: "orders-3", ID: "a3"},
		action.BeginLeave{Member: "orders-2", ID: "a2", Why: "it is too many"},
		action.CancelLeave{Member: "orders-2", ID: "a2"},
		action.RemoveMember{Member: "orders-2", ID: "a2"},
		action.EndLeave{Member: "orders-2", ID: "a2"},
		action.EndReplace{Member: "orders-2"},
		action.ResizeSet{SetUID: set, From: 3, To: 4, Partition: 4},
		action.DeletePod{Member: "orders-3", PodUID: "gone"},
		action.DeleteVolume{Claim: "data-orders-3", UID: "gone", Member: "orders-3"},
		action.Hibernate{},
		action.Wake{},
		action.BeginDeletion{},
		action.Revive{},
		action.DeleteObject{ObjectKind: "PodDisruptionBudget", Name: "orders"},
		action.ForgetCluster{},
		action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "t"},
		action.RecordFlushed{Members: map[string]string{"orders-0": "a0"}},
		action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.6", To: "3.5"},
		action.CancelDowngrade{Member: "orders-0", MemberID: "a0", Minor: "3.5"},
		action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", Revision: 7},
		action.RestoreVolume{Member: "orders-1", ClusterID: "c2"},
		action.AdoptRecovery{From: "c1", ClusterID: "c2", Member: "orders-1", MemberID: "b1"},
		action.EndRecovery{OneShot: "c1 from member orders-1", ClusterID: "c2"},
		action.RefuseRecovery{OneShot: "c1 from member orders-1"},
		action.BeginRestore{Restore: "back", Member: "orders-0", Version: "3.6.16", InPlace: true},
		action.CreateVolume{Member: "orders-0", Claim: "data-orders-0"},
		action.EndRestore{Restore: "back"},
		action.MoveMember{Member: "orders-0", MemberID: "a0", URLs: []string{"https://orders-0.orders-peers.shop.svc:2380"}},
		action.ChangeAuth{AuthChange: state.AuthChange{Op: state.AddUser, User: "app"}},
		action.NoteTimes{Seen: []state.Seen{{What: "pod orders-1 (created)", Stamp: time.Now().AddDate(1, 0, 0)}}},
		action.RecordApplied{SpecHash: v.Desired.SpecHash, Version: "3.6.16", Commit: "0a1b2c3"},
	}
	all := map[string]action.Action{}
	for _, a := range list {
		all[strings.TrimPrefix(fmt.Sprintf("%T", a), "action.")] = a
	}
	return all
}

// executed are the kinds of actions in the switch of package execute.
func executed(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "execute/execute.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			for _, kind := range c.List {
				if s, ok := kind.(*ast.SelectorExpr); ok {
					kinds = append(kinds, s.Sel.Name)
				}
			}
		}
		return true
	})
	slices.Sort(kinds)
	return kinds
}

// refuse has the API server answer requests with an error, but those about one resource.
func refuse(w *reconcilertest.World, with error, but string, verbs ...string) {
	w.API.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return slices.Contains(verbs, a.GetVerb()) && a.GetResource().Resource != but, nil, with
	})
}

// failingWorlds are those in which every action is tried: all in one, where nothing but
// the record is changed by them.
func failingWorlds() map[string]struct {
	shared bool
	begin  func(w *reconcilertest.World)
} {
	type world = struct {
		shared bool
		begin  func(w *reconcilertest.World)
	}
	forbidden := apierrors.NewForbidden(corev1.Resource("things"), "orders", errors.New("no"))
	conflict := apierrors.NewConflict(corev1.Resource("things"), "orders", errors.New("it was changed"))
	writes := []string{"create", "update", "patch", "delete"}
	return map[string]world{
		"writes are refused": {true, func(w *reconcilertest.World) { refuse(w, forbidden, "", writes...) }},
		"writes conflict":    {true, func(w *reconcilertest.World) { refuse(w, conflict, "", writes...) }},
		"nothing is read":    {true, func(w *reconcilertest.World) { refuse(w, clustertest.ErrAway, "", append(writes, "get", "list")...) }},
		"all but the record refuses": {true, func(w *reconcilertest.World) {
			refuse(w, forbidden, "configmaps", writes...)
			w.Etcd.Refuse = errors.New("no")
		}},
		"nothing lasts": {false, func(*reconcilertest.World) {}},
	}
}

// 186: whatever an action writes, and wherever it fails, it is not tried faster than its
// back-off; nor is one that goes well and does not last.
func TestNoActionIsTriedFasterThanItsBackOff(t *testing.T) {
	needs.Long(t)
	want := executed(t)
	for name, world := range failingWorlds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if world.shared {
				reconcilertest.Formed(t, func(w *reconcilertest.World) {
					if kinds := slices.Sorted(maps.Keys(anyAction(w))); !slices.Equal(kinds, want) {
						t.Fatalf("kinds %q, want %q", kinds, want)
					}
					actions := anyAction(w)
					world.begin(w)
					tryAll(w, name, want, actions)
				}, nowhere)
				return
			}
			for _, kind := range want {
				reconcilertest.Formed(t, func(w *reconcilertest.World) {
					actions := anyAction(w)
					world.begin(w)
					tryAll(w, name, []string{kind}, actions)
				}, nowhere)
			}
		})
	}
}

// tryAll has quorate want one action after the other, each for three minutes.
func tryAll(w *reconcilertest.World, name string, kinds []string, actions map[string]action.Action) {
	w.Helper()
	var wanted atomic.Pointer[action.Action]
	var tries atomic.Int64
	by := func(state.Desired, state.Observed, time.Time) decision.Plan {
		return decision.Plan{Steps: []decision.Step{{Action: *wanted.Load(), Reason: "the test wants it"}}}
	}
	w.R.PlanBy(by, func(d state.Desired, o state.Observed, now time.Time) decision.Plan {
		tries.Add(1)
		return by(d, o, now)
	})
	first, before := actions[kinds[0]], w.Contents()["ConfigMap orders-record"]
	wanted.Store(&first)
	w.Running(func(r reconcilertest.Running) {
		for _, kind := range kinds {
			act := actions[kind]
			wanted.Store(&act)
			tries.Store(0)
			w.Put(corev1.SchemeGroupVersion.WithResource("configmaps"), before.DeepCopyObject())
			m, n := r.Minute(), tries.Swap(0)
			what := name + ": " + kind
			if n == 0 {
				n = int64(m.Requests) // a try whose first question has no answer
			}
			if n < 5 || n > 16 {
				w.Errorf("%s: %d tries in the first minute", what, n)
			}
			atMost(w.T, what, m, reconcilertest.Minute{Requests: 150, Writes: 30, Rounds: 45, Calls: 100, Snapshots: 12, Events: 36, Lines: 48})
			r.Minute()
			m, n = r.Minute(), tries.Load()
			if n > 2 {
				w.Errorf("%s: %d tries in two minutes later", what, n)
			}
			atMost(w.T, what, m, reconcilertest.Minute{Requests: 25, Writes: 6, Rounds: 6, Calls: 10, Snapshots: 1, Events: 4, Lines: 5})
		}
	})
}
