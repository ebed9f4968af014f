package execute_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func claimsOf(w *reconcilertest.World) []string {
	w.Helper()
	var names []string
	list, err := w.API.CoreV1().PersistentVolumeClaims("shop").List(w.Context(), metav1.ListOptions{LabelSelector: naming.LabelCluster + "=orders"})
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

// claimUID is the UID of a member's claim.
func claimUID(w *reconcilertest.World, member string) string {
	w.Helper()
	object, err := w.API.Tracker().Get(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "shop", naming.ClaimPrefix+"-"+member)
	if err != nil {
		w.Fatal(err)
	}
	claim, _ := object.(*corev1.PersistentVolumeClaim)
	return string(claim.UID)
}

// stepsOf executes each action twice, and lets the world answer.
func stepsOf(w *reconcilertest.World, actions ...action.Action) {
	w.Helper()
	for _, a := range actions {
		twice(w, a)
		w.Settle()
	}
}

// A member comes and goes again, each action applied twice: a learner with
// its pod, a vote, the way out, and the volume last.
func TestMemberComesAndGoes(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		uid := string(w.Set().UID)
		stepsOf(w, action.BeginJoin{Member: "orders-3"})
		if j := w.Record().Joining; j == nil || j.Member != "orders-3" || j.ID != "" || !j.Since.Equal(time.Now()) {
			t.Errorf("joining %+v", j)
		}
		stepsOf(w, action.AddLearner{Member: "orders-3"})
		if j := w.Record().Joining; j.ID != execute.Joined || j.Promoting {
			t.Errorf("joining %+v", j)
		}
		stepsOf(w, action.ResizeSet{SetUID: uid, From: 3, To: 4, Partition: 4})
		if w.Pod("orders-3") == nil || observe.Partition(w.Set()) != 4 {
			t.Error("the learner has no pod")
		}
		stepsOf(w, action.PromoteMember{Member: "orders-3", ID: execute.Joined})
		if !w.Record().Joining.Promoting {
			t.Error("that it may be a voter was not written down")
		}
		stepsOf(w, action.EndJoin{Member: "orders-3", ID: execute.Joined})
		if r := w.Record(); r.Joining != nil || r.Members["orders-3"] != execute.Joined || len(r.Members) != 4 {
			t.Errorf("the record is %+v", r)
		}
		stepsOf(w, action.BeginLeave{Member: "orders-3", ID: execute.Joined, Why: "Git wants three"})
		if l := w.Record().Leaving; l == nil || l.Member != "orders-3" || l.ID != execute.Joined || l.Why != "Git wants three" || !l.Since.Equal(time.Now()) {
			t.Errorf("leaving %+v", l)
		}
		stepsOf(w, action.RemoveMember{Member: "orders-3", ID: execute.Joined}, action.EndLeave{Member: "orders-3", ID: execute.Joined})
		if r := w.Record(); r.Leaving != nil || len(r.Members) != 3 || r.Retired["orders-3"] != execute.Joined {
			t.Errorf("the record is %+v", r)
		}
		stepsOf(w, action.ResizeSet{SetUID: uid, From: 4, To: 3, Partition: 3})
		if w.Pod("orders-3") != nil || len(claimsOf(w)) != 4 {
			t.Errorf("the pod stays, or its volume went with it: %q", claimsOf(w))
		}
		stepsOf(w, action.DeleteVolume{Claim: "data-orders-3", UID: claimUID(w, "orders-3"), Member: "orders-3"})
		if r := w.Record(); len(r.Retired) != 0 || len(claimsOf(w)) != 3 {
			t.Errorf("the record is %+v, the claims are %q", r, claimsOf(w))
		}
		want := []string{"add learner https://orders-3.orders-peers.shop.svc:2380", "promote " + execute.Joined, "remove " + execute.Joined}
		if !slices.Equal(w.Etcd.Calls, want) {
			t.Errorf("calls %q, want %q", w.Etcd.Calls, want)
		}
	})
}

