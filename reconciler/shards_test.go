package reconciler_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
)

// part is one process of several, whose clusters a test chooses.
type part struct {
	mu     sync.Mutex
	others map[string]bool
	// lost is what Held says, and turnLost what it says of the turn.
	lost, turnLost error
	// turns is a one-slot semaphore that all share.
	turns  chan struct{}
	holder string
	commit string
	inside int
}

func (p *part) Enter(ctx context.Context, cluster string) (entered context.Context, leave func(), mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.others[cluster] {
		return nil, nil, false
	}
	p.inside++
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.inside--
	}, true
}

func (p *part) Mine(cluster string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.others[cluster]
}

func (p *part) Held(string) error                    { return p.lost }
func (p *part) Whose(string) (holder, commit string) { return p.holder, p.commit }
func (p *part) Begin(context.Context) (reconciler.Turn, error) {
	p.turns <- struct{}{}
	return turn{p}, nil
}

type turn struct{ *part }

func (t turn) Held() error { return t.turnLost }
func (t turn) End()        { <-t.turns }

func newPart(others ...string) *part {
	p := &part{others: map[string]bool{}, turns: make(chan struct{}, 1)}
	for _, key := range others {
		p.others[key] = true
	}
	return p
}

// series are the metrics with the name of the cluster.
func series(w *reconcilertest.World) (list []string) {
	w.Helper()
	families, err := w.Registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if strings.Contains(m.String(), `"orders"`) {
				list = append(list, f.GetName())
			}
		}
	}
	return list
}

// A cluster of another process is left alone, and has no series and no status of this one. It
// begins with a cluster that becomes its own, and forgets it when it is given up.
func TestAClusterOfAnotherProcessIsLeftAlone(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		p := newPart("shop/orders")
		w.Reconfigure(func(o *reconciler.Options) { o.Shards = p })
		all := func(string) bool { return true }
		w.Wish.Spec.Version = "3.6.17"
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.R.GiveUp(all) // the metrics are those of the process before
		w.API.ClearActions()
		if mine, err := w.R.PassOver(w.Context(), "shop/orders"); mine || err != nil || len(w.API.Writes()) > 0 {
			t.Fatalf("mine %t, %v, writes %q", mine, err, w.API.Writes())
		}
		if list := series(w); len(list) > 0 {
			t.Errorf("it has series %q", list)
		}
		if list, _ := w.R.Own().Statuses(); len(list) > 0 {
			t.Errorf("it tells of %+v", list)
		}
		w.R.FindOrphans()

		delete(p.others, "shop/orders")
		w.R.Take(all)
		if n := w.R.Queue().Len(); n != 1 {
			t.Errorf("%d clusters are waiting for a pass", n)
		}
		if mine, err := w.R.PassOver(w.Context(), "shop/orders"); !mine || err != nil || len(w.API.Writes()) == 0 || p.inside != 0 {
			t.Errorf("mine %t, %v, writes %q, %d inside", mine, err, w.API.Writes(), p.inside)
		}
		if list, _ := w.R.Own().Statuses(); len(list) != 1 || len(series(w)) == 0 {
			t.Errorf("it tells of %+v, and has the series %q", list, series(w))
		}

		p.others["shop/orders"] = true
		w.R.GiveUp(all)
		if list := series(w); len(list) > 0 {
			t.Errorf("given up, it has series %q", list)
		}
		if list, _ := w.R.Own().Statuses(); len(list) > 0 {
			t.Errorf("given up, it tells of %+v", list)
		}
	})
}

// A shard that is not held any more stops each change, as the lease does.
func TestNothingIsDoneWithoutTheShard(t *testing.T) {
	lost := errors.New("the shard is another's")
	for _, a := range []action.Action{action.StartRoll{}, action.RestartMember{Member: "orders-2", ByDeletion: true}, action.TakeBackup{Member: "orders-0"}, action.RecordApplied{}} {
		reconcilertest.Formed(t, func(w *reconcilertest.World) {
			p := newPart()
			p.lost = lost
			w.Reconfigure(func(o *reconciler.Options) { o.Shards = p })
			w.API.ClearActions()
			if err := w.Do(a); !errors.Is(err, lost) || len(w.API.Writes()) > 0 {
				t.Errorf("%s: %v, writes %q", a, err, w.API.Writes())
			}
		})
	}
}

// I28: two processes that look at the same moment both see a place, and only one takes it.
func TestTwoProcessesNeverTakeTheLastPlace(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		clusters := []desired.Cluster{reconciler.WishOf("orders", clustertest.SetVersion("3.6.16")), reconciler.WishOf("baskets", clustertest.SetVersion("3.6.16"))}
		first, second := newPart("shop/baskets"), newPart("shop/orders")
		second.turns = first.turns
		slowly := func() error {
			time.Sleep(time.Second)
			return nil
		}
		f.Reconfigure(func(o *reconciler.Options) { o.Shards, o.Lease = first, slowly })
		options := f.R.Options
		options.Shards = second
		other := f.R.With(options, fleetEtcd{f.Etcd, f.etcds}, &eventrecord.FakeRecorder{}, report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
		f.Cleanup(other.Close)
		var workers sync.WaitGroup
		errs := make([]error, 2)
		for i, r := range []*reconciler.Reconciler{f.R, other} {
			r.SetDesired(clusters)
			workers.Go(func() { _, errs[i] = r.PassOver(f.Context(), clusters[i].Key()) })
		}
		workers.Wait()
		synctest.Wait()
		begun := 0
		for _, name := range []string{"orders", "baskets"} {
			if set := f.setOf(name); strings.Contains(set.Spec.Template.Spec.Containers[0].Image, "3.6.16") {
				begun++
			}
		}
		if begun != 1 || !errors.Is(errors.Join(errs...), state.ErrChanged) {
			t.Errorf("%d have begun, errors %v", begun, errs)
		}
	})
}

