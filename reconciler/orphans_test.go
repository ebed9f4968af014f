package reconciler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// inOrphaned lets a daemon that has just started read Git, where nothing names the
// cluster that its owner looks after.
func inOrphaned(t *testing.T, owner state.Owner, test func(w *world, registry *prometheus.Registry)) {
	t.Helper()
	formed(t, func(w *world) {
		w.mustDo(action.ClaimCluster{To: claimed(owner, 1)})
		w.as(us())
		registry := prometheus.NewRegistry()
		w.r.reporter.metrics = NewMetrics(registry)
		w.log.Reset()
		w.drainEvents()
		test(w, registry)
	})
}

// 130: whoever starts anew sees an orphan, too; it is told once, and not touched.
func TestOrphanIsSeenAfterARestart(t *testing.T) {
	inOrphaned(t, us(), func(w *world, registry *prometheus.Registry) {
		for range 3 {
			w.r.SetDesired(nil)
		}
		wantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 1})
		if orphans := w.lines("orphan", "cluster"); !slices.Equal(orphans, []string{"shop/orders"}) {
			t.Errorf("orphans %q", orphans)
		}
		if events := w.drainEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning Orphaned no file that can be read names this cluster") {
			t.Errorf("Events %q", events)
		}
		if requests := w.api.requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
	})
}

// I12: before Git was read, nothing is an orphan.
func TestNothingIsAnOrphanBeforeGitWasRead(t *testing.T) {
	inOrphaned(t, us(), func(w *world, registry *prometheus.Registry) {
		w.r.FindOrphans()
		wantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
		if orphans := w.lines("orphan", "cluster"); len(orphans) > 0 {
			t.Errorf("orphans %q", orphans)
		}
	})
}

// 142: what another owner looks after is not ours to miss.
func TestAnothersClusterIsNoOrphan(t *testing.T) {
	inOrphaned(t, them(), func(w *world, registry *prometheus.Registry) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.r.SetDesired(nil)
		wantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
		if orphans := w.lines("orphan", "cluster"); len(orphans) > 0 {
			t.Errorf("orphans %q", orphans)
		}
	})
}

// 131: a file that comes back ends it, and one that goes again is news again.
func TestOrphanComesBack(t *testing.T) {
	inOrphaned(t, us(), func(w *world, registry *prometheus.Registry) {
		w.r.SetDesired(nil)
		w.r.SetDesired([]desired.Cluster{w.wish})
		wantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
		w.r.SetDesired(nil)
		wantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 1})
		if orphans := w.lines("orphan", "cluster"); len(orphans) != 2 {
			t.Errorf("orphans %q", orphans)
		}
	})
}

// An orphan that somebody takes over elsewhere is none any more, without a change
// in Git.
func TestOrphanThatIsTakenOverIsNoneAnyMore(t *testing.T) {
	inOrphaned(t, us(), func(w *world, registry *prometheus.Registry) {
		go w.r.WatchOrphans(w.Context())
		w.r.SetDesired(nil)
		v := w.look()
		v.desired.Owner = them()
		if err := w.r.executor.execute(w.Context(), v, action.ClaimCluster{From: claimed(us(), 1), To: claimed(them(), 2)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(w.r.options.Resync)
		synctest.Wait()
		wantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
	})
}

// 130: what was deleted by a word in Git is nothing to miss when its file goes.
func TestDeletedClusterIsNoOrphan(t *testing.T) {
	inOrphaned(t, us(), func(w *world, registry *prometheus.Registry) {
		w.mustDo(action.BeginDeletion{})
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.r.SetDesired(nil)
		wantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
		if orphans := w.lines("orphan", "cluster"); len(orphans) > 0 {
			t.Errorf("orphans %q", orphans)
		}
	})
}

// A daemon without an owner of its own misses whatever loses its file.
func TestNobodyMissesEverybodysCluster(t *testing.T) {
	inOrphaned(t, them(), func(w *world, _ *prometheus.Registry) {
		w.as(state.Owner{})
		w.r.SetDesired([]desired.Cluster{w.wish})
		w.r.SetDesired(nil)
		if orphans := w.lines("orphan", "cluster"); !slices.Equal(orphans, []string{"shop/orders"}) {
			t.Errorf("orphans %q", orphans)
		}
	})
}
