package execute_test

import (
	"errors"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// attempt is an action that can be applied in a world that was prepared for it.
type attempt struct {
	name    string
	prepare func(w *reconcilertest.World)
	action  func(w *reconcilertest.World) action.Action
	// asks says that etcd is asked to do something.
	asks bool
}

// does is an attempt at an action that needs nothing of the world.
func does(name string, prepare func(w *reconcilertest.World), act action.Action) attempt {
	return attempt{name: name, prepare: prepare, action: func(*reconcilertest.World) action.Action { return act }}
}

// asks is an attempt at one that asks etcd to do something.
func asks(name string, prepare func(w *reconcilertest.World), action action.Action) attempt {
	a := does(name, prepare, action)
	a.asks = true
	return a
}

// onThis is an attempt at an action on what the world has.
func onThis(name string, prepare func(w *reconcilertest.World), action func(w *reconcilertest.World) action.Action) attempt {
	return attempt{name: name, prepare: prepare, action: action}
}

// edited lets somebody add to the StatefulSet.
func edited(w *reconcilertest.World) {
	w.EditSet(func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 7 })
	w.Settle()
}

// restored is the same recovery before its end.
func restored(w *reconcilertest.World) {
	reconcilertest.Asleep(w)
	w.MustDo(restoreOf(w))
	g := w.Record().Recovering
	reconcilertest.First(action.AdoptRecovery{From: "c1", ClusterID: g.NewClusterID, Member: g.Member, MemberID: g.NewMemberID})(w)
}

func restoreOf(w *reconcilertest.World) action.Action {
	return action.RestoreVolume{Member: "orders-1", Claim: "data-orders-1", ClaimUID: claimUID(w, "orders-1"), ClusterID: w.Record().Recovering.NewClusterID}
}

// retired is a cluster that orders-2 has left.
func retired(w *reconcilertest.World) {
	reconcilertest.First(action.BeginLeave{Member: "orders-2", ID: "a2"}, action.RemoveMember{Member: "orders-2", ID: "a2"}, action.EndLeave{Member: "orders-2", ID: "a2"})(w)
}

