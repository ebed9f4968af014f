package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
)

// inOrphaned lets a daemon that has just started read Git, where nothing names the
// cluster that its owner looks after.
func inOrphaned(t *testing.T, owner state.Owner, test func(w *reconcilertest.World, registry *prometheus.Registry)) {
	t.Helper()
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.MustDo(action.ClaimCluster{To: reconcilertest.Claimed(owner, 1)})
		w.As(reconcilertest.Us())
		registry := prometheus.NewRegistry()
		w.R.Reporter.Metrics = report.NewMetrics(registry)
		w.Log.Reset()
		w.DrainEvents()
		test(w, registry)
	})
}

// 130: whoever restarts sees an orphan, too; it is told once, and not touched.
func TestOrphanIsSeenAfterARestart(t *testing.T) {
	inOrphaned(t, reconcilertest.Us(), func(w *reconcilertest.World, registry *prometheus.Registry) {
		for range 3 {
			w.R.SetDesired(nil)
		}
		reconcilertest.WantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 1})
		if orphans := w.Lines("cluster is not in Git any more", "cluster"); !slices.Equal(orphans, []string{"shop/orders"}) {
			t.Errorf("orphans %q", orphans)
		}
		if events := w.DrainEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning Orphaned no readable file names this cluster") {
			t.Errorf("Events %q", events)
		}
		if requests := w.API.Requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
	})
}

// I12: before Git was read, nothing is an orphan.
func TestNothingIsAnOrphanBeforeGitWasRead(t *testing.T) {
	inOrphaned(t, reconcilertest.Us(), func(w *reconcilertest.World, registry *prometheus.Registry) {
		w.R.FindOrphans()
		reconcilertest.WantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
		if orphans := w.Lines("cluster is not in Git any more", "cluster"); len(orphans) > 0 {
			t.Errorf("orphans %q", orphans)
		}
	})
}

// 142: what another owner looks after is not ours to miss.
func TestAnothersClusterIsNoOrphan(t *testing.T) {
	inOrphaned(t, reconcilertest.Them(), func(w *reconcilertest.World, registry *prometheus.Registry) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.R.SetDesired(nil)
		reconcilertest.WantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
		if orphans := w.Lines("cluster is not in Git any more", "cluster"); len(orphans) > 0 {
			t.Errorf("orphans %q", orphans)
		}
	})
}

// 131: a file that comes back ends it, and one that goes again is news again.
func TestOrphanComesBack(t *testing.T) {
	inOrphaned(t, reconcilertest.Us(), func(w *reconcilertest.World, registry *prometheus.Registry) {
		w.R.SetDesired(nil)
		w.R.SetDesired([]desired.Cluster{w.Wish})
		reconcilertest.WantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
		w.R.SetDesired(nil)
		reconcilertest.WantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 1})
		if orphans := w.Lines("cluster is not in Git any more", "cluster"); len(orphans) != 2 {
			t.Errorf("orphans %q", orphans)
		}
	})
}

// An orphan that somebody takes over elsewhere is none any more, without a change
// in Git.
func TestOrphanThatIsTakenOverIsNoneAnyMore(t *testing.T) {
	inOrphaned(t, reconcilertest.Us(), func(w *reconcilertest.World, registry *prometheus.Registry) {
		go w.R.WatchOrphans(w.Context())
		w.R.SetDesired(nil)
		v := w.Look()
		v.Desired.Owner = reconcilertest.Them()
		if err := w.R.Executor.Execute(w.Context(), v, action.ClaimCluster{From: reconcilertest.Claimed(reconcilertest.Us(), 1), To: reconcilertest.Claimed(reconcilertest.Them(), 2)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(w.R.Options.Resync)
		synctest.Wait()
		reconcilertest.WantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
	})
}

// 130: what was deleted by a word in Git is nothing to miss when its file goes.
func TestDeletedClusterIsNoOrphan(t *testing.T) {
	inOrphaned(t, reconcilertest.Us(), func(w *reconcilertest.World, registry *prometheus.Registry) {
		w.MustDo(action.BeginDeletion{})
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.R.SetDesired(nil)
		reconcilertest.WantMetrics(t, registry, map[string]float64{"quorate_orphans{}": 0})
		if orphans := w.Lines("cluster is not in Git any more", "cluster"); len(orphans) > 0 {
			t.Errorf("orphans %q", orphans)
		}
	})
}

// A daemon without an owner of its own misses whatever loses its file.
func TestWithoutAnOwnerEveryLostClusterIsAnOrphan(t *testing.T) {
	inOrphaned(t, reconcilertest.Them(), func(w *reconcilertest.World, _ *prometheus.Registry) {
		w.As(state.Owner{})
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.R.SetDesired(nil)
		if orphans := w.Lines("cluster is not in Git any more", "cluster"); !slices.Equal(orphans, []string{"shop/orders"}) {
			t.Errorf("orphans %q", orphans)
		}
	})
}
