package execute_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestClaimIsIdempotent(t *testing.T) {
	for name, c := range map[string]struct{ has, from state.Owner }{
		"of nobody's cluster": {},
		"of another's":        {reconcilertest.Claimed(reconcilertest.Them(), 1), reconcilertest.Claimed(reconcilertest.Them(), 1)},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				if !c.has.Nobody() {
					w.MustDo(action.ClaimCluster{To: c.has})
				}
				twice(w, action.ClaimCluster{From: c.from, To: reconcilertest.Claimed(reconcilertest.Us(), 2)})
				if got := w.Owner(); got != reconcilertest.Claimed(reconcilertest.Us(), 2).String() {
					t.Errorf("the owner is %q", got)
				}
			})
		})
	}
}

// 142: of two daemons that reach for one cluster, the second lets go.
func TestAFasterOwnerStaysTheOwner(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.ClaimCluster{To: reconcilertest.Claimed(reconcilertest.Them(), 1)})
		if err := w.Do(action.ClaimCluster{To: reconcilertest.Claimed(reconcilertest.Us(), 1)}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("error %v", err)
		}
		if got := w.Owner(); got != reconcilertest.Claimed(reconcilertest.Them(), 1).String() {
			t.Errorf("the owner is %q", got)
		}
	})
}

// A daemon that had decided before the cluster changed hands writes nothing down.
func TestFormerOwnerWritesNoRecord(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.As(reconcilertest.Us())
		w.UntilIdle()
		v := w.Look()
		w.MustDo(action.ClaimCluster{From: reconcilertest.Claimed(reconcilertest.Us(), 1), To: reconcilertest.Claimed(reconcilertest.Them(), 2)})
		err := w.R.Executor.Execute(w.Context(), v, action.RecordApplied{SpecHash: "h", Version: "9.9.9"})
		if !errors.Is(err, state.ErrChanged) || w.Record().Applied.Version == "9.9.9" {
			t.Errorf("error %v, applied %+v", err, w.Record().Applied)
		}
	})
}

func TestNewClusterHasAnOwnerFromTheStart(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.As(reconcilertest.Us())
		w.MustDo(action.CreateRecord{Owner: reconcilertest.Claimed(reconcilertest.Us(), 1)})
		if got := w.Owner(); got != reconcilertest.Claimed(reconcilertest.Us(), 1).String() {
			t.Errorf("the owner is %q", got)
		}
		w.UntilIdle()
		if steps := w.Lines("step started", "action"); strings.Contains(strings.Join(steps, ", "), "claim") {
			t.Errorf("steps %q", steps)
		}
	})
}

// 142: what another owner looks after is held, until a person's word in Git; then
// it is the former owner who is held.
func TestClusterChangesHandsOnceByAWordInGit(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.As(reconcilertest.Them())
		w.UntilIdle()
		if got := w.Owner(); got != reconcilertest.Claimed(reconcilertest.Them(), 1).String() {
			t.Fatalf("the first who acts owns %q", got)
		}
		former := w.As(reconcilertest.Us())
		w.Commit(clustertest.SetVersion("3.6.16"))
		held(w, reconcilertest.Claimed(reconcilertest.Them(), 1), reconcilertest.Us())

		w.Wish.Spec.TakeOver = reconcilertest.Claimed(reconcilertest.Them(), 1).String()
		w.UntilIdle()
		if got := w.Owner(); got != reconcilertest.Claimed(reconcilertest.Us(), 2).String() || w.VersionOf("orders-0") != "3.6.16" {
			t.Errorf("the owner is %q, orders-0 runs %s", got, w.VersionOf("orders-0"))
		}
		w.API.ClearActions()
		w.Log.Reset()
		w.R = former
		w.Commit(clustertest.SetVersion("3.6.12"))
		held(w, reconcilertest.Claimed(reconcilertest.Us(), 2), reconcilertest.Them())
	}, clustertest.SetVersion("3.6.12"))
}

// held wants a pass that touches nothing and names both owners.
func held(w *reconcilertest.World, owner, asks state.Owner) {
	w.Helper()
	w.MustPass()
	if writes := w.API.Writes(); len(writes) > 0 {
		w.Errorf("writes %q", writes)
	}
	holds := w.Lines("on hold", "reason")
	if len(holds) != 1 || !strings.Contains(holds[0], "belongs to "+owner.String()+", and this is "+asks.String()) {
		w.Errorf("holds %q", holds)
	}
}

// 159: to observe is not to own.
func TestObserveModeClaimsNothing(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.As(reconcilertest.Us())
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })
		w.MustPass()
		if writes := w.API.Writes(); len(writes) > 0 || w.Owner() != "" {
			t.Errorf("writes %q, owner %q", writes, w.Owner())
		}
	})
}

// A plan that nobody will carry out sees every cluster as its own.
func TestPlanWithoutASourceKnowsNoOwners(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.ClaimCluster{To: reconcilertest.Claimed(reconcilertest.Them(), 1)})
		if p, err := w.R.Plan(w.Context(), w.Wish); err != nil || !p.Idle() {
			t.Errorf("error %v, plan:\n%s", err, p.Text())
		}
	})
}