// attempts are all that quorate does to a formed cluster.
func attempts() []attempt {
	joins := []action.Action{action.BeginJoin{Member: "orders-3"}, action.AddLearner{Member: "orders-3"}}
	leaves := action.BeginLeave{Member: "orders-2", ID: "a2"}
	return []attempt{
		does("create the record", nil, action.CreateRecord{}),
		does("claim", nil, action.ClaimCluster{To: reconcilertest.Claimed(reconcilertest.Us(), 1)}),
		does("issue certificates", func(w *reconcilertest.World) {
			w.MustDo(action.DeleteObject{ObjectKind: "Secret", Name: "orders-client"})
		}, action.IssueCertificates{}),
		does("widen certificates", nil, action.ReissueCertificates{Secrets: []string{"orders-peer"}}),
		does("renew certificates", grownOld, action.RenewCertificates{Secrets: []string{"orders-peer"}}),
		does("issue certificates of clients", func(w *reconcilertest.World) { w.Commit(ofClients("checkout")) },
			action.IssueClientCertificates{Secrets: []string{"orders-client-checkout"}}),
		does("copy a certificate", first(copiedTo("web"), action.IssueClientCertificates{Secrets: []string{"orders-client-checkout"}}),
			action.CopyCertificate{Secret: "orders-client-checkout", Namespace: "web"}),
		does("delete a copy", first(copiedTo("web"), action.IssueClientCertificates{Secrets: []string{"orders-client-checkout"}}, action.CopyCertificate{Secret: "orders-client-checkout", Namespace: "web"}),
			action.DeleteCopy{Secret: "orders-client-checkout", Namespace: "web"}),
		does("make authorities", nil, action.MakeAuthorities{}),
		does("retire", reconcilertest.First(action.MakeAuthorities{}), action.RetireAuthorities{Keep: state.ByPresent}),
		does("headless service", nil, action.ApplyObject{ObjectKind: "Service", Name: "orders-peers"}),
		does("client service", nil, action.ApplyObject{ObjectKind: "Service", Name: "orders-client"}),
		does("budget", nil, action.ApplyObject{ObjectKind: "PodDisruptionBudget", Name: "orders"}),
		does("the set's drift", edited, action.ApplyObject{ObjectKind: "StatefulSet", Name: "orders"}),
		does("formed", nil, action.RecordFormed{ClusterID: "c1", Members: map[string]string{"orders-0": "a0"}}),
		asks("back up", nil, action.TakeBackup{Member: "orders-0", MemberID: "a0", ClusterID: "c1", For: "3.6.17"}),
		asks("move the leader", nil, action.MoveLeader{From: "orders-0", FromID: "a0", To: "orders-1", ToID: "a1"}),
		does("start the roll", edited, action.StartRoll{Partition: 3, To: "3.6.17"}),
		does("restart by partition", nil, action.RestartMember{Member: "orders-2", Partition: 2}),
		onThis("restart by deletion", nil, func(w *reconcilertest.World) action.Action {
			return action.RestartMember{Member: "orders-2", PodUID: string(w.Pod("orders-2").UID), ByDeletion: true}
		}),
		asks("compact", reconcilertest.First(action.TakeBackup{Member: "orders-0", MemberID: "a0", ClusterID: "c1", For: "compaction"}), action.Compact{Member: "orders-0", ID: "a0", Revision: 7}),
		asks("defragment", nil, action.Defragment{Member: "orders-0", ID: "a0"}),
		asks("disarm", nil, action.Disarm{Alarm: state.NoSpace, MemberID: "a1"}),
		does("end the roll", nil, action.EndRoll{Replicas: 2}),
		onThis("grow", func(w *reconcilertest.World) { w.Disks(true) }, func(w *reconcilertest.World) action.Action {
			return action.GrowVolume{Claim: "data-orders-0", UID: claimUID(w, "orders-0"), From: 8 << 30, To: 16 << 30}
		}),
		onThis("record the holdings", nil, func(w *reconcilertest.World) action.Action {
			return action.RecordHoldings{Volumes: []action.Holding{{
				Claim: "data-orders-0", UID: claimUID(w, "orders-0"), Member: "orders-0", PodUID: string(w.Pod("orders-0").UID), Holds: "a0",
			}}}
		}),
		onThis("release", nil, func(w *reconcilertest.World) action.Action { return action.ReleaseSet{SetUID: string(w.Set().UID)} }),
		does("begin to join", nil, joins[0]),
		asks("add the learner", reconcilertest.First(joins[0]), joins[1]),
		asks("promote", reconcilertest.First(joins...), action.PromoteMember{Member: "orders-3", ID: execute.Joined}),
		does("end of the join", reconcilertest.First(append(joins, action.PromoteMember{Member: "orders-3", ID: execute.Joined})...), action.EndJoin{Member: "orders-3", ID: execute.Joined}),
		asks("drop the learner", reconcilertest.First(joins...), action.DropLearner{Member: "orders-3", ID: execute.Joined}),
		does("begin to leave", nil, leaves),
		does("stay", reconcilertest.First(leaves), action.CancelLeave{Member: "orders-2", ID: "a2"}),
		asks("remove", reconcilertest.First(leaves), action.RemoveMember{Member: "orders-2", ID: "a2"}),
		does("has left", reconcilertest.First(leaves, action.RemoveMember{Member: "orders-2", ID: "a2"}), action.EndLeave{Member: "orders-2", ID: "a2"}),
		does("replaced", reconcilertest.First(action.BeginLeave{Member: "orders-2", ID: "a2"}, action.RemoveMember{Member: "orders-2", ID: "a2"}, action.EndLeave{Member: "orders-2", ID: "a2", Replace: true}),
			action.EndReplace{Member: "orders-2"}),
		onThis("resize", nil, func(w *reconcilertest.World) action.Action {
			return action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 4, Partition: 4}
		}),
		onThis("delete the pod", retired, func(w *reconcilertest.World) action.Action {
			return action.DeletePod{Member: "orders-2", PodUID: string(w.Pod("orders-2").UID)}
		}),
		onThis("delete the volume", retired, func(w *reconcilertest.World) action.Action {
			return action.DeleteVolume{Claim: "data-orders-2", UID: claimUID(w, "orders-2"), Member: "orders-2"}
		}),
		does("hibernate", nil, action.Hibernate{}),
		does("begin to delete", nil, action.BeginDeletion{}),
		does("delete the set", nil, action.DeleteObject{ObjectKind: "StatefulSet", Name: "orders"}),
		does("delete a service", nil, action.DeleteObject{ObjectKind: "Service", Name: "orders-client"}),
		does("delete the budget", nil, action.DeleteObject{ObjectKind: "PodDisruptionBudget", Name: "orders"}),
		does("delete a secret", nil, action.DeleteObject{ObjectKind: "Secret", Name: "orders-client-ca"}),
		does("forget", nil, action.ForgetCluster{}),
		asks("nudge", nil, action.ForceSnapshot{Member: "orders-0", MemberID: "a0", Template: "t"}),
		does("flushed", nil, action.RecordFlushed{Members: map[string]string{"orders-0": "a0"}}),
		asks("enable the downgrade", nil, action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.6", To: "3.5"}),
		asks("cancel the downgrade", reconcilertest.First(action.EnableDowngrade{Member: "orders-0", MemberID: "a0", From: "3.6", To: "3.5"}), action.CancelDowngrade{Member: "orders-0", MemberID: "a0", Minor: "3.5"}),
		does("applied", nil, action.RecordApplied{SpecHash: "h", Version: "3.6.17"}),
		does("begin the recovery", reconcilertest.Unready, action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", Revision: 7}),
		onThis("restore", reconcilertest.Asleep, restoreOf),
		does("end the recovery", restored, action.EndRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1"}),
		does("refuse the recovery", nil, action.RefuseRecovery{OneShot: "c1 from member orders-1"}),
	}
}

// Whichever request of an action is refused, the action says so and does nothing
// after it; and the next try carries it out.
func TestARefusedRequestEndsTheAction(t *testing.T) {
	for _, a := range attempts() {
		t.Run(a.name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				if a.prepare != nil {
					a.prepare(w)
				}
				action, r := a.action(w), &execute.Refusing{}
				w.API.PrependReactor("*", "*", r.React)
				for n := int64(1); ; n++ {
					v := w.Look()
					r.Seen.Store(0)
					r.At.Store(n)
					err := w.R.Executor.Execute(w.Context(), v, action)
					r.At.Store(0)
					w.Settle()
					if r.Seen.Load() < n {
						if err != nil {
							t.Errorf("after %d refusals: %v", n-1, err)
						}
						return
					}
					if !errors.Is(err, clustertest.ErrAway) || errors.Is(err, state.ErrChanged) {
						t.Errorf("request %d was refused, and the error is %v", n, err)
					}
					if later := r.Later.Load(); later != nil {
						t.Fatalf("after request %d was refused: %s", n, *later)
					}
				}
			})
		})
	}
}

