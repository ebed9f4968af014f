package reconciler_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// glanced are members that are glanced at: by a glance they are always as they were, with more that
// they have written.
type glanced struct {
	reconciler.Members
	rounds, glances int
}

func (g *glanced) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	g.rounds++
	return g.Members.Round(ctx, cluster, members, deep)
}

func (g *glanced) Glance(_ context.Context, _ string, _ []etcd.Endpoint, last state.Round) (state.Round, bool) {
	g.glances++
	last.At, last.Members = time.Now(), slices.Clone(last.Members)
	for i := range last.Members {
		last.Members[i].AppliedIndex += 1000
		last.Members[i].CommitIndex += 1000
	}
	return last, true
}

func glancing(t *testing.T, test func(w *reconcilertest.World, g *glanced)) {
	t.Helper()
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		g := &glanced{Members: w.Etcd}
		w.Ask(g)
		w.Reconfigure(func(o *reconciler.Options) { o.Glance = g.Glance })
		w.MustPass()
		if g.rounds != 1 || g.glances != 0 {
			t.Fatalf("the first pass asks %d times in full, and glances %d times", g.rounds, g.glances)
		}
		test(w, g)
	})
}

// Members at rest are asked in full every second minute, and glanced at between.
func TestMembersAtRestAreGlancedAt(t *testing.T) {
	glancing(t, func(w *reconcilertest.World, g *glanced) {
		g.rounds = 0
		for range 20 {
			w.MustPass()
			time.Sleep(w.R.Options.Resync)
		}
		if g.rounds != 4 || g.glances != 16 {
			t.Errorf("in 10 minutes they were asked %d times in full, and glanced at %d times", g.rounds, g.glances)
		}
	})
}

// An action rests on what all members answer in full, asked in the same pass: a glance says nothing of
// the member list, nor whether members serve.
func TestNoActionRestsOnAGlance(t *testing.T) {
	glancing(t, func(w *reconcilertest.World, g *glanced) {
		g.rounds = 0
		w.MustPass()
		if g.rounds != 0 || g.glances != 1 {
			t.Fatalf("it was not glanced at: %d rounds, %d glances", g.rounds, g.glances)
		}
		w.Scale(1, "kubectl-edit")
		w.MustPass()
		if steps := w.Log.String(); len(w.Lines("step done", "action")) != 1 || g.rounds == 0 || g.glances != 2 {
			t.Errorf("%d rounds in full and %d glances before\n%s", g.rounds, g.glances, steps)
		}
	})
}

// A commit costs no glance: once Git wants something else, members are asked in full at once, twice before an
// action, and glanced at again when they are at rest.
func TestWhatGitChangesIsAskedInFullAtOnce(t *testing.T) {
	glancing(t, func(w *reconcilertest.World, g *glanced) {
		g.rounds = 0
		w.Wish.Spec.Upgrade.Wave = 7
		w.Wish.Digest = "another"
		w.MustPass()
		if steps := w.Log.String(); len(w.Lines("step done", "action")) != 1 || g.rounds != 2 || g.glances != 0 {
			t.Errorf("%d rounds in full and %d glances before\n%s", g.rounds, g.glances, steps)
		}
		w.MustPass()
		w.MustPass()
		if g.glances != 1 {
			t.Errorf("%d glances at rest", g.glances)
		}
	})
}

// A hold rests on no glance either, and what was found by one is forgotten: the next pass asks in full.
func TestAHoldIsFoundInFull(t *testing.T) {
	glancing(t, func(w *reconcilertest.World, g *glanced) {
		g.rounds = 0
		w.Etcd.Change = func(r *state.Round) { r.Members[1].Problem, r.Members[1].Version = "linearizable read: timeout", "" }
		w.Wish.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200", "election-timeout": "2000"}
		w.Wish.Digest = "another"
		for range 3 {
			before := g.rounds
			if _, err := w.Pass(); err != nil {
				t.Fatal(err)
			}
			if g.rounds == before {
				t.Error("a pass over what is not at rest asks nothing in full")
			}
		}
		if rolls := w.Lines("step done", "action"); len(rolls) > 0 {
			t.Errorf("done with a member that does not serve: %q", rolls)
		}
	})
}

// How far members have written is noted by what they answer in full: a member may not have on its disk
// what its status tells.
func TestFloorsRestOnNoGlance(t *testing.T) {
	glancing(t, func(w *reconcilertest.World, g *glanced) {
		time.Sleep(2 * time.Hour) // what is noted is old
		w.MustPass()              // in full
		before := w.Record().Floors
		time.Sleep(time.Minute)
		w.MustPass()
		if g.glances != 1 {
			t.Fatalf("it was glanced at %d times", g.glances)
		}
		for member, f := range w.Record().Floors {
			if f != before[member] {
				t.Errorf("%s: %+v by a glance, before %+v", member, f, before[member])
			}
		}
	})
}

// A member that was replaced is not glanced at by what the one before it has answered.
func TestAnotherPodIsAskedInFull(t *testing.T) {
	glancing(t, func(w *reconcilertest.World, g *glanced) {
		g.rounds = 0
		p := w.Pod("orders-1").DeepCopy()
		p.UID, p.Status.PodIP = "another", "10.0.0.77"
		w.Put(reconcilertest.PodsResource(), p)
		w.Settle()
		w.MustPass()
		if g.rounds == 0 || g.glances != 0 {
			t.Errorf("%d rounds, %d glances", g.rounds, g.glances)
		}
	})
}