// One that has lost the turn by the time it has decided again does not begin.
func TestALostTurnBeginsNothing(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		p := newPart()
		p.turnLost = errors.New("the turn is another's")
		f.Reconfigure(func(o *reconciler.Options) { o.Shards = p })
		f.R.SetDesired([]desired.Cluster{reconciler.WishOf("orders", clustertest.SetVersion("3.6.16")), reconciler.WishOf("baskets")})
		f.API.ClearActions()
		if _, err := f.R.PassOver(f.Context(), "shop/orders"); !errors.Is(err, p.turnLost) || len(f.API.Writes()) > 0 || len(p.turns) > 0 {
			t.Errorf("%v, writes %q, %d turns are taken", err, f.API.Writes(), len(p.turns))
		}
	})
}

// Who tells of all clusters has from the others what they have written, and says so of those
// that nobody reconciles. What others have not told of a commit is behind it.
func TestStatusesOfOtherProcessesAreShown(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		p := newPart("shop/baskets")
		p.holder, p.commit = "quorate-b", "0a1b2c3"
		f.Reconfigure(func(o *reconciler.Options) { o.Shards = p })
		f.R.SetDesired([]desired.Cluster{f.Wish, reconciler.WishOf("baskets")})
		ctx, cancel := context.WithCancel(f.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := f.R.Mirror(ctx); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if s := f.Status(schema.KindCluster, "baskets"); s.Observed != "0a1b2c3" || s.Condition(schema.ConditionReady).Reason != "NotLookedAt" {
			t.Errorf("before it was told of: %+v", s)
		}
		other := newPart("shop/orders")
		options := f.R.Options
		options.Shards = other
		r := f.R.With(options, fleetEtcd{f.Etcd, f.etcds}, &eventrecord.FakeRecorder{}, report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
		f.Cleanup(r.Close)
		r.SetDesired([]desired.Cluster{f.Wish, reconciler.WishOf("baskets")})
		if _, err := r.PassOver(f.Context(), "shop/baskets"); err != nil {
			t.Fatal(err)
		}
		commit := r.Desired()["shop/baskets"].Commit
		if r.Told(commit) {
			t.Error("nothing is written, and all is told")
		}
		writer := &statuses.Writer{Kube: f.API, By: statuses.ByOf(options.Owner), Lease: options.Lease, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		if err := writer.Round(f.Context(), r.Own()); err != nil {
			t.Fatal(err)
		}
		if !r.Told(commit) || r.Told("another") {
			t.Errorf("told of %q: %t, of another: %t", commit, r.Told(commit), r.Told("another"))
		}
		synctest.Wait()
		s := f.Status(schema.KindCluster, "baskets")
		if phase, _ := s.Phase(); phase != schema.PhaseReady || s.Status.Cluster == nil {
			t.Errorf("it is shown as %+v", s)
		}
		p.holder, p.commit = "", ""
		s = f.Status(schema.KindCluster, "baskets")
		if phase, why := s.Phase(); phase != schema.PhaseUnknown || why.Reason != "NoDaemon" || !strings.Contains(why.Message, "it was ready") || s.Observed == "" {
			t.Errorf("without a process it is shown as %+v", s)
		}
		// The other one's status is not this one's to remove.
		mine := &statuses.Writer{Kube: f.API, By: statuses.ByOf(options.Owner), Lease: options.Lease, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		f.API.ClearActions()
		for range 3 {
			if err := mine.Round(f.Context(), f.R.Own()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(statuses.CheckEvery)
		}
		for _, w := range f.API.Writes() {
			if strings.Contains(w, "baskets") {
				t.Errorf("it writes %s", w)
			}
		}
		cancel()
		<-ended
	})
}

// Of an object whose status another process cannot write, as where its namespace is missing, nothing is told, and that
// keeps nothing else from being told of: once the others are read, and that process has told of all others.
func TestAnObjectThatIsNeverToldOfHidesNoOther(t *testing.T) {
	inFleet(t, []string{"baskets"}, func(f *fleet) {
		p := newPart("shop/baskets")
		p.holder, p.commit = "quorate-b", "0a1b2c3"
		f.Reconfigure(func(o *reconciler.Options) { o.Shards = p })
		f.R.SetDesired([]desired.Cluster{f.Wish, reconciler.WishOf("baskets")})
		if _, err := f.R.PassOver(f.Context(), "shop/orders"); err != nil {
			t.Fatal(err)
		}
		want := func(want bool, when string) {
			t.Helper()
			if _, whole := f.R.Statuses(); whole != want {
				t.Errorf("%s, all is told: %t", when, whole)
			}
		}
		want(false, "before the statuses of others are read")
		ctx, cancel := context.WithCancel(f.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := f.R.Mirror(ctx); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Second)
		want(true, "when the other one has told of all that it can")
		p.commit = ""
		want(false, "while the other one has not")
		cancel()
		<-ended
		p.commit = "0a1b2c3"
		want(false, "when the statuses of others are read no more")
	})
}
