package etcds

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/needs"
	"github.com/quorate/quorate/test/perturb/score"
)

var (
	showLog = flag.Bool("log", false, "show the log of runs that fail")
	all     = flag.Bool("all", false, "disturb each sort of call in each way")
	page    = flag.String("write", "", "page that gets the figures")
)

// worlds is how many there are at a time: mostly they wait.
const worlds = 6

func TestMain(m *testing.M) {
	etcdtest.AtOnce(worlds)
	os.Exit(m.Run()) //nolint:forbidigo // TestMain returns no error
}

// scenario is what a commit makes of a cluster.
type scenario struct {
	name     string
	replicas int32
	then     func(*schema.EtcdCluster)
}

func scenarios() []scenario {
	return []scenario{
		{"roll", 3, func(c *schema.EtcdCluster) {
			c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "150", "election-timeout": "1500"}
		}},
		{"scale-down", 3, clustertest.SetReplicas(1)},
	}
}

// ways are how a call is disturbed.
func ways() []string { return []string{failed, timeout, unanswered, late, another, old, hangs} }

// changes reports whether a call is to change something.
func changes(call string) bool {
	sort, _, _ := strings.Cut(call, "-")
	return slices.Contains([]string{"MoveLeader", "MemberRemove"}, sort)
}

// picked are the calls to disturb: the first of each sort that changes something, and in a
// roll of each other sort the one in the middle.
func (s scenario) picked(calls []string) (list []string) {
	sorts := map[string][]string{}
	for _, call := range calls {
		sort, _, _ := strings.Cut(call, "-")
		sorts[sort] = append(sorts[sort], call)
	}
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		switch all := sorts[sort]; {
		case changes(sort):
			list = append(list, all[0])
		case s.name == "roll":
			list = append(list, all[len(all)/2])
		}
	}
	return list
}

// waysOf are the ways in which a call is disturbed.
func waysOf(call string) []string {
	switch {
	case changes(call):
		return []string{failed, timeout, unanswered, late, another, hangs}
	case strings.HasPrefix(call, "HashKV-"):
		return []string{failed, another, old} // a hash may take minutes, which package perturb plays faster
	}
	return []string{failed, timeout, another, old, hangs}
}

// few are what is tried without -all.
func few() []string {
	return []string{"roll/MoveLeader-1/" + late, "scale-down/MemberRemove-1/" + unanswered}
}

// chosen reports whether a disturbance is to be tried: as one of the few, or because somebody
// asks for it.
func chosen(name string) bool {
	return *all || slices.Contains(few(), name) || strings.Count(flag.Lookup("test.run").Value.String(), "/") > 1
}

// outcome is how a run ended.
type outcome struct {
	score.Run
	// calls are the names of the calls.
	calls []string
	took  time.Duration
	log   string
}

// play plays a scenario in a world of its own, under a history of clients.
func (s scenario) play(t *testing.T, at, how string) (o outcome) {
	t.Helper()
	w := newWorld(t, s.replicas, at, how)
	w.run()
	if !w.rest() {
		why, _ := w.hold()
		t.Fatalf("the cluster does not form: %s, %v\n%s", why, w.wrong, w.Log)
	}
	history := w.record()
	defer history.Close()
	before, began := maps.Clone(w.starts), time.Now()
	w.line.arm(true)
	w.commit(s.then)
	if !w.rest() {
		w.add("it does not come to rest within %s", longest)
	}
	w.line.arm(false)
	o.Unrest, o.WayOn = w.hold()
	history.Stop()
	reader := w.client("orders-0")
	defer func() { _ = reader.Close() }()
	if err := history.Check(t.Context(), reader); err != nil {
		w.add("the history is not linearizable: %v", err)
	}
	if r := history.Report(); r.Writes == 0 || r.Reads == 0 {
		w.add("the history has %s", r)
	}
	calls, hit := w.line.seen()
	o.End, o.calls, o.Hit, o.took = w.picture(), calls, !hit.IsZero(), time.Since(began)
	o.Restarts = map[string]int{}
	for name, n := range w.starts {
		o.Restarts[name] = n - before[name]
	}
	w.Stop()
	o.Wrong, o.log = w.wrong, w.Log.String()
	return o
}

// 327: with real members, too, a call that fails, hangs, is done but not answered, or much later,
// or is answered by another member, or with what was true a while ago, changes nothing of how
// it ends, costs no restart, and clients lose nothing.
func TestADisturbedCallChangesNothing(t *testing.T) {
	needs.Long(t)
	f := &score.Table{Columns: ways()}
	t.Cleanup(func() {
		t.Log(f.String())
		if *page == "" {
			return
		}
		if err := score.WriteTable(*page, "Calls to real members", f); err != nil {
			t.Error(err)
		}
	})
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.disturb(t, f)
		})
	}
}

// disturb plays a scenario undisturbed, and then with each disturbance that is chosen.
func (s scenario) disturb(t *testing.T, f *score.Table) {
	t.Helper()
	want := s.play(t, "", "")
	for _, problem := range want.Problems(want.Run) {
		t.Errorf("undisturbed: %s", problem)
	}
	calls := s.picked(want.calls)
	if len(calls) == 0 {
		t.Error("there is nothing to disturb")
	}
	if t.Failed() {
		t.Fatal(want.log)
	}
	t.Logf("undisturbed: %s, %d calls", want.took.Round(time.Second), len(want.calls))
	f.Row(s.name, len(calls))
	for _, at := range calls {
		for _, how := range waysOf(at) {
			if !chosen(s.name + "/" + at + "/" + how) {
				continue
			}
			t.Run(at+"/"+how, func(t *testing.T) {
				t.Parallel()
				got := s.play(t, at, how)
				for _, problem := range got.Problems(want.Run) {
					t.Error(problem)
				}
				if t.Failed() && *showLog {
					t.Log(got.log)
				}
				f.Add(s.name, how, got.Beside(want.Run))
			})
		}
	}
}