// The number of pods is changed, and no pod gets another template by that: not
// even in the middle of a roll.
func TestResizeKeepsTheTemplate(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := w.Set().Spec.Template
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.MustDo(action.BeginJoin{Member: "orders-3"})
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 4, Partition: 4})
		w.Settle()
		if after := w.Set(); !reflect.DeepEqual(after.Spec.Template, before) || *after.Spec.Replicas != 4 || observe.Partition(after) != 4 {
			t.Errorf("%d replicas, partition %d, the template is that of %s", *after.Spec.Replicas, observe.Partition(after), after.Spec.Template.Annotations[naming.AnnotationVersion])
		}
		for _, wrong := range []action.ResizeSet{{SetUID: "another", From: 4, To: 5}, {SetUID: string(w.Set().UID), From: 3, To: 5}} {
			if err := w.Do(wrong); !errors.Is(err, state.ErrChanged) {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
	}, clustertest.SetVersion("3.6.12"))
}

// While a member comes or goes its StatefulSet is as the last step left it: what
// Git wants in the end is no drift.
func TestMembersOnTheirWayAreNoDrift(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.BeginJoin{Member: "orders-3"})
		w.MustDo(action.AddLearner{Member: "orders-3"})
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 4, Partition: 4})
		w.Settle()
		for _, o := range w.Look().Observed.Objects {
			if o.Kind == "StatefulSet" && o.State != state.ObjectInSync {
				t.Errorf("%+v", o)
			}
		}
		w.MustDo(action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"})
		if n := *w.Set().Spec.Replicas; n != 4 {
			t.Errorf("applying it made %d replicas", n)
		}
	})
}

// A change of the list goes through those who vote: not through a learner, which
// refuses it, and not through the member that is to go, which may never answer.
func TestOnlyVotersAreAskedForAChange(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		through := func(a action.Action, want ...string) {
			t.Helper()
			if w.MustDo(a); !slices.Equal(w.Etcd.Asked, want) {
				t.Errorf("%s goes through %q, want %q", a, w.Etcd.Asked, want)
			}
		}
		w.MustDo(action.BeginJoin{Member: "orders-3"})
		through(action.AddLearner{Member: "orders-3"}, "orders-0", "orders-1", "orders-2")
		w.MustDo(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 4, Partition: 4})
		w.Settle()
		through(action.PromoteMember{Member: "orders-3", ID: execute.Joined}, "orders-0", "orders-1", "orders-2")
		w.MustDo(action.EndJoin{Member: "orders-3", ID: execute.Joined})
		w.MustDo(action.BeginLeave{Member: "orders-1", ID: "a1"})
		through(action.RemoveMember{Member: "orders-1", ID: "a1"}, "orders-0", "orders-2", "orders-3")
	})
}

// A learner whose ID is known is not added once more, not even when somebody has
// removed it: its volume is that of the first.
func TestAKnownLearnerIsNotAddedAgain(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.BeginJoin{Member: "orders-3"})
		w.MustDo(action.AddLearner{Member: "orders-3"})
		w.Etcd.Members = w.Etcd.Members[:3]
		delete(w.Etcd.Learners, "orders-3")
		if w.MustDo(action.AddLearner{Member: "orders-3"}); !unlisted(w, "orders-3") || w.Record().Joining.ID != execute.Joined {
			t.Errorf("the members are %q, joining %+v", w.Etcd.Members, w.Record().Joining)
		}
	})
}

// leaving is a world of five members in which orders-4 is being deleted.
func leaving(t *testing.T, test func(w *reconcilertest.World)) {
	t.Helper()
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.BeginLeave{Member: "orders-4", ID: "a4", Why: "test"})
		test(w)
	}, clustertest.SetReplicas(5))
}

// unlisted reports whether a member is still in etcd's list.
func unlisted(w *reconcilertest.World, name string) bool {
	return !slices.Contains(w.Etcd.Members, name)
}

