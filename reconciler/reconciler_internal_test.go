package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/fake"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// A file that says the same and has an error now, or none any more, is looked at.
func TestSameWish(t *testing.T) {
	good, other, bad := clustertest.InGit().Identified(), clustertest.InGit(clustertest.SetReplicas(5)).Identified(), clustertest.InGit().Identified()
	bad.Problems = []string{"bad"}
	if !desired.Same(good, good) || !desired.Same(bad, bad) || desired.Same(good, other) || desired.Same(good, bad) || desired.Same(bad, good) {
		t.Errorf("%s, %s, %s", good.Digest, other.Digest, bad.Digest)
	}
	from := func(url string) desired.Cluster {
		c := clustertest.InGit()
		c.Restore = &desired.Restore{Name: "back", Source: schema.RestoreSource{ObjectURL: url}}
		return c.Identified()
	}
	first, second := from("s3://b/1.db"), from("s3://b/2.db")
	if !desired.Same(first, from("s3://b/1.db")) || desired.Same(first, second) || desired.Same(first, good) {
		t.Errorf("with restores: %s, %s, without %s", first.Digest, second.Digest, good.Digest)
	}
}

// step is one of the steps that are tried.
func step(a action.Action) decision.Step { return decision.Step{Action: a, Reason: "it differs"} }

// A step that does not last is taken later each time, and at once again when it was long
// ago, or Git wants something else.
func TestRepeatedStepsAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		c, service, budget := clustertest.InGit().Identified(), step(action.ApplyObject{ObjectKind: "Service", Name: "orders-client"}), step(action.EndRoll{})
		var waits []time.Duration
		for range 4 {
			waits = append(waits, p.done(c, service, nil).wait())
		}
		if want := []time.Duration{0, state.MinRequeue, 2 * state.MinRequeue, 4 * state.MinRequeue}; !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
		if _, left := p.left(c, lasting(service)); left != 4*state.MinRequeue {
			t.Errorf("it waits for %s", left)
		}
		for range 100 {
			p.done(c, service, nil)
		}
		if w := p.done(c, service, nil).wait(); w != queue.MaxRetry {
			t.Errorf("after a hundred times it waits %s", w)
		}
		if w := p.done(c, budget, nil).wait(); w != 0 {
			t.Errorf("another step waits %s", w)
		}
		if w := p.done(clustertest.InGit(clustertest.SetReplicas(5)).Identified(), service, nil).wait(); w != 0 {
			t.Errorf("for another wish it waits %s", w)
		}
		p.done(c, service, nil)
		if w := p.done(c, service, nil).wait(); w == 0 {
			t.Error("again for the first wish it does not wait")
		}
		time.Sleep(memory + time.Second)
		if w := p.done(c, service, nil).wait(); w != 0 {
			t.Errorf("long after the last time it waits %s", w)
		}
	})
}

// 555: the steps that move a member for a new reason, such as the next node that is drained, are
// those of the last time, and not slowed down; the same reason again slows them down, also where
// two steps undo each other.
func TestStepsAreDueAgainForANewReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		c, moved := clustertest.InGit().Identified(), step(action.MoveLeader{From: "orders-1", To: "orders-0"})
		moves := func(reason string) time.Duration {
			for _, a := range []action.Action{action.BeginJoin{Member: "orders-1"}, action.BeginLeave{Member: "orders-0"}} {
				p.done(c, decision.Step{Action: a, Reason: reason}, nil)
			}
			return p.done(c, moved, nil).wait()
		}
		for i, m := range []struct {
			reason string
			want   time.Duration
		}{
			{"another release", 0},
			{"node n1 is cordoned", 0},
			{"node n2 is cordoned", 0},
			{"node n2 is cordoned", state.MinRequeue},
			{"node n1 is cordoned", 2 * state.MinRequeue},
			{"node n2 is cordoned", 4 * state.MinRequeue},
			{"node n3 is cordoned", 0},
		} {
			if got := moves(m.reason); got != m.want {
				t.Errorf("%d: %s: it waits %s, want %s", i, m.reason, got, m.want)
			}
		}
		if _, left := p.left(c, lasting(moved)); left != 0 {
			t.Errorf("it waits for %s", left)
		}
		p.done(c, moved, nil)
		p.done(c, step(action.EndRoll{}), nil)
		if _, left := p.left(c, lasting(moved)); left == 0 {
			t.Error("a step that begins nothing ends the wait of another")
		}
		moves("node n4 is cordoned")
		if _, left := p.left(c, lasting(moved)); left != 0 {
			t.Errorf("for a new reason it waits for %s yet", left)
		}
	})
}

