package live

import (
	"cmp"
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
const share = 48

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
		{name: "hibernate-and-wake", then: func(w *world) {
			w.stops()
			w.commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateHibernated })
			w.unless(w.rest(func() bool { return true }), "it does not hibernate")
			w.commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateRunning })
		}},
		{name: "delete", then: func(w *world) {
			w.stops()
			w.commit(func(c *schema.EtcdCluster) {
				c.Spec.State, c.Spec.Deletion.Backup = schema.StateDeleted, schema.BackupSkip
			})
		}},
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
	for _, p := range want.Problems(want.Run) {
		t.Errorf("undisturbed: %s", p)
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
				got := s.play(t, at, how, want.End)
				for _, p := range got.Problems(want.Run) {
					t.Error(p)
				}
				if t.Failed() && *showLog {
					t.Log(got.log)
				}
				f.Add(s.name, how, got.Beside(want.Run))
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
	score.Run
	// writes are the names of the writes.
	writes []string
	took   time.Duration
	log    *buffer
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
	rested := w.rest(func() bool { return w.told() && (want == nil || score.Differ(want, w.picture()) == "") })
	o.End, o.log, o.took = w.picture(), w.log, time.Since(began)
	if !rested {
		o.Unrest, o.WayOn = w.hold()
		o.Unrest = cmp.Or(o.Unrest, "objects, or a status, that are not those of the undisturbed run")
	}
	var hit time.Time
	o.writes, hit, _ = w.writes.seen()
	o.Hit = !hit.IsZero()
	o.Restarts, o.Wrong = w.judged()
	for member := range o.Restarts {
		o.Restarts[member] -= before[member]
	}
	return o
}