// I1: a removal that would leave no quorum is refused by what the members say at
// that moment, whatever was decided before.
func TestRemovalLooksAtTheQuorumItself(t *testing.T) {
	remove := action.RemoveMember{Member: "orders-4", ID: "a4"}
	for name, test := range map[string]struct {
		change func(*state.Round)
		want   string
	}{
		"two others are ill": {func(r *state.Round) { r.Members[0].Problem, r.Members[1].Problem = "ill", "ill" }, "only 2 are well, and a quorum is 3"},
		"they have no leader": {func(r *state.Round) {
			for i := range r.Members {
				r.Members[i].Leader = ""
			}
		}, "only 0 are well"},
		"a learner is there": {func(r *state.Round) { r.Members[1].Learner = true }, "is a learner"},
		"there is no list":   {func(r *state.Round) { r.Problem = "nobody answers" }, "list the members: nobody answers"},
		"another cluster":    {func(r *state.Round) { r.ClusterID = "c2" }, "another cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			leaving(t, func(w *reconcilertest.World) {
				w.Etcd.Change = test.change
				backuptest.WantError(t, w.Do(remove), "remove orders-4", test.want)
				if unlisted(w, "orders-4") {
					t.Error("it was removed")
				}
			})
		})
	}
	for name, change := range map[string]func(*state.Round){
		"one other is ill, and the one that goes": func(r *state.Round) { r.Members[0].Problem, r.Members[4].Problem = "ill", "ill" },
		"the one that goes is a learner":          func(r *state.Round) { r.Members[4].Learner = true },
	} {
		t.Run(name, func(t *testing.T) {
			leaving(t, func(w *reconcilertest.World) {
				w.Etcd.Change = change
				if w.MustDo(remove); !unlisted(w, "orders-4") {
					t.Error("it was not removed")
				}
			})
		})
	}
}

// I24: an answer that was lost after the change leaves an error, and the next try
// finds it done.
func TestMembershipAfterALostAnswer(t *testing.T) {
	lost := errors.New("the answer was lost")
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		calls := func() int { return len(w.Etcd.Calls) }
		w.MustDo(action.BeginJoin{Member: "orders-3"})
		for i, a := range []action.Action{
			action.AddLearner{Member: "orders-3"},
			action.PromoteMember{Member: "orders-3", ID: execute.Joined},
			action.RemoveMember{Member: "orders-3", ID: execute.Joined},
		} {
			if i == 2 {
				w.MustDo(action.EndJoin{Member: "orders-3", ID: execute.Joined})
				w.MustDo(action.BeginLeave{Member: "orders-3", ID: execute.Joined})
			}
			w.Etcd.LoseAnswer = lost
			if err := w.Do(a); !errors.Is(err, lost) {
				t.Errorf("%s: %v", a, err)
			}
			w.Etcd.LoseAnswer = nil
			if w.MustDo(a); calls() != i+1 {
				t.Errorf("%s: calls %q", a, w.Etcd.Calls)
			}
		}
		if len(w.Etcd.Members) != 3 {
			t.Errorf("the members are %q", w.Etcd.Members)
		}
	})
}

// The intent is in the record before etcd is asked: where it is not, nobody asks.
func TestNoMembershipChangeWithoutAnIntent(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		for _, a := range []action.Action{
			action.AddLearner{Member: "orders-3"},
			action.PromoteMember{Member: "orders-2", ID: "a2"},
			action.EndJoin{Member: "orders-3", ID: "a3"},
			action.RemoveMember{Member: "orders-2", ID: "a2"},
			action.EndLeave{Member: "orders-2", ID: "a2"},
			action.BeginJoin{Member: "orders-2"},
			action.BeginLeave{Member: "orders-2", ID: "another"},
			action.DeletePod{Member: "orders-2", PodUID: string(w.Pod("orders-2").UID)},
			action.DeleteVolume{Member: "orders-2", Claim: "data-orders-2", UID: claimUID(w, "orders-2")},
		} {
			if err := w.Do(a); !errors.Is(err, state.ErrChanged) {
				t.Errorf("%s: %v", a, err)
			}
		}
		w.MustDo(action.DropLearner{Member: "orders-3", ID: "a3"}) // dropped already
		if writes := w.API.Writes(); len(writes) > 0 || len(w.Etcd.Calls) > 0 {
			t.Errorf("writes %q, calls %q", writes, w.Etcd.Calls)
		}
	})
}

