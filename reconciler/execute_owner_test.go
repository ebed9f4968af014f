package reconciler

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// The owners of these tests.
func us() state.Owner {
	return state.Owner{Source: "https://git.example.com/etcd.git@main", Instance: "default"}
}

func them() state.Owner {
	return state.Owner{Source: "https://git.example.com/old.git@main", Instance: "default"}
}

// claimed is an owner by one of its claims.
func claimed(o state.Owner, claim int) state.Owner {
	o.Claim = claim
	return o
}

// as lets another daemon look after the same Kubernetes cluster from now on.
func (w *world) as(o state.Owner) *Reconciler {
	w.Helper()
	options := w.r.options
	options.Owner = o
	was := w.r
	now := New(w.api, was.observer.etcd, w.events, NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(w.log, nil)), options)
	// The world ends the one that it knows last.
	w.Cleanup(func() {
		was.Close()
		now.Close()
	})
	if err := now.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.r = now
	w.api.ClearActions()
	return was
}

// owner is who the record says looks after the cluster.
func (w *world) owner() string {
	w.Helper()
	if o := record.OwnerOf(w.record()); o != nil {
		return o.String()
	}
	return ""
}

func TestClaimIsIdempotent(t *testing.T) {
	for name, c := range map[string]struct{ has, from state.Owner }{
		"of nobody's cluster": {},
		"of another's":        {claimed(them(), 1), claimed(them(), 1)},
	} {
		t.Run(name, func(t *testing.T) {
			formed(t, func(w *world) {
				if !c.has.Nobody() {
					w.mustDo(action.ClaimCluster{To: c.has})
				}
				twice(w, action.ClaimCluster{From: c.from, To: claimed(us(), 2)})
				if got := w.owner(); got != claimed(us(), 2).String() {
					t.Errorf("the owner is %q", got)
				}
			})
		})
	}
}

// 142: of two daemons that reach for one cluster, the second lets go.
func TestSomebodyWhoWasFasterStaysTheOwner(t *testing.T) {
	formed(t, func(w *world) {
		w.mustDo(action.ClaimCluster{To: claimed(them(), 1)})
		if err := w.do(action.ClaimCluster{To: claimed(us(), 1)}); !errors.Is(err, state.ErrChanged) {
			t.Errorf("error %v", err)
		}
		if got := w.owner(); got != claimed(them(), 1).String() {
			t.Errorf("the owner is %q", got)
		}
	})
}

// A daemon that had decided before the cluster changed hands writes nothing down.
func TestFormerOwnerWritesNoRecord(t *testing.T) {
	formed(t, func(w *world) {
		w.as(us())
		w.untilIdle()
		v := w.look()
		w.mustDo(action.ClaimCluster{From: claimed(us(), 1), To: claimed(them(), 2)})
		err := w.r.executor.execute(w.Context(), v, action.RecordApplied{SpecHash: "h", Version: "9.9.9"})
		if !errors.Is(err, state.ErrChanged) || w.record().Applied.Version == "9.9.9" {
			t.Errorf("error %v, applied %+v", err, w.record().Applied)
		}
	})
}

func TestNewClusterHasAnOwnerFromTheStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.as(us())
		w.mustDo(action.CreateRecord{Owner: claimed(us(), 1)})
		if got := w.owner(); got != claimed(us(), 1).String() {
			t.Errorf("the owner is %q", got)
		}
		w.untilIdle()
		if steps := w.lines("step", "action"); strings.Contains(strings.Join(steps, ", "), "claim") {
			t.Errorf("steps %q", steps)
		}
	})
}

// 142: what another owner looks after is held, until a person's word in Git; then
// it is the former owner who is held.
func TestClusterChangesHandsOnceByAWordInGit(t *testing.T) {
	formed(t, func(w *world) {
		w.as(them())
		w.untilIdle()
		if got := w.owner(); got != claimed(them(), 1).String() {
			t.Fatalf("the first who acts owns %q", got)
		}
		former := w.as(us())
		w.commit(clustertest.SetVersion("3.6.16"))
		held(w, claimed(them(), 1), us())

		w.wish.Spec.TakeOver = claimed(them(), 1).String()
		w.untilIdle()
		if got := w.owner(); got != claimed(us(), 2).String() || w.versionOf("orders-0") != "3.6.16" {
			t.Errorf("the owner is %q, orders-0 runs %s", got, w.versionOf("orders-0"))
		}
		w.api.ClearActions()
		w.log.Reset()
		w.r = former
		w.commit(clustertest.SetVersion("3.6.12"))
		held(w, claimed(us(), 2), them())
	}, clustertest.SetVersion("3.6.12"))
}

// held wants a pass that touches nothing and names both owners.
func held(w *world, owner, asks state.Owner) {
	w.Helper()
	w.mustPass()
	if writes := w.api.writes(); len(writes) > 0 {
		w.Errorf("writes %q", writes)
	}
	holds := w.lines("hold", "message")
	if len(holds) != 1 || !strings.Contains(holds[0], "belongs to "+owner.String()+", and this is "+asks.String()) {
		w.Errorf("holds %q", holds)
	}
}

// 159: to observe is not to own.
func TestObserveModeClaimsNothing(t *testing.T) {
	formed(t, func(w *world) {
		w.as(us())
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })
		w.mustPass()
		if writes := w.api.writes(); len(writes) > 0 || w.owner() != "" {
			t.Errorf("writes %q, owner %q", writes, w.owner())
		}
	})
}

// A plan that nobody will carry out sees every cluster as its own.
func TestPlanWithoutASourceKnowsNoOwners(t *testing.T) {
	formed(t, func(w *world) {
		w.mustDo(action.ClaimCluster{To: claimed(them(), 1)})
		if p, err := w.r.Plan(w.Context(), w.wish); err != nil || !p.Idle() {
			t.Errorf("error %v, plan:\n%s", err, p.Text())
		}
	})
}

// The record goes into pods: who owns a cluster must restart none.
func TestOwnerIsNoKeyForEtcd(t *testing.T) {
	before := recordtest.Stored(recordtest.Formed())
	r := recordtest.Formed()
	r.Owner = record.OwnerRecord(claimed(us(), 1))
	after := recordtest.Stored(r)
	for key := range before.Data {
		if key != naming.KeyRecord && before.Data[key] != after.Data[key] {
			t.Errorf("%s was %q and is %q", key, before.Data[key], after.Data[key])
		}
	}
	if len(before.Data) != len(after.Data) || after.Data[naming.KeyRecord] == before.Data[naming.KeyRecord] {
		t.Error("the owner is not in the record alone")
	}
}