// I3: what is deleted is the object that was seen, by its UID: one that has taken its
// name in between stays. That somebody was faster counts as done.
func TestADeletionNamesTheVeryObject(t *testing.T) {
	for _, a := range attempts() {
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			if a.prepare != nil {
				a.prepare(w)
			}
			act, v := a.action(w), w.Look()
			w.API.PrependReactor("delete", "*", func(request clienttesting.Action) (bool, runtime.Object, error) {
				remove, _ := request.(clienttesting.DeleteActionImpl)
				p := remove.DeleteOptions.Preconditions
				// What a restore leaves behind has a name that nobody can guess.
				if _, ends := act.(action.EndRecovery); !ends && (p == nil || p.UID == nil || *p.UID == "") {
					t.Errorf("%s deletes whatever is called %s", a.name, remove.GetName())
				}
				return true, nil, apierrors.NewNotFound(request.GetResource().GroupResource(), remove.GetName())
			})
			if err := w.R.Executor.Execute(w.Context(), v, act); err != nil {
				t.Errorf("%s, after somebody else was faster: %v", a.name, err)
			}
		})
	}
}

// What etcd refuses is said, and not recorded as done.
func TestWhatEtcdRefusesIsNotRecorded(t *testing.T) {
	refused := errors.New("etcd refuses")
	for _, a := range attempts() {
		if !a.asks {
			continue
		}
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			if a.prepare != nil {
				a.prepare(w)
			}
			act, before := a.action(w), w.Record()
			w.Etcd.Refuse = refused
			if err := w.Do(act); !errors.Is(err, refused) {
				t.Errorf("%s: %v", a.name, err)
			}
			after := w.Record()
			if _, cancels := act.(action.CancelDowngrade); cancels && after.Downgrade == nil {
				t.Error("the record forgets a downgrade that etcd goes on with")
			}
			// What is intended is recorded before etcd is asked.
			after.Revision, after.Nudged, after.Downgrade, after.BornOn, after.Flushed = before.Revision, before.Nudged, before.Downgrade, before.BornOn, before.Flushed
			after.BackupBegun = before.BackupBegun
			if after.Joining != nil {
				after.Joining.Promoting = before.Joining.Promoting
			}
			if !reflect.DeepEqual(before, after) {
				t.Errorf("%s: the record was %+v and is %+v", a.name, before, after)
			}
		})
	}
}

// I3: who answers for a member is asked who it is, and nobody else is asked to do
// anything in its place.
func TestOnlyTheMemberThatWasMeantIsAsked(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		for _, a := range []action.Action{
			action.TakeBackup{Member: "orders-0", MemberID: "b0", ClusterID: "c1", For: "3.6.17"},
			action.MoveLeader{From: "orders-0", FromID: "b0", To: "orders-1", ToID: "a1"},
			action.Compact{Member: "orders-0", ID: "b0", Revision: 7},
			action.Defragment{Member: "orders-0", ID: "b0"},
			action.ForceSnapshot{Member: "orders-0", MemberID: "b0", Template: "t"},
			action.EnableDowngrade{Member: "orders-0", MemberID: "b0", From: "3.6", To: "3.5"},
			action.CancelDowngrade{Member: "orders-0", MemberID: "b0", Minor: "3.5"},
		} {
			v := w.Look()
			w.Etcd.Calls = nil
			for _, clusterID := range []string{"c1", "c2"} {
				v.Record.ClusterID = clusterID
				if err := w.R.Executor.Execute(w.Context(), v, a); !errors.Is(err, reconcilertest.ErrAnotherMember) || len(w.Etcd.Calls) > 0 {
					t.Errorf("%s in %s: %v, calls %q", a, clusterID, err, w.Etcd.Calls)
				}
			}
		}
	}, clustertest.SkipBackup)
}