// Two members are never on their way at once.
func TestOneMemberMovesAtATime(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.BeginJoin{Member: "orders-3"})
		refused := func(actions ...action.Action) {
			t.Helper()
			w.Etcd.Asked = nil
			for _, a := range actions {
				if err := w.Do(a); !errors.Is(err, state.ErrChanged) || len(w.Etcd.Asked) > 0 {
					t.Errorf("%s: %v, through %q", a, err, w.Etcd.Asked)
				}
			}
		}
		refused(action.BeginJoin{Member: "orders-4"}, action.BeginLeave{Member: "orders-2", ID: "a2"}, action.AddLearner{Member: "orders-4"})
		w.MustDo(action.AddLearner{Member: "orders-3"})
		refused(action.DropLearner{Member: "orders-4", ID: execute.Joined})
	})
	leaving(t, func(w *reconcilertest.World) {
		for _, a := range []action.Action{
			action.BeginJoin{Member: "orders-5"},
			action.BeginLeave{Member: "orders-3", ID: "a3"},
			action.RemoveMember{Member: "orders-3", ID: "a3"},
			action.RemoveMember{Member: "orders-3", ID: "a4"},
			action.RemoveMember{Member: "orders-4", ID: "a3"},
			action.CancelLeave{Member: "orders-3", ID: "a3"},
		} {
			if err := w.Do(a); !errors.Is(err, state.ErrChanged) {
				t.Errorf("%s: %v", a, err)
			}
		}
		if len(w.Etcd.Members) != 5 {
			t.Errorf("the members are %q", w.Etcd.Members)
		}
	})
}

// What does not fit the record leaves it as it is, whatever it has tried.
func TestAChangeThatDoesNotFitIsNotWritten(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		err := w.R.Executor.NoteIf(w.Context(), w.Look(), func(m *record.Record) bool {
			m.Replacing = "orders-1"
			return false
		})
		if writes := w.API.Writes(); !errors.Is(err, state.ErrChanged) || len(writes) > 0 || w.Record().Replacing != "" {
			t.Errorf("error %v, writes %q, record %+v", err, writes, w.Record())
		}
	})
}

