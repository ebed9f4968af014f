package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/perturb/score"
)

const (
	// patience is how long a world has to come to rest.
	patience = 3 * time.Minute
	// quiet is how long nothing was written in a world at rest.
	quiet = 2 * time.Second
)

// world is one run's namespace, with a cluster and the processes of quorate.
type world struct {
	*testing.T
	namespace string
	writes    *counter
	etcd      *reconcilertest.FakeEtcd
	log       *buffer

	mu   sync.Mutex
	wish desired.Cluster
	// r is the reconciler of the process that runs, and end ends it.
	r   *reconciler.Reconciler
	end func()
	// uids are those of the pods, and starts how often each member was started.
	uids   map[string]string
	starts map[string]int
	// data is the ID of the member whose data a claim has, by the claim's UID, and holds the
	// claim that has a member's data, by its ID.
	data, holds map[string]string
	// wrong is what must not have been, and formed true once all members were up.
	wrong  []string
	formed bool
	// excused says that members may be down: the scenario itself stops them.
	excused bool
}

// newWorld makes a namespace whose cluster is as Git says. A disturbance waits until the world
// begins to count.
func newWorld(t *testing.T, namespace, at, how string, edits ...func(*schema.EtcdCluster)) *world {
	t.Helper()
	w := &world{
		T: t, namespace: namespace, writes: &counter{at: at, how: how, counted: map[string]int{}}, log: &buffer{},
		uids: map[string]string{}, starts: map[string]int{}, data: map[string]string{}, holds: map[string]string{},
	}
	_, err := api.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	w.must(err)
	c := clustertest.Orders(append([]func(*schema.EtcdCluster){func(c *schema.EtcdCluster) {
		c.Metadata.Namespace, c.Spec.Upgrade.Backup = namespace, schema.BackupSkip
		c.Spec.Upgrade.Soak, c.Spec.Repair.After = &metav1.Duration{}, &metav1.Duration{}
	}}, edits...)...)
	schema.Default(&c)
	w.wish = desired.Cluster{EtcdCluster: c, Commit: "0a1b2c3"}.Identified()
	w.etcd = &reconcilertest.FakeEtcd{Version: w.version, Leader: "orders-0", Saved: map[string]int64{}}
	for i := range c.Spec.Replicas {
		w.etcd.Members = append(w.etcd.Members, naming.Member("orders", i))
	}
	api.kubelets.join(w)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// run lets quorate run until the test ends, and starts it again where it is killed.
func (w *world) run() {
	w.Helper()
	p, err := w.start()
	w.must(err)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				w.end()
				return
			case <-p.ctx.Done():
			}
			w.end()
			next, err := w.start()
			if err != nil {
				w.Error(err)
				<-stop
				return
			}
			p = next
		}
	}()
	w.Cleanup(func() { close(stop); <-ended })
}

// start starts quorate as the daemon does.
func (w *world) start() (*process, error) {
	p := newProcess(w.writes, w.namespace)
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	r := reconciler.New(client, w.etcd, eventrecord.NewFakeRecorder(100000), report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(w.log, nil)), reconciler.Options{
		Owner: w.owner(), Render: manifests.Options{GuardImage: "ghcr.io/quorate/quorate:v0.1.0"}, Lease: p.alive,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.Start(p.ctx); err == nil {
			r.Run(p.ctx)
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.r, w.end = r, func() { p.kill(); <-ended; r.Close(); p.close() }
	r.SetDesired([]desired.Cluster{w.wish})
	return p, nil
}

// owner is the quorate of this world.
func (w *world) owner() state.Owner {
	return state.Owner{Source: "https://git.example.com/" + w.namespace + ".git@main", Instance: "default"}
}

// commit is what Git says from now on.
func (w *world) commit(edit func(*schema.EtcdCluster)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit(&w.wish.EtcdCluster)
	w.wish.Commit, w.wish.Digest = w.wish.Commit+"1", ""
	w.wish = w.wish.Identified()
	w.r.SetDesired([]desired.Cluster{w.wish})
}

// stops lets a scenario stop members.
func (w *world) stops() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.excused = true
}

// version is what a member runs, "" while it does not.
func (w *world) version(member string) string {
	_, versions := api.kubelets.members(w.namespace)
	return versions[member]
}

// look judges what has become of the pods, and lets the members elect a leader.
func (w *world) look() {
	all, up := api.kubelets.members(w.namespace)
	members, learners := w.etcd.Listed()
	w.etcd.Elect(func(member string) bool { return up[member] != "" })
	w.mu.Lock()
	defer w.mu.Unlock()
	voters, down := 0, 0
	for _, name := range members {
		if !learners[name] {
			voters++
			if up[name] == "" {
				down++
			}
		}
	}
	w.formed = w.formed || down == 0
	if w.formed && !w.excused && voters > 1 && down > 1 {
		w.add("I2: %d of %d voters are down at once", down, voters)
	}
	for name, p := range all {
		if w.uids[name] != string(p.UID) {
			w.uids[name] = string(p.UID)
			w.starts[name]++
		}
		if up[name] != "" && slices.Contains(members, name) {
			w.judgeData(name)
		}
	}
}

// judgeData wants a member to run on its own data.
func (w *world) judgeData(name string) {
	claim, err := api.kubelets.claims.PersistentVolumeClaims(w.namespace).Get("data-" + name)
	if err != nil {
		return // the claim is not seen yet
	}
	id, uid := w.etcd.MemberID(name), string(claim.UID)
	switch had := w.holds[id]; {
	case had != "" && had != uid:
		w.add("I5: %s runs as %s on another volume than the one with its data", name, id)
	case w.data[uid] != "" && w.data[uid] != id:
		w.add("I5: %s runs as %s on the data of %s", name, id, w.data[uid])
	}
	w.data[uid], w.holds[id] = id, uid
}

// unless notes what must not be where something is not so.
func (w *world) unless(so bool, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !so {
		w.add("%s", what)
	}
}

// add notes what must not be, once; mu is held.
func (w *world) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.wrong, text) {
		w.wrong = append(w.wrong, text)
	}
}