// 186: what failed waits under its name, whatever members and revisions are in it, and so
// does the comparison of the members' data that it rested on; another step does not wait.
func TestFailedStepsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		c, other := clustertest.InGit().Identified(), clustertest.InGit(clustertest.SetReplicas(5)).Identified()
		compact := func(revision int64) decision.Step {
			return step(action.Compact{Member: "orders-1", Revision: revision})
		}
		var waits []time.Duration
		for revision := range int64(4) {
			last := p.failed(c, compact(revision), []doubt{{name: "confirming alarms"}}, errors.New("no"))
			waits = append(waits, last.until.Sub(last.at))
		}
		if want := []time.Duration{state.MinRequeue, 2 * state.MinRequeue, 4 * state.MinRequeue, 8 * state.MinRequeue}; !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
		for _, name := range []string{failing(compact(9)), "confirming alarms"} {
			if last, left := p.left(c, name); left != 8*state.MinRequeue || last.problem != "no" || last.times != 4 {
				t.Errorf("%s waits for %s after %+v", name, left, last)
			}
			if _, left := p.left(other, name); left != 0 {
				t.Errorf("for another wish %s waits for %s", name, left)
			}
		}
		if _, left := p.left(c, failing(step(action.EndRoll{}))); left != 0 {
			t.Errorf("another step waits for %s", left)
		}
		p.done(c, compact(9), []doubt{{name: "confirming alarms"}})
		if _, left := p.left(c, failing(compact(10)), "confirming alarms"); left != 0 {
			t.Errorf("after a success it waits for %s", left)
		}
		p.failed(c, compact(9), nil, errors.New("no"))
		p.forget(c.Key())
		if _, left := p.left(c, failing(compact(9))); left != 0 {
			t.Errorf("after it is no longer in Git it waits for %s", left)
		}
	})
}

// 187: a comparison that finds the same reason to do nothing is made less and less
// often, and what only takes its time is looked for as before.
func TestComparisonsThatLeadNowhereAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		c := clustertest.InGit().Identified()
		asked := func(name string) []doubt { return []doubt{{name: name}} }
		for range 20 {
			if again := p.held(c, asked("confirming health"), decision.Hold{Kind: decision.Unhealthy, Again: time.Second}); again != time.Second {
				t.Fatalf("the next look is in %s", again)
			}
		}
		if _, left := p.left(c, "confirming health"); left != maxDoubt {
			t.Errorf("it waits for %s", left)
		}
		p.failed(c, step(action.EndRoll{}), asked("confirming confirm"), errors.New("no"))
		p.rest(c)
		if _, left := p.left(c, "confirming health"); left != 0 {
			t.Errorf("at rest it waits for %s", left)
		}
		if _, left := p.left(c, "confirming confirm"); left == 0 {
			t.Error("at rest what has failed does not wait")
		}
		p.held(c, asked("confirming soak"), decision.Hold{Kind: decision.Waiting})
		p.held(c, nil, decision.Hold{Kind: decision.Unhealthy})
		if _, left := p.left(c, "confirming soak", ""); left != 0 {
			t.Errorf("it waits for %s", left)
		}
	})
}

// 290: a comparison of large databases is repeated after ten times as long as it took, also
// where something is only waited for, and after five minutes at the latest.
func TestLongComparisonsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.InGit().Identified()
		for took, want := range map[time.Duration]time.Duration{time.Second: maxDoubt, 15 * time.Second: 150 * time.Second, time.Hour: queue.MaxRetry} {
			var p pace
			for range 20 {
				p.held(c, []doubt{{name: "confirming alarms by the data", compared: true, took: took}}, decision.Hold{Kind: decision.Waiting, Again: time.Second})
			}
			if _, left := p.left(c, "confirming alarms by the data"); left != want {
				t.Errorf("one that took %s is repeated after %s, not %s", took, left, want)
			}
		}
	})
}