// A learner that never caught up is dropped, its volume retired, and the next try
// counted; one that was promoted after all is never dropped.
func TestDropLearner(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		for try := 1; try <= 2; try++ {
			id := "a3" + strings.Repeat("f", try)
			w.MustDo(action.BeginJoin{Member: "orders-3", Replace: true})
			w.MustDo(action.AddLearner{Member: "orders-3"})
			stepsOf(w, action.DropLearner{Member: "orders-3", ID: id, Retire: true, Failed: true, Replace: true})
			r := w.Record()
			if r.Joining != nil || r.Retired["orders-3"] != id || r.Replacing != "orders-3" || !unlisted(w, "orders-3") {
				t.Errorf("the record is %+v", r)
			}
			if f := r.FailedJoin; f == nil || f.Member != "orders-3" || f.Times != try || !f.At.Equal(time.Now()) {
				t.Errorf("failed join %+v", f)
			}
		}
		stepsOf(w, action.EndReplace{Member: "orders-3"})
		if r := w.Record(); r.Replacing != "" {
			t.Errorf("the record is %+v", r)
		}
		// Nobody knows whether etcd was asked: the address tells.
		w.MustDo(action.BeginJoin{Member: "orders-3"})
		w.Etcd.LoseAnswer = errors.New("lost")
		if err := w.Do(action.AddLearner{Member: "orders-3"}); err == nil {
			t.Error("the answer was not lost")
		}
		w.Etcd.LoseAnswer = nil
		stepsOf(w, action.DropLearner{Member: "orders-3"})
		if !unlisted(w, "orders-3") || w.Record().Joining != nil {
			t.Errorf("the members are %q, the record is %+v", w.Etcd.Members, w.Record())
		}
		w.MustDo(action.BeginJoin{Member: "orders-3"})
		w.MustDo(action.AddLearner{Member: "orders-3"})
		id := w.Record().Joining.ID
		w.MustDo(action.PromoteMember{Member: "orders-3", ID: id})
		if err := w.Do(action.DropLearner{Member: "orders-3", ID: id}); !errors.Is(err, etcd.ErrIsVoter) || unlisted(w, "orders-3") {
			t.Errorf("a voter: %v, the members are %q", err, w.Etcd.Members)
		}
		w.MustDo(action.EndJoin{Member: "orders-3", ID: id})
		if f := w.Record().FailedJoin; f != nil {
			t.Errorf("failed join %+v after one that went well", f)
		}
	})
}

// A member is kept as long as etcd has it, and taken off the record only when
// etcd has it no more.
func TestTheListDecidesWhoHasLeft(t *testing.T) {
	leaving(t, func(w *reconcilertest.World) {
		if err := w.Do(action.EndLeave{Member: "orders-4", ID: "a4"}); !errors.Is(err, state.ErrChanged) || w.Record().Members["orders-4"] == "" {
			t.Errorf("before it was removed: %v", err)
		}
		w.MustDo(action.RemoveMember{Member: "orders-4", ID: "a4"})
		if err := w.Do(action.CancelLeave{Member: "orders-4", ID: "a4"}); !errors.Is(err, state.ErrChanged) || w.Record().Leaving == nil {
			t.Errorf("after it was removed: %v", err)
		}
		w.Etcd.Change = func(r *state.Round) { r.Problem = "nobody answers" }
		backuptest.WantError(t, w.Do(action.EndLeave{Member: "orders-4", ID: "a4"}), "record that orders-4 has left", "nobody answers")
		w.Etcd.Change = nil
		stepsOf(w, action.EndLeave{Member: "orders-4", ID: "a4", Replace: true})
		if r := w.Record(); r.Replacing != "orders-4" || r.Retired["orders-4"] != "a4" || r.Members["orders-4"] != "" {
			t.Errorf("the record is %+v", r)
		}
		stepsOf(w, action.BeginJoin{Member: "orders-4", Replace: true})
		if r := w.Record(); r.Replacing != "" || !r.Joining.Replace {
			t.Errorf("the record is %+v", r)
		}
	})
	leaving(t, func(w *reconcilertest.World) {
		stepsOf(w, action.CancelLeave{Member: "orders-4", ID: "a4"})
		if r := w.Record(); r.Leaving != nil || len(r.Members) != 5 {
			t.Errorf("the record is %+v", r)
		}
	})
}

// guardSays lets the guard of a pod refuse, with an exit code.
func guardSays(w *reconcilertest.World, member string, code int32) {
	w.Helper()
	pod := w.Pod(member)
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{clustertest.Ended(naming.ContainerGuard, code, "Error", "the volume is not its own")}
	w.Put(reconcilertest.PodsResource(), pod)
	w.Settle()
}

