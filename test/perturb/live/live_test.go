package live

import (
	"flag"
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/perturb/score"
)

var (
	showLog = flag.Bool("log", false, "show the log of runs that fail")
	all     = flag.Bool("all", false, "disturb each write in each way")
	page    = flag.String("write", "", "page that gets the figures")
	// runs counts the namespaces.
	runs atomic.Int32
)

// share is which part of all disturbances is tried without -all: one in so many.
const share = 40

// scenario is something that happens to a cluster.
type scenario struct {
	name  string
	edits []func(*schema.EtcdCluster)
	// then is what happens after the cluster has formed; nil where that is the scenario.
	then func(w *world)
}

func commits(edit func(*schema.EtcdCluster)) func(*world) {
	return func(w *world) { w.commit(edit) }
}

// drift lets others delete and change what quorate has made.
func drift(w *world) {
	ctx, gone := w.Context(), metav1.DeleteOptions{}
	w.must(api.kube.CoreV1().Services(w.namespace).Delete(ctx, "orders-client", gone))
	w.must(api.kube.CoreV1().Secrets(w.namespace).Delete(ctx, "orders-client", gone))
	w.must(api.kube.PolicyV1().PodDisruptionBudgets(w.namespace).Delete(ctx, "orders", gone))
	theirs := `{"metadata":{"labels":{"quorate.dev/cluster":null}},"spec":{"template":{"spec":{"terminationGracePeriodSeconds":5}}}}`
	_, err := api.kube.AppsV1().StatefulSets(w.namespace).Patch(ctx, "orders", types.MergePatchType, []byte(theirs), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	w.must(err)
}

// scenarios are all that is disturbed. What they have in common is that they end.
func scenarios() []scenario {
	return []scenario{
		{name: "create"},
		{name: "roll", then: commits(func(c *schema.EtcdCluster) {
			c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200", "election-timeout": "2000"}
		})},
		{name: "upgrade", edits: []func(*schema.EtcdCluster){clustertest.SetVersion("3.6.12")}, then: commits(clustertest.SetVersion("3.6.16"))},
		{name: "scale-up", edits: []func(*schema.EtcdCluster){clustertest.SetReplicas(1)}, then: commits(clustertest.SetReplicas(3))},
		{name: "scale-down", then: commits(clustertest.SetReplicas(1))},
		{name: "drift", then: drift},
		{name: "repair", then: func(w *world) { w.must(api.kubelets.lose(w.Context(), w.namespace, "orders-1")) }},
	}
}

// 326: before a real API server, too, a write that is done but answered with an error, is the
// last thing of a process, or is told of late or never, changes nothing of how it ends, nor
// does it cost a restart.
func TestADisturbedWriteChangesNothing(t *testing.T) {
	f := &score.Table{Columns: []string{answered, killed, heldBack, unseen}}
	t.Cleanup(func() {
		t.Log(f.String())
		if *page == "" {
			return
		}
		if err := score.WriteTable(*page, "Writes to a real API server", f); err != nil {
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
	want := s.play(t, "", "", nil)
	for _, w := range want.wrong {
		t.Errorf("undisturbed: %s", w)
	}
	if !want.rested {
		t.Errorf("undisturbed it does not come to rest: %s", want.hold)
	}
	if len(want.writes) == 0 {
		t.Error("there is nothing to disturb")
	}
	t.Logf("undisturbed: %s, %d writes", want.took.Round(time.Second), len(want.writes))
	if t.Failed() {
		t.Fatal(want.log)
	}
	f.Row(s.name, len(want.writes))
	for _, at := range want.writes {
		for _, how := range f.Columns {
			if !chosen(s.name + "/" + at + "/" + how) {
				continue
			}
			t.Run(at+"/"+how, func(t *testing.T) {
				t.Parallel()
				got := s.play(t, at, how, want.end)
				compare(t, want, got)
				f.Add(s.name, how, endOf(want, got))
			})
		}
	}
}

// chosen reports whether a disturbance is to be tried: by its name, so that the same are in
// each run, or because somebody asks for it.
func chosen(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return *all || h.Sum32()%share == 0 || strings.Count(flag.Lookup("test.run").Value.String(), "/") > 1
}

// outcome is how a run ended.
type outcome struct {
	// end is the world at rest, wrong what must not have been on the way, writes the names of
	// the writes, and restarts how often each member was started.
	end, wrong, writes []string
	restarts           map[string]int
	// rested reports whether it came to rest.
	rested bool
	// hit reports whether the write to disturb came; hold is why the end is not what Git says,
	// and wayOn that it names what a person must do.
	hit   bool
	hold  string
	wayOn bool
	took  time.Duration
	log   *buffer
}

// play plays a scenario in a namespace of its own, until it ends as wanted, or is at rest.
func (s scenario) play(t *testing.T, at, how string, want []string) (o outcome) {
	t.Helper()
	w := newWorld(t, fmt.Sprintf("run-%d", runs.Add(1)), at, how, s.edits...)
	if s.then != nil {
		w.run()
		if !w.rest(func() bool { return true }) {
			t.Fatalf("the cluster does not form:\n%s", w.log)
		}
	}
	before, _ := w.judged()
	w.writes.begin()
	began := time.Now()
	if s.then != nil {
		s.then(w)
	} else {
		w.run()
	}
	o.rested = w.rest(func() bool { return w.told() && (want == nil || score.Differ(want, w.picture()) == "") })
	var hit time.Time
	o.end, o.log, o.took = w.picture(), w.log, time.Since(began)
	o.writes, hit, _ = w.writes.seen()
	o.hit = !hit.IsZero()
	o.hold, o.wayOn = w.hold()
	o.restarts, o.wrong = w.judged()
	for member := range o.restarts {
		o.restarts[member] -= before[member]
	}
	return o
}

// compare wants a run to end as the undisturbed one did, with no more restarts.
func compare(t *testing.T, want, got outcome) {
	t.Helper()
	for _, w := range got.wrong {
		t.Error(w)
	}
	if d := score.Differ(want.end, got.end); d != "" {
		t.Errorf("it ends another way than undisturbed (-) does:\n%s", d)
	}
	for _, member := range restartedMore(want, got) {
		t.Errorf("%s was started %d times, undisturbed %d", member, got.restarts[member], want.restarts[member])
	}
	if !got.rested {
		t.Errorf("it does not come to rest: %s", got.hold)
	}
	if t.Failed() && *showLog {
		t.Log(got.log)
	}
}

// endOf is how a run has ended.
func endOf(want, got outcome) score.End {
	same := got.rested && got.hold == "" && score.Differ(want.end, got.end) == ""
	switch {
	case len(got.wrong) > 0 || len(restartedMore(want, got)) > 0 || !same && !got.wayOn:
		return score.Failed
	case !same:
		return score.Held
	case !got.hit:
		return score.Unmet
	}
	return score.Same
}

// restartedMore are the members that were started more often than undisturbed.
func restartedMore(want, got outcome) (members []string) {
	for member, n := range got.restarts {
		if n > want.restarts[member] {
			members = append(members, member)
		}
	}
	return members
}

// A run that did not come to rest has not ended as wanted, and is one with a way on only where a
// hold names it and nothing broke.
func TestEndOf(t *testing.T) {
	want := outcome{end: []string{"a"}, restarts: map[string]int{"orders-0": 1}}
	for name, c := range map[string]struct {
		got  outcome
		want score.End
	}{
		"same":      {outcome{end: []string{"a"}, rested: true, hit: true}, score.Same},
		"unmet":     {outcome{end: []string{"a"}, rested: true}, score.Unmet},
		"other end": {outcome{end: []string{"b"}, rested: true, hit: true}, score.Failed},
		"restless":  {outcome{end: []string{"a"}, hit: true}, score.Failed},
		"held":      {outcome{end: []string{"b"}, hit: true, hold: "waits", wayOn: true}, score.Held},
		"broke":     {outcome{end: []string{"b"}, hit: true, hold: "waits", wayOn: true, wrong: []string{"I2"}}, score.Failed},
		"restarted": {outcome{end: []string{"a"}, rested: true, hit: true, restarts: map[string]int{"orders-0": 2}}, score.Failed},
	} {
		if got := endOf(want, c.got); got != c.want {
			t.Errorf("%s: it counts as %d, want %d", name, got, c.want)
		}
	}
}