// A default takes the place of nothing that was set: neither of a limit nor of the
// lease.
func TestDefaultsOverrideNothing(t *testing.T) {
	other, noon := errors.New("another quorate acts"), time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	set := Options{
		Workers: 7, MaxDisrupted: 8, MaxBackups: 9, MaxDrills: 10, Resync: 11 * time.Second, MaxAsks: 12,
		Lease: func() error { return other }, Now: func() time.Time { return noon },
	}
	got := set.withDefaults()
	if !errors.Is(got.Lease(), other) || !got.Now().Equal(noon) {
		t.Errorf("lease %v, now %s", got.Lease(), got.Now())
	}
	if got.Workers != 7 || got.MaxDisrupted != 8 || got.MaxBackups != 9 || got.MaxDrills != 10 || got.Resync != 11*time.Second || got.MaxAsks != 12 {
		t.Errorf("%+v", got)
	}
	if d := (Options{}).withDefaults(); d.Workers < 1 || d.MaxDisrupted != 1 || d.MaxBackups < 1 || d.MaxDrills < 1 || d.Resync <= 0 || d.MaxAsks < 1 || d.Lease() != nil || d.Now().IsZero() {
		t.Errorf("the defaults: %+v", d)
	}
}

// So many clusters that each of them cannot be looked at within the usual time are looked at less often, and
// ten thousand within a minute.
func TestLooksAtClustersAtRestAreSpaced(t *testing.T) {
	r := &Reconciler{Options: Options{}.withDefaults()}
	for clusters, want := range map[int]time.Duration{0: DefaultResync, 6_000: DefaultResync, 6_001: 30_005 * time.Millisecond, 10_000: 50 * time.Second} {
		r.desired = make(map[string]*desired.Cluster, clusters)
		for i := range clusters {
			r.desired[strconv.Itoa(i)] = &desired.Cluster{}
		}
		if got := r.resync(); got != want {
			t.Errorf("%d clusters are looked at every %s, want %s", clusters, got, want)
		}
	}
}

// fleetOf are the files of so many clusters.
func fleetOf(clusters int) []schema.File {
	files := make([]schema.File, clusters)
	for i := range files {
		files[i].Path = fmt.Sprintf("c%05d.yaml", i)
		files[i].Data = fmt.Appendf(nil, "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: c%05d, namespace: shop}\nspec: {version: \"3.6.16\", replicas: 3, storage: {size: 8Gi}}\n", i)
	}
	return files
}

// Of a commit that changes one of many clusters, that one alone has its pass, and costs what a change costs: for each of
// the others, there are the places in lists.
func TestCommitCostsWhatItChanges(t *testing.T) {
	const clusters = 1000
	r := New(fake.NewClientset(), nil, &eventrecord.FakeRecorder{}, report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler), Options{})
	defer r.Close()
	files, parser := fleetOf(clusters), schema.Parser{}
	commit := func() { r.SetDesired(desired.Clusters(parser.Parse(files), "0a1b2c3", nil)) }
	commit()
	for r.queue.Len() > 0 {
		r.queue.Next(t.Context(), idle{})
	}
	files[7].Data = bytes.Replace(files[7].Data, []byte("replicas: 3"), []byte("replicas: 5"), 1)
	commit()
	if n := r.queue.Len(); n != 1 {
		t.Errorf("%d clusters wait for a pass, want 1", n)
	}
	if n := testing.AllocsPerRun(3, commit) / clusters; n > 20 {
		t.Errorf("%.0f allocations for each cluster that does not change", n)
	}
}

// idle makes passes that do nothing.
type idle struct{}

func (idle) Pass(context.Context, string) (time.Duration, bool, error) { return time.Hour, true, nil }
func (idle) Failed(string, error)                                      {}
func (idle) Succeeded(string)                                          {}