// I6: a volume goes only when its member has left, by the record and by etcd's
// list, and only the very claim that was seen.
func TestVolumeGoesLast(t *testing.T) {
	leaving(t, func(w *reconcilertest.World) {
		uid := claimUID(w, "orders-4")
		volume := action.DeleteVolume{Claim: "data-orders-4", UID: uid, Member: "orders-4"}
		kept := func(when, want string) {
			t.Helper()
			err := w.Do(volume)
			if err == nil || !strings.Contains(err.Error(), want) || len(claimsOf(w)) != 5 {
				t.Errorf("%s: %v, the claims are %q", when, err, claimsOf(w))
			}
		}
		kept("while it is a member", state.ErrChanged.Error())
		w.MustDo(action.RemoveMember{Member: "orders-4", ID: "a4"})
		kept("before that is recorded", state.ErrChanged.Error())
		w.MustDo(action.EndLeave{Member: "orders-4", ID: "a4"})
		w.Etcd.Change = func(r *state.Round) { r.Members = append(r.Members, state.Member{ID: "a4", Problem: "no pod"}) }
		kept("while etcd lists it", "etcd's list still has member a4")
		w.Etcd.Change = func(r *state.Round) { r.Problem = "nobody answers" }
		kept("while nobody answers", "nobody answers")
		w.Etcd.Change = nil
		volume.UID = "another"
		kept("of another UID", state.ErrChanged.Error())
		volume.UID = ""
		kept("that was thought to be gone", state.ErrChanged.Error())
		volume.UID, volume.Claim = claimUID(w, "orders-3"), "data-orders-3"
		kept("of another member", state.ErrChanged.Error())
		volume.UID, volume.Claim = uid, "data-orders-4"
		guardSays(w, "orders-4", guard.ExitForeign)
		kept("with somebody else's data", "its guard reports that the data may be foreign: guard: the volume is not its own")
		guardSays(w, "orders-4", guard.ExitOutdated)
		stepsOf(w, volume)
		if len(claimsOf(w)) != 4 || len(w.Record().Retired) != 0 {
			t.Errorf("the claims are %q, the record is %+v", claimsOf(w), w.Record())
		}
	})
	t.Run("once", func(t *testing.T) {
		leaving(t, func(w *reconcilertest.World) {
			reconcilertest.First(action.RemoveMember{Member: "orders-4", ID: "a4"}, action.EndLeave{Member: "orders-4", ID: "a4"})(w)
			claim := w.Claims()[4]
			claim.DeletionTimestamp, claim.Finalizers = &metav1.Time{Time: time.Now()}, []string{"test/hold"}
			w.Put(reconcilertest.ClaimsResource(), claim)
			w.API.ClearActions()
			w.MustDo(action.DeleteVolume{Claim: claim.Name, UID: string(claim.UID), Member: "orders-4"})
			if writes := w.API.Writes(); slices.Contains(writes, "delete persistentvolumeclaims "+claim.Name) {
				t.Errorf("a claim that is about to go is deleted: %q", writes)
			}
		})
	})
	for name, test := range map[string]struct {
		joins []action.Action
		want  error
		left  int
	}{
		"of one who joins again":    {[]action.Action{action.BeginJoin{Member: "orders-4"}, action.AddLearner{Member: "orders-4"}}, state.ErrChanged, 5},
		"of one who is to be added": {[]action.Action{action.BeginJoin{Member: "orders-4"}}, nil, 4},
		"while another one joins":   {[]action.Action{action.BeginJoin{Member: "orders-5"}, action.AddLearner{Member: "orders-5"}}, nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			leaving(t, func(w *reconcilertest.World) {
				reconcilertest.First(append([]action.Action{action.RemoveMember{Member: "orders-4", ID: "a4"}, action.EndLeave{Member: "orders-4", ID: "a4"}}, test.joins...)...)(w)
				err := w.Do(action.DeleteVolume{Claim: "data-orders-4", UID: claimUID(w, "orders-4"), Member: "orders-4"})
				if !errors.Is(err, test.want) || len(claimsOf(w)) != test.left {
					t.Errorf("%v, the claims are %q", err, claimsOf(w))
				}
			})
		})
	}
}