// judged is what look has found so far.
func (w *world) judged() (starts map[string]int, wrong []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.starts), slices.Clone(w.wrong)
}

// varying is what the API server gives out (addresses, and UIDs), how often an object was
// changed, and who leads.
var varying = regexp.MustCompile(`10\.96\.\d+\.\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|observedGeneration = \d+|members\[\d+\]\.leader`)

// picture is the world without what differs from one run to the next.
func (w *world) picture() (lines []string) {
	w.Helper()
	ctx, none := w.Context(), metav1.ListOptions{}
	core, apps := api.kube.CoreV1(), api.kube.AppsV1()
	set, err := apps.StatefulSets(w.namespace).List(ctx, none)
	w.must(err)
	names := []string{w.namespace, "shop", statuses.ByOf(w.owner()), "…"}
	for _, s := range set.Items {
		if revision := s.Status.UpdateRevision; revision != "" {
			names = append(names, strings.TrimPrefix(revision, s.Name+"-"), "newest")
		}
		names = append(names, s.Spec.Template.Annotations[naming.AnnotationTemplateHash], "newest")
	}
	plain := strings.NewReplacer(names...)
	for kind, list := range map[string]func() (runtime.Object, error){
		"ConfigMap":             func() (runtime.Object, error) { return core.ConfigMaps(w.namespace).List(ctx, none) },
		"Secret":                func() (runtime.Object, error) { return core.Secrets(w.namespace).List(ctx, none) },
		"Service":               func() (runtime.Object, error) { return core.Services(w.namespace).List(ctx, none) },
		"Pod":                   func() (runtime.Object, error) { return core.Pods(w.namespace).List(ctx, none) },
		"PersistentVolumeClaim": func() (runtime.Object, error) { return core.PersistentVolumeClaims(w.namespace).List(ctx, none) },
		"StatefulSet":           func() (runtime.Object, error) { return set, nil },
		"PodDisruptionBudget": func() (runtime.Object, error) {
			return api.kube.PolicyV1().PodDisruptionBudgets(w.namespace).List(ctx, none)
		},
	} {
		all, err := list()
		w.must(err)
		for _, line := range score.List(kind, all) {
			lines = append(lines, varying.ReplaceAllString(plain.Replace(line), "…"))
		}
	}
	members, learners := w.etcd.Listed()
	for _, name := range members {
		lines = append(lines, fmt.Sprintf("etcd %s learner=%t version=%s", name, learners[name], w.version(name)))
	}
	slices.Sort(lines)
	return lines
}

// hold is why the cluster is not what Git says, "" where it is, and whether that names what a
// person must do.
func (w *world) hold() (why string, wayOn bool) {
	w.mu.Lock()
	r, wish := w.r, w.wish
	w.mu.Unlock()
	p, err := r.Plan(w.Context(), wish)
	switch {
	case err != nil:
		return err.Error(), false
	case p.Hold != nil:
		return p.Hold.String(), p.Hold.Do != ""
	case len(p.Steps) > 0:
		return p.Steps[0].Action.String(), false
	}
	return "", false
}

// rest waits until the cluster is what Git says, no disturbance has consequences to come, and
// nothing was written for a while. It reports whether it came to that.
func (w *world) rest(also func() bool) bool {
	w.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		_, hit, last := w.writes.seen()
		if time.Since(last) < quiet || time.Since(hit) < w.writes.lasts()+quiet {
			continue
		}
		if why, _ := w.hold(); why == "" && also() {
			return true
		}
	}
	return false
}

// told reports whether the status in Kubernetes is the one that quorate knows. It is written
// some time later.
func (w *world) told() bool {
	w.mu.Lock()
	r := w.r
	w.mu.Unlock()
	list, whole := r.Statuses()
	cm, err := api.kube.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), "orders-cluster-status", metav1.GetOptions{})
	if err != nil || !whole || len(list) != 1 {
		return false
	}
	set, err := api.kube.AppsV1().StatefulSets(w.namespace).Get(w.Context(), "orders", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		set, err = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Labels: cm.Labels}}, nil // it has no labels to be wrong
	}
	stored, _, unread := statuses.Read(cm)
	if err != nil || unread != nil {
		return false
	}
	for _, label := range []string{naming.LabelPhase, naming.LabelReason, naming.LabelWantedVersion, naming.LabelCommit} {
		if set.Labels[label] != cm.Labels[label] {
			return false
		}
	}
	return plain(stored) == plain(list[0])
}

// plain is a status without its times.
func plain(s schema.Status) string {
	s.Status.Conditions = slices.Clone(s.Status.Conditions)
	for i := range s.Status.Conditions {
		s.Status.Conditions[i].LastTransitionTime = ""
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return score.Plain(string(text))
}

// alive is the lease of a process.
func (p *process) alive() error {
	if p.ctx.Err() != nil {
		return errKilled
	}
	return nil
}

// buffer is a log that several may write.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