// I6, I12: in a cluster that is being deleted the members' volumes go, too, but not
// before its StatefulSet is gone; and what is not labelled as this cluster's stays.
func TestVolumesOfADeletedCluster(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		volume := action.DeleteVolume{Claim: "data-orders-2", UID: claimUID(w, "orders-2"), Member: "orders-2"}
		kept := func(when string) {
			t.Helper()
			if err := w.Do(volume); !errors.Is(err, state.ErrChanged) || len(claimsOf(w)) != 3 {
				t.Errorf("%s: %v, the claims are %q", when, err, claimsOf(w))
			}
		}
		w.MustDo(action.BeginDeletion{})
		kept("while the StatefulSet stands")
		if err := w.API.Tracker().Delete(reconcilertest.SetsResource(), "shop", "orders"); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if err := w.Do(action.ResizeSet{From: 3, To: 4}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("a StatefulSet that is gone is resized: %v", err)
		}
		w.MustDo(action.Revive{})
		kept("when Git wants it back")
		w.MustDo(action.BeginDeletion{})
		if twice(w, volume); len(claimsOf(w)) != 2 {
			t.Errorf("the claims are %q", claimsOf(w))
		}
		other := w.Claims()[0]
		other.Labels[naming.LabelCluster] = "invoices"
		w.Put(reconcilertest.ClaimsResource(), other)
		volume = action.DeleteVolume{Claim: other.Name, UID: string(other.UID), Member: "orders-0"}
		if err := w.Do(volume); !errors.Is(err, state.ErrChanged) || len(w.Claims()) != 2 {
			t.Errorf("the claim of another cluster: %v", err)
		}
	})
}

// I3: only the very pod that was seen is deleted.
func TestDeletePodOfNoMember(t *testing.T) {
	leaving(t, func(w *reconcilertest.World) {
		w.MustDo(action.RemoveMember{Member: "orders-4", ID: "a4"})
		w.MustDo(action.EndLeave{Member: "orders-4", ID: "a4"})
		if err := w.Do(action.DeletePod{Member: "orders-4", PodUID: "another"}); !apierrors.IsConflict(err) || w.Pod("orders-4") == nil {
			t.Errorf("with another UID: %v", err)
		}
		gone := action.DeletePod{Member: "orders-4", PodUID: string(w.Pod("orders-4").UID)}
		if twice(w, gone); w.Pod("orders-4") != nil {
			t.Error("the pod is still there")
		}
	})
}

// The budget follows those who vote now, not those whom Git wants in the end.
func TestBudgetFollowsTheVoters(t *testing.T) {
	for name, test := range map[string]struct {
		rec  record.Record
		pods int32
		want int32
	}{
		"one":                               {recordOf(1, record.Membership{}), 1, 1},
		"three":                             {recordOf(3, record.Membership{}), 3, 2},
		"a learner's pod beside one voter":  {recordOf(1, record.Membership{Joining: &record.Joining{Member: "orders-1", ID: "a1"}}), 2, 2},
		"a learner's pod beside three":      {recordOf(3, record.Membership{Joining: &record.Joining{Member: "orders-3", ID: "a3"}}), 4, 3},
		"five of which one goes":            {recordOf(5, record.Membership{Leaving: &record.Leaving{Member: "orders-4"}}), 5, 4},
		"three of which one goes":           {recordOf(3, record.Membership{Leaving: &record.Leaving{Member: "orders-2"}}), 3, 3},
		"two, and a pod that has no member": {recordOf(2, record.Membership{Retired: map[string]string{"orders-2": "a2"}}), 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			// Git wants seven in the end.
			c := clustertest.Orders(clustertest.SetReplicas(7))
			o := reconcilertest.OrdersOptions()
			o.Replicas, o.Disruptions = new(test.pods), new(observe.Disruptions(test.rec, c))
			m, err := manifests.Render(c, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.PDB.Spec.MinAvailable.IntVal; got != test.want || *m.StatefulSet.Spec.Replicas != test.pods {
				t.Errorf("%d must stay and not %d; %d replicas", got, test.want, *m.StatefulSet.Spec.Replicas)
			}
		})
	}
}

func recordOf(members int, moving record.Membership) record.Record {
	r := record.New("token")
	r.ClusterID, r.Membership = "c1", moving
	for i := range members {
		name := naming.Member(schema.EtcdCluster{}.Metadata.Name, int32(i))
		r.Members["orders"+name] = reconcilertest.FakeMemberID(name)
	}
	return r
}

// What Git wants reaches the StatefulSet and the budget only through the steps
// that change the members.
func TestReplicasFollowTheMembers(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetReplicas(5))
		m := w.Rendered(w.Look())
		if n, stay := *m.StatefulSet.Spec.Replicas, m.PDB.Spec.MinAvailable.IntVal; n != 3 || stay != 2 {
			t.Errorf("%d replicas, %d must stay", n, stay)
		}
	})
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetReplicas(3))
		m := w.Rendered(w.Look())
		if n, stay := *m.StatefulSet.Spec.Replicas, m.PDB.Spec.MinAvailable.IntVal; n != 5 || stay != 4 {
			t.Errorf("%d replicas, %d must stay", n, stay)
		}
	}, clustertest.SetReplicas(5))
	// Before forming it is the number that the cluster was begun with.
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.MustDo(action.CreateRecord{})
		w.Commit(clustertest.SetReplicas(5))
		synctest.Wait()
		if n := *w.Rendered(w.Look()).StatefulSet.Spec.Replicas; n != 3 {
			t.Errorf("%d replicas", n)
		}
	})
}

// Certificates for fewer members than Git wants are reissued by the same
// authority, and nothing else of them is touched.
func TestWidenCertificates(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		before := map[string]*corev1.Secret{}
		for _, name := range []string{"orders-ca", "orders-peer-ca", "orders-server", "orders-client", "orders-peer"} {
			secret, _ := w.Contents()["Secret "+name].(*corev1.Secret)
			before[name] = secret.DeepCopy()
		}
		c := w.Wish.EtcdCluster
		for _, l := range certs.Leaves(c, w.R.Options.Render.ClusterDomain) {
			l.Members = l.Members[:min(3, len(l.Members))]
			leaf, err := certs.NewLeaf(c, l, before[l.Authority], time.Now())
			if err != nil {
				t.Fatal(err)
			}
			secret := before[l.Secret].DeepCopy()
			secret.Data = leaf.Data
			w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), secret)
			before[l.Secret] = secret
		}
		w.Settle()
		w.Commit(clustertest.SetReplicas(5))
		narrow := w.Look().Observed.Certificates.MissingSANs
		if want := []string{"orders-server", "orders-peer"}; !slices.Equal(narrow, want) {
			t.Fatalf("narrow %q, want %q", narrow, want)
		}
		stepsOf(w, action.ReissueCertificates{Secrets: narrow[:1]})
		if left := w.Look().Observed.Certificates.MissingSANs; !slices.Equal(left, narrow[1:]) {
			t.Errorf("narrow are %q, want what was not named", left)
		}
		stepsOf(w, action.ReissueCertificates{Secrets: narrow})
		if c := w.Look().Observed.Certificates; len(c.MissingSANs)+len(c.Problems)+len(c.Missing) > 0 {
			t.Errorf("%+v", c)
		}
		for name, was := range before {
			is, _ := w.Contents()["Secret "+name].(*corev1.Secret)
			if changed := !reflect.DeepEqual(was.Data, is.Data); changed != slices.Contains(narrow, name) || is.UID != was.UID {
				t.Errorf("%s: changed %v", name, changed)
			}
		}
		w.MustDo(action.DeleteObject{ObjectKind: "Secret", Name: "orders-client"})
		if err := w.Do(action.ReissueCertificates{Secrets: narrow}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("beside one that is missing: %v", err)
		}
	})
}
