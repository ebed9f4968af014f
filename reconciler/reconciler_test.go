package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// fakeAPI is client-go's fake clientset with what the reconciler rests on and
// the fake leaves out: UIDs, versions, generations, and preconditions on them.
type fakeAPI struct {
	*fake.Clientset
	version atomic.Int64
}

func newFakeAPI(objects ...runtime.Object) *fakeAPI {
	api := &fakeAPI{Clientset: fake.NewClientset(objects...)}
	api.PrependReactor("create", "*", api.create)
	api.PrependReactor("update", "*", api.update)
	api.PrependReactor("patch", "*", api.patch)
	api.PrependReactor("delete", "*", api.remove)
	return api
}

// find returns what is stored, nil when nothing is.
func (api *fakeAPI) find(action clienttesting.Action, name string) runtime.Object {
	object, err := api.Tracker().Get(action.GetResource(), action.GetNamespace(), name)
	if err != nil {
		return nil
	}
	return object
}

// stamp gives an object another version, and at first the rest.
func (api *fakeAPI) stamp(o metav1.Object) {
	version := api.version.Add(1)
	o.SetResourceVersion(strconv.FormatInt(version, 10))
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", version)))
		o.SetCreationTimestamp(metav1.Now())
	}
}

func (api *fakeAPI) create(action clienttesting.Action) (bool, runtime.Object, error) {
	create, _ := action.(clienttesting.CreateAction)
	if o, err := meta.Accessor(create.GetObject()); err == nil {
		o.SetUID("")
		o.SetGeneration(1)
		api.stamp(o)
	}
	return false, nil, nil
}

func (api *fakeAPI) update(action clienttesting.Action) (bool, runtime.Object, error) {
	update, _ := action.(clienttesting.UpdateAction)
	o, err := meta.Accessor(update.GetObject())
	if err != nil {
		return true, nil, err
	}
	before := api.find(action, o.GetName())
	if before == nil {
		return false, nil, nil
	}
	if err := precondition(action, before, o.GetName(), o.GetUID(), o.GetResourceVersion()); err != nil {
		return true, nil, err
	}
	if sameContent(before, update.GetObject()) {
		return true, before, nil
	}
	api.stamp(o)
	return false, nil, nil
}

// patch does server-side apply. What changes nothing keeps the version, as on a
// real API server.
func (api *fakeAPI) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch, ok := action.(clienttesting.PatchActionImpl)
	if !ok || patch.GetPatchType() != types.ApplyPatchType {
		return false, nil, nil
	}
	var want metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch.GetPatch(), &want); err != nil {
		return true, nil, err
	}
	before := api.find(action, patch.GetName())
	if err := precondition(action, before, patch.GetName(), want.UID, want.ResourceVersion); err != nil {
		return true, nil, err
	}
	_, after, err := clienttesting.ObjectReaction(api.Tracker())(action)
	if err != nil {
		return true, nil, err
	}
	if before != nil && sameContent(before, after) {
		return true, before, api.Tracker().Update(action.GetResource(), before, action.GetNamespace())
	}
	o, err := meta.Accessor(after)
	if err != nil {
		return true, nil, err
	}
	o.SetGeneration(o.GetGeneration() + 1)
	api.stamp(o)
	return true, after, api.Tracker().Update(action.GetResource(), after, action.GetNamespace())
}

func (api *fakeAPI) remove(action clienttesting.Action) (bool, runtime.Object, error) {
	remove, _ := action.(clienttesting.DeleteActionImpl)
	p := remove.DeleteOptions.Preconditions
	if before := api.find(action, remove.GetName()); before != nil && p != nil && p.UID != nil {
		if err := precondition(action, before, remove.GetName(), *p.UID, ""); err != nil {
			return true, nil, err
		}
	}
	return false, nil, nil
}

// precondition compares the UID and the version that a request names.
func precondition(action clienttesting.Action, before runtime.Object, name string, uid types.UID, version string) error {
	conflict := func(text string) error {
		return apierrors.NewConflict(action.GetResource().GroupResource(), name, fmt.Errorf("%s", text))
	}
	if before == nil {
		if uid != "" {
			return conflict("the UID names an object that does not exist")
		}
		return nil
	}
	o, err := meta.Accessor(before)
	switch {
	case err != nil:
		return err
	case uid != "" && uid != o.GetUID():
		return conflict("the UID is another one")
	case version != "" && version != o.GetResourceVersion():
		return conflict("the object has been modified")
	}
	return nil
}

func sameContent(a, b runtime.Object) bool {
	plain := func(object runtime.Object) runtime.Object {
		object = object.DeepCopyObject()
		if o, err := meta.Accessor(object); err == nil {
			o.SetManagedFields(nil)
			o.SetResourceVersion("")
		}
		return object
	}
	return equality.Semantic.DeepEqual(plain(a), plain(b))
}

// requests lists what was asked of the API since the last call: "get pods
// shop/orders-0". Watches belong to the caches, and are left out.
func (api *fakeAPI) requests() []string {
	var list []string
	for _, a := range api.Actions() {
		if a.GetVerb() == "watch" {
			continue
		}
		name := ""
		if n, ok := a.(interface{ GetName() string }); ok {
			name = n.GetName()
		}
		if create, ok := a.(clienttesting.CreateAction); ok && name == "" {
			if o, err := meta.Accessor(create.GetObject()); err == nil {
				name = o.GetName()
			}
		}
		list = append(list, strings.TrimSpace(a.GetVerb()+" "+a.GetResource().Resource+" "+name))
	}
	api.ClearActions()
	return list
}

// writes are the requests that change something.
func (api *fakeAPI) writes() []string {
	return slices.DeleteFunc(api.requests(), func(r string) bool {
		return strings.HasPrefix(r, "get ") || strings.HasPrefix(r, "list ")
	})
}

// fakeEtcd is Etcd without a network: members that run what their pods say.
type fakeEtcd struct {
	mu sync.Mutex
	// version of a member, "" while it does not answer.
	version func(member string) string
	// change is applied to every round.
	change   func(*plan.Round)
	snapshot []byte
	// stream, where it is set, is what a snapshot streams instead.
	stream  func(ctx context.Context) io.Reader
	leader  string
	calls   []string
	members []string
	// asked are the members through which the last change of the list was to go.
	asked []string
	// learners among the members.
	learners map[string]bool
	// joined counts how often a member of that name was added: each time it gets
	// another ID.
	joined map[string]int
	// refuse is what a change answers instead of happening; loseAnswer is what it
	// answers after it happened.
	refuse, loseAnswer error
	// downgrade is the line of the downgrade under way, "" for none.
	downgrade string
	// saved is how often each member has saved its state; it rises by one with each
	// nudge for those that save.
	saved map[string]int64
	saves func(member string) bool
}

// errSomebodyElse is what a member answers that is not the one that was meant.
var errSomebodyElse = errors.New("it answers as another member")

// takes says whether the member is the one that is meant, and takes requests.
func (e *fakeEtcd) takes(t Target) error {
	if t.ClusterID != "c1" || t.ID != e.id(t.Member) {
		return errSomebodyElse
	}
	return e.refuse
}

func (e *fakeEtcd) EnableDowngrade(_ context.Context, _ string, member Target, line string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.downgrade = line
	return e.changed("enable the downgrade to " + line + " through " + member.Member)
}

func (e *fakeEtcd) CancelDowngrade(_ context.Context, _ string, member Target) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.downgrade = ""
	return e.changed("cancel the downgrade through " + member.Member)
}

func (e *fakeEtcd) Nudge(_ context.Context, _ string, member Target) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	for _, name := range e.members {
		if e.saves == nil || e.saves(name) {
			e.saved[name]++
		}
	}
	return e.changed("nudge " + member.Member)
}

func (e *fakeEtcd) Snapshots(_ context.Context, _ string, member Endpoint) (int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.version(member.Member) == "" {
		return 0, errors.New("connection refused")
	}
	return e.saved[member.Member], nil
}

func fakeMemberID(name string) string { return "a" + strconv.Itoa(memberOrdinal(name)) }

// id is the member's ID: another one after each time that it was added.
func (e *fakeEtcd) id(name string) string {
	return fakeMemberID(name) + strings.Repeat("f", e.joined[name])
}

func (e *fakeEtcd) Round(_ context.Context, _ string, members []Endpoint, deep bool) plan.Round {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := plan.Round{At: time.Now(), ClusterID: "c1", Deep: deep}
	lowest := ""
	for _, name := range e.members {
		m := plan.Member{ID: e.id(name), Name: name, Learner: e.learners[name], Problem: "it has no pod with an address"}
		if slices.ContainsFunc(members, func(e Endpoint) bool { return e.Member == name }) {
			e.answer(&m, deep)
		}
		if m.Version != "" && (lowest == "" || m.Version < lowest) {
			lowest = m.Version
		}
		r.Members = append(r.Members, m)
	}
	r.ClusterVersion = lowest[:max(0, strings.LastIndex(lowest, "."))] + ".0"
	e.descend(&r)
	if e.change != nil {
		e.change(&r)
	}
	return r
}

// descend is what a downgrade makes of a round. It ends by itself when every
// member runs the older line.
func (e *fakeEtcd) descend(r *plan.Round) {
	if e.downgrade == "" {
		return
	}
	over := true
	for i := range r.Members {
		r.Members[i].StorageVersion = e.downgrade + ".0"
		over = over && strings.HasPrefix(r.Members[i].Version, e.downgrade+".")
	}
	if over {
		e.downgrade = ""
		return
	}
	r.Downgrading, r.DowngradeTarget, r.ClusterVersion = true, e.downgrade, e.downgrade+".0"
}

func (e *fakeEtcd) answer(m *plan.Member, deep bool) {
	m.Problem, m.Version = "", e.version(m.Name)
	if m.Version == "" {
		m.Problem = "status: connection refused"
		return
	}
	m.Leader, m.Term, m.Commit, m.Applied, m.Revision = e.id(e.leader), 2, 100, 100, 7
	if deep {
		m.Hash, m.HashRevision = 99, 7
	}
}

func (e *fakeEtcd) MoveLeader(_ context.Context, _ string, leader Target, toID string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(leader); err != nil {
		return err
	}
	e.calls = append(e.calls, "move leader from "+leader.Member+" to "+toID)
	for _, name := range e.members {
		if e.id(name) == toID {
			e.leader = name
		}
	}
	return nil
}

// changed is what a change answers that was carried out.
func (e *fakeEtcd) changed(call string) error {
	e.calls = append(e.calls, call)
	return e.loseAnswer
}

// through notes whom a change was to go through.
func (e *fakeEtcd) through(members []Endpoint) {
	e.asked = nil
	for _, m := range members {
		e.asked = append(e.asked, m.Member)
	}
}

// named is the name of the member with the ID, "" for none.
func (e *fakeEtcd) named(id string) string {
	for _, name := range e.members {
		if e.id(name) == id {
			return name
		}
	}
	return ""
}

func (e *fakeEtcd) AddLearner(_ context.Context, _, _ string, members []Endpoint, peerURL string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	host := peerURL[strings.Index(peerURL, "//")+2:]
	name := host[:strings.Index(host, ".")]
	switch {
	case e.learners[name]:
		return e.id(name), nil
	case e.refuse != nil:
		return "", e.refuse
	}
	if e.learners == nil {
		e.learners, e.joined = map[string]bool{}, map[string]int{}
	}
	e.members, e.learners[name] = append(e.members, name), true
	e.joined[name]++
	if err := e.changed("add learner " + peerURL); err != nil {
		return "", err
	}
	return e.id(name), nil
}

func (e *fakeEtcd) PromoteMember(_ context.Context, _, _ string, members []Endpoint, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	name := e.named(id)
	switch {
	case name == "":
		return ErrNotAMember
	case !e.learners[name]:
		return nil
	case e.refuse != nil:
		return e.refuse
	}
	delete(e.learners, name)
	return e.changed("promote " + id)
}

func (e *fakeEtcd) RemoveMember(_ context.Context, _, _ string, members []Endpoint, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	name := e.named(id)
	switch {
	case name == "":
		return nil
	case e.refuse != nil:
		return e.refuse
	}
	e.members = slices.DeleteFunc(e.members, func(n string) bool { return n == name })
	delete(e.learners, name)
	return e.changed("remove " + id)
}

func (e *fakeEtcd) RemoveLearner(_ context.Context, _, _ string, members []Endpoint, id, peerURL string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.through(members)
	host := peerURL[strings.Index(peerURL, "//")+2:]
	name := host[:strings.Index(host, ".")]
	if id != "" {
		name = e.named(id)
	}
	switch {
	case !slices.Contains(e.members, name):
		return nil
	case !e.learners[name]:
		return ErrIsVoter
	case e.refuse != nil:
		return e.refuse
	}
	id = e.id(name)
	e.members = slices.DeleteFunc(e.members, func(n string) bool { return n == name })
	delete(e.learners, name)
	return e.changed("remove learner " + id)
}

func (e *fakeEtcd) Snapshot(ctx context.Context, _ string, member Target) (io.ReadCloser, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return nil, err
	}
	e.calls = append(e.calls, "snapshot of "+member.Member)
	if e.stream != nil {
		return io.NopCloser(e.stream(ctx)), nil
	}
	return io.NopCloser(bytes.NewReader(e.snapshot)), nil
}

func (e *fakeEtcd) Compact(_ context.Context, _ string, member Target, revision int64) error {
	return e.done(member, fmt.Sprintf("compact through %s at %d", member.Member, revision))
}

func (e *fakeEtcd) Defragment(_ context.Context, _ string, member Target) error {
	return e.done(member, "defragment "+member.Member)
}

// done notes a call to a member that does nothing else.
func (e *fakeEtcd) done(member Target, text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.takes(member); err != nil {
		return err
	}
	e.calls = append(e.calls, text)
	return nil
}

func (e *fakeEtcd) Disarm(_ context.Context, _ string, members []Endpoint, alarm plan.Alarm) error {
	return e.called(fmt.Sprintf("disarm %s with %d", alarm, len(members)))
}

// called notes a call that does nothing else.
func (e *fakeEtcd) called(text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuse != nil {
		return e.refuse
	}
	e.calls = append(e.calls, text)
	return nil
}

func (e *fakeEtcd) Forget(cluster string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, "forget "+cluster)
}

// world is the cluster shop/orders on a fake API server, with a StatefulSet
// controller and etcd behind it. It lives in a synctest bubble, where waiting
// takes no time and the caches have caught up when everybody waits.
type world struct {
	*testing.T
	api      *fakeAPI
	etcd     *fakeEtcd
	events   *record.FakeRecorder
	registry *prometheus.Registry
	log      *bytes.Buffer
	r        *Reconciler
	wish     Cluster
	// backups is the directory that backups go to.
	backups string
	// broken maps a version to what its pods wait for instead of running.
	broken map[string]corev1.ContainerStateWaiting
	// drills is what a container of each restore drill's pod says; nil, or a container
	// without a name, for none.
	drills func() corev1.ContainerStatus
}

// inWorld runs a test in a world of its own.
func inWorld(t *testing.T, test func(w *world), edits ...func(*schema.EtcdCluster)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		test(newWorld(t, dir, edits...))
	})
}

func newWorld(t *testing.T, backups string, edits ...func(*schema.EtcdCluster)) *world {
	t.Helper()
	c := ordersCluster(edits...)
	schema.Default(&c)
	w := &world{
		T: t, api: newFakeAPI(), events: record.NewFakeRecorder(1000), registry: prometheus.NewRegistry(),
		log: &bytes.Buffer{}, backups: backups, wish: Cluster{EtcdCluster: c, Commit: "0a1b2c3"},
	}
	w.etcd = &fakeEtcd{version: w.versionOf, snapshot: backuptest.Snapshot(8 << 10), leader: "orders-0", saved: map[string]int64{}}
	for i := range int(c.Spec.Replicas) {
		w.etcd.members = append(w.etcd.members, MemberName(c, i))
	}
	w.r = New(w.api, w.etcd, w.events, NewMetrics(w.registry), slog.New(slog.NewJSONHandler(w.log, nil)), Options{
		Render:    ordersOptions(),
		BackupURL: "file://" + backups + "/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?root=" + backups,
	})
	t.Cleanup(func() {
		w.r.shutDown()
		w.r.cache.factory.Shutdown()
	})
	if err := w.r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.api.ClearActions()
	return w
}

// formed is a world whose cluster stands and is what Git says.
func formed(t *testing.T, test func(w *world), edits ...func(*schema.EtcdCluster)) {
	t.Helper()
	inWorld(t, func(w *world) {
		w.untilIdle()
		w.mustPass()
		w.api.ClearActions()
		w.log.Reset()
		w.drainEvents()
		test(w)
	}, edits...)
}

// pass makes one pass and lets the world answer it.
func (w *world) pass() (time.Duration, error) {
	w.Helper()
	wait, err := w.r.Pass(w.Context(), w.wish)
	w.settle()
	return wait, err
}

// mustPass is a pass that must not fail.
func (w *world) mustPass() {
	w.Helper()
	if _, err := w.pass(); err != nil {
		w.Fatal(err)
	}
}

// settle lets the controllers act and the caches catch up.
func (w *world) settle() {
	w.Helper()
	for w.control() {
	}
	w.runDrills()
	synctest.Wait()
}

// untilIdle makes passes until the cluster is what Git says.
func (w *world) untilIdle() {
	w.Helper()
	w.until(func(p plan.Plan) bool { return p.Idle() })
}

// until makes passes until the plan is as wanted.
func (w *world) until(wanted func(plan.Plan) bool) plan.Plan {
	w.Helper()
	var p plan.Plan
	for range 200 {
		wait, err := w.pass()
		if err != nil {
			w.Fatal(err)
		}
		if p, err = w.r.Plan(w.Context(), w.wish); err != nil {
			w.Fatal(err)
		}
		if wanted(p) {
			return p
		}
		time.Sleep(wait)
	}
	w.Fatalf("after 200 passes the plan is still\n%s\nand the log says\n%s", p.Text(), w.log)
	return p
}

// lines are the values of one attribute of the log lines with a message.
func (w *world) lines(message, attribute string) []string {
	w.Helper()
	var list []string
	for line := range strings.Lines(w.log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			w.Fatal(err)
		}
		if entry["msg"] == message {
			list = append(list, fmt.Sprint(entry[attribute]))
		}
	}
	return list
}

func (w *world) drainEvents() []string {
	var list []string
	for len(w.events.Events) > 0 {
		list = append(list, <-w.events.Events)
	}
	return list
}

// commit changes the wish, as a new commit would.
func (w *world) commit(edits ...func(*schema.EtcdCluster)) {
	for _, edit := range edits {
		edit(&w.wish.EtcdCluster)
	}
	w.wish.Commit += "+"
}

func (w *world) set() *appsv1.StatefulSet {
	w.Helper()
	object, err := w.api.Tracker().Get(setsResource(), "shop", "orders")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	set, _ := object.(*appsv1.StatefulSet)
	return set
}

// scale sets the number of replicas as somebody else.
func (w *world) scale(replicas int32, manager string) {
	w.Helper()
	set := w.set()
	set.Spec.Replicas = &replicas
	if _, err := w.api.AppsV1().StatefulSets("shop").Update(w.Context(), set, metav1.UpdateOptions{FieldManager: manager}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) pod(name string) *corev1.Pod {
	w.Helper()
	object, err := w.api.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "shop", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	pod, _ := object.(*corev1.Pod)
	return pod
}

// record is what the API server has of the cluster's record.
func (w *world) record() Record {
	w.Helper()
	object, err := w.api.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "shop", "orders-record")
	if err != nil {
		w.Fatal(err)
	}
	cm, _ := object.(*corev1.ConfigMap)
	r, err := ReadRecord(cm)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// versionOf is what the member's pod runs, "" while it does not.
func (w *world) versionOf(member string) string {
	pod := w.pod(member)
	if pod == nil || pod.Status.PodIP == "" || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
		return ""
	}
	return pod.Annotations[AnnotationVersion]
}

// put writes past the API, as another component's request would.
func (w *world) put(resource apischema.GroupVersionResource, object runtime.Object) {
	w.Helper()
	o, err := meta.Accessor(object)
	if err != nil {
		w.Fatal(err)
	}
	w.api.stamp(o)
	if _, err = w.api.Tracker().Get(resource, o.GetNamespace(), o.GetName()); apierrors.IsNotFound(err) {
		err = w.api.Tracker().Create(resource, object, o.GetNamespace())
	} else if err == nil {
		err = w.api.Tracker().Update(resource, object, o.GetNamespace())
	}
	if err != nil {
		w.Fatal(err)
	}
}

func setsResource() apischema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource("statefulsets")
}

func podsResource() apischema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("pods")
}

// control is one step of the StatefulSet controller and the kubelets, as the
// controller does it for Parallel with a partition. It says whether it moved.
func (w *world) control() bool {
	w.Helper()
	set := w.set()
	if set == nil || set.Spec.Replicas == nil {
		return false
	}
	before := set.Status.DeepCopy()
	update := w.revision(set)
	if set.Status.CurrentRevision == "" {
		set.Status.CurrentRevision = update
	}
	set.Status.UpdateRevision, set.Status.ObservedGeneration = update, set.Generation
	moved, updated := false, 0
	for i := int(*set.Spec.Replicas); w.pod(fmt.Sprintf("orders-%d", i)) != nil; i++ {
		w.deletePod(fmt.Sprintf("orders-%d", i))
		moved = true
	}
	set.Status.ReadyReplicas = 0
	for i := range int(*set.Spec.Replicas) {
		pod := w.pod(fmt.Sprintf("orders-%d", i))
		switch {
		case pod == nil:
			w.startPod(set, i)
			moved = true
		case pod.Labels[appsv1.StatefulSetRevisionLabel] == update && podIsReady(pod):
			updated++
		}
		if pod != nil && podIsReady(pod) {
			set.Status.ReadyReplicas++
		}
	}
	if !moved {
		moved = w.replacePod(set, update)
	}
	if updated == int(*set.Spec.Replicas) {
		set.Status.CurrentRevision = update
	}
	if !equality.Semantic.DeepEqual(before, &set.Status) {
		w.put(setsResource(), set)
		moved = true
	}
	return moved
}

// revision stores the template's ControllerRevision, and returns its name.
func (w *world) revision(set *appsv1.StatefulSet) string {
	w.Helper()
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"template": set.Spec.Template}})
	if err != nil {
		w.Fatal(err)
	}
	h := fnv.New32a()
	_, _ = h.Write(text)
	name := fmt.Sprintf("orders-%x", h.Sum32())
	resource := appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
	if _, err := w.api.Tracker().Get(resource, "shop", name); err == nil {
		return name
	}
	w.put(resource, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: set.Spec.Template.Labels},
		Data:       runtime.RawExtension{Raw: text},
	})
	return name
}

// startPod starts a pod from the template that its ordinal is due.
func (w *world) startPod(set *appsv1.StatefulSet, ordinal int) {
	w.Helper()
	name, template := set.Status.UpdateRevision, set.Spec.Template
	if ordinal < int(partitionOf(set)) {
		name, template = set.Status.CurrentRevision, w.templateOf(set.Status.CurrentRevision)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("orders-%d", ordinal), Namespace: "shop", Annotations: template.Annotations,
			Labels: overlayMaps(template.Labels, map[string]string{appsv1.StatefulSetRevisionLabel: name}),
		},
		Spec: template.Spec,
	}
	etcd := corev1.ContainerStatus{Name: EtcdContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ready := corev1.ConditionTrue
	if waiting, broken := w.broken[pod.Annotations[AnnotationVersion]]; broken {
		etcd.State, ready = corev1.ContainerState{Waiting: &waiting}, corev1.ConditionFalse
	}
	pod.Status = corev1.PodStatus{
		PodIP: fmt.Sprintf("10.0.0.%d", ordinal), ContainerStatuses: []corev1.ContainerStatus{etcd},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}},
	}
	w.put(podsResource(), pod)
	w.put(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-" + pod.Name, Namespace: "shop", Labels: template.Labels},
	})
}

func (w *world) templateOf(revision string) corev1.PodTemplateSpec {
	w.Helper()
	object, err := w.api.Tracker().Get(appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), "shop", revision)
	if err != nil {
		w.Fatal(err)
	}
	r, _ := object.(*appsv1.ControllerRevision)
	var set appsv1.StatefulSet
	if err := json.Unmarshal(r.Data.Raw, &set); err != nil {
		w.Fatal(err)
	}
	return set.Spec.Template
}

// replacePod deletes the outdated pod with the highest ordinal that the
// partition lets go, when all that were updated are ready.
func (w *world) replacePod(set *appsv1.StatefulSet, update string) bool {
	w.Helper()
	for i := int(*set.Spec.Replicas) - 1; i >= int(partitionOf(set)); i-- {
		pod := w.pod(fmt.Sprintf("orders-%d", i))
		if pod.Labels[appsv1.StatefulSetRevisionLabel] != update {
			w.deletePod(pod.Name)
			return true
		}
		if !podIsReady(pod) {
			return false
		}
	}
	return false
}

func (w *world) deletePod(name string) {
	w.Helper()
	if err := w.api.Tracker().Delete(podsResource(), "shop", name); err != nil {
		w.Fatal(err)
	}
}

func podIsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func TestBootstrapIsDrivenToIdle(t *testing.T) {
	inWorld(t, func(w *world) {
		w.untilIdle()
		want := []string{
			"create the record", "issue certificates", "apply Service orders-peers", "apply Service orders-client",
			"apply PodDisruptionBudget orders", "create 3 members", "record cluster c1", "end the roll", "record that 3.6.16 is applied",
		}
		got := w.lines("step", "action")
		got = slices.DeleteFunc(got, func(a string) bool { return a == "end the roll" })
		want = slices.DeleteFunc(want, func(a string) bool { return a == "end the roll" })
		if !slices.Equal(got, want) {
			t.Errorf("steps %q, want %q", got, want)
		}
		if done := w.lines("done", "action"); len(done) != len(w.lines("step", "action")) {
			t.Errorf("done %q", done)
		}
		r := w.record()
		if r.ClusterID != "c1" || len(r.Members) != 3 || r.Applied == nil || r.Applied.Version != "3.6.16" || r.Applied.Commit != "0a1b2c3" {
			t.Errorf("the record is %+v", r)
		}
		if p := partitionOf(w.set()); p != 3 {
			t.Errorf("at rest the partition is %d, want it above every pod", p)
		}
	})
}

func TestBootstrapWritesEachObjectOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.untilIdle()
		writes := w.api.writes()
		created := slices.DeleteFunc(slices.Clone(writes), func(s string) bool { return strings.HasPrefix(s, "update ") })
		slices.Sort(created)
		want := []string{
			"create configmaps orders-record",
			"create secrets orders-ca", "create secrets orders-client", "create secrets orders-peer", "create secrets orders-peer-ca", "create secrets orders-server",
			"patch poddisruptionbudgets orders", "patch services orders-client", "patch services orders-peers", "patch statefulsets orders",
		}
		if !slices.Equal(created, want) {
			t.Errorf("writes %q, want %q", created, want)
		}
		if n := len(writes) - len(created); n != 2 {
			t.Errorf("the record was updated %d times, want 2: formed and applied", n)
		}
	})
}

func TestPassAtRestAsksTheAPINothing(t *testing.T) {
	formed(t, func(w *world) {
		wait, err := w.pass()
		if err != nil || wait != 30*time.Second {
			t.Errorf("wait %s, error %v", wait, err)
		}
		if requests := w.api.requests(); len(requests) > 0 {
			t.Errorf("requests at rest: %q", requests)
		}
		if w.log.Len() > 0 || len(w.drainEvents()) > 0 {
			t.Errorf("something was said again:\n%s", w.log)
		}
	})
}

func TestPatchUpgradeIsDrivenToIdle(t *testing.T) {
	for _, leader := range []string{"orders-0", "orders-1", "orders-2"} {
		t.Run(leader+" leads", func(t *testing.T) {
			formed(t, func(w *world) { upgradeToIdle(w, leader) }, setVersion("3.6.12"))
		})
	}
}

func upgradeToIdle(w *world, leader string) {
	w.Helper()
	w.etcd.leader = leader
	w.commit(setVersion("3.6.16"))
	w.untilIdle()
	steps := w.lines("step", "action")
	restarts := slices.DeleteFunc(slices.Clone(steps), func(a string) bool { return !strings.HasPrefix(a, "restart ") })
	want := []string{"restart orders-2 3.6.12 → 3.6.16", "restart orders-1 3.6.12 → 3.6.16", "restart orders-0 3.6.12 → 3.6.16"}
	if !slices.Equal(restarts, want) {
		w.Errorf("restarts %q, want %q", restarts, want)
	}
	if len(steps) < 2 || steps[0] != "back up through "+leader || steps[1] != "start the roll 3.6.12 → 3.6.16" {
		w.Errorf("the upgrade begins with %q", steps)
	}
	for _, member := range w.etcd.members {
		leads := slices.Index(steps, "restart "+member+" 3.6.12 → 3.6.16")
		if member == leader && !strings.HasPrefix(steps[leads-1], "move the leader "+leader) {
			w.Errorf("before %s restarts the step is %q", member, steps[leads-1])
		}
	}
	r := w.record()
	if r.Applied.Version != "3.6.16" || r.Applied.Commit != w.wish.Commit || r.Backup == nil || r.Backup.For != "3.6.16" {
		w.Errorf("the record is %+v", r)
	}
	if _, err := (backup.Store{}).Verify(w.Context(), r.Backup.URL); err != nil {
		w.Error(err)
	}
	w.api.ClearActions()
	w.mustPass()
	if requests := w.api.requests(); len(requests) > 0 {
		w.Errorf("requests at rest: %q", requests)
	}
}

// An image that does not exist stops the roll at one member, and a revert mends
// it.
func TestBadImageStopsTheRollAndARevertMendsIt(t *testing.T) {
	formed(t, func(w *world) {
		w.broken = map[string]corev1.ContainerStateWaiting{"3.6.16": {Reason: "ImagePullBackOff", Message: "manifest unknown"}}
		w.commit(setVersion("3.6.16"))
		p := w.until(func(p plan.Plan) bool { return p.Hold != nil && p.Hold.Kind == plan.HoldStopped })
		if !strings.Contains(p.Hold.Message, "orders-2") || !strings.Contains(p.Hold.Message, "cannot be pulled") {
			t.Errorf("the hold says %q", p.Hold.Message)
		}
		if w.versionOf("orders-1") != "3.6.12" || w.versionOf("orders-0") != "3.6.12" {
			t.Error("another member was touched")
		}
		w.commit(setVersion("3.6.12"))
		w.untilIdle()
		if v := w.versionOf("orders-2"); v != "3.6.12" {
			t.Errorf("orders-2 runs %q after the revert", v)
		}
	}, setVersion("3.6.12"))
}

// A commit may change labels, which are carried out at once, and the version,
// which needs a backup and a roll.
func TestLabelsBesideAVersionDoNotStartTheRoll(t *testing.T) {
	formed(t, func(w *world) {
		before := w.set().Spec.Template.Annotations[AnnotationTemplateHash]
		w.commit(setVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} })
		for w.set().Labels["team"] == "" {
			w.mustPass()
		}
		if now := w.set().Spec.Template.Annotations[AnnotationTemplateHash]; now != before {
			t.Error("the new label brought the new template with it, before the backup and the health gate")
		}
		w.untilIdle()
		if w.record().Backup == nil {
			t.Error("no backup was taken")
		}
	}, setVersion("3.6.12"))
}

// I11: between the last restart and the end of a roll the partition is 0: a
// template that is applied then takes every member at once.
func TestLabelsBesideAVersionAtPartitionZeroRestartNobody(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(setVersion("3.6.16"))
		w.until(func(plan.Plan) bool { return partitionOf(w.set()) == 0 && w.versionOf("orders-0") == "3.6.16" })
		w.log.Reset()
		w.commit(setVersion("3.6.12"), func(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} })
		w.mustPass()
		for _, member := range w.etcd.members {
			if v := w.versionOf(member); v != "3.6.16" {
				t.Errorf("%s runs %s after %q", member, v, w.lines("step", "action"))
			}
		}
	}, setVersion("3.6.12"), func(c *schema.EtcdCluster) { c.Spec.Upgrade.Soak = &metav1.Duration{} })
}

func TestEditByHandIsTakenBackAndNamed(t *testing.T) {
	formed(t, func(w *world) {
		w.scale(1, "kubectl-edit")
		w.mustPass()
		if n := *w.set().Spec.Replicas; n != 3 {
			t.Errorf("%d replicas after the pass", n)
		}
		reasons := w.lines("step", "reason")
		if len(reasons) != 1 || !strings.Contains(reasons[0], "spec.replicas") || !strings.Contains(reasons[0], "kubectl-edit") {
			t.Errorf("reasons %q", reasons)
		}
	})
}

func TestObserveModeTouchesNothing(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(setVersion("3.6.16"), func(c *schema.EtcdCluster) { c.Spec.Mode = schema.ModeObserve })
		w.until(func(p plan.Plan) bool { return p.Hold != nil && p.Hold.Kind == plan.HoldObserve })
		if writes := w.api.writes(); len(writes) > 0 || len(w.etcd.calls) > 0 {
			t.Errorf("writes %q, calls %q", writes, w.etcd.calls)
		}
	}, setVersion("3.6.12"))
}

// I12: a file with errors holds its cluster, whatever else it says.
func TestFileWithErrorsHolds(t *testing.T) {
	formed(t, func(w *world) {
		w.wish = Cluster{Commit: "bad", Problems: []string{"clusters/orders.yaml:7: spec.version: it is a number"}}
		w.wish.Metadata.Namespace, w.wish.Metadata.Name = "shop", "orders"
		w.mustPass()
		if requests := w.api.requests(); len(requests) > 0 {
			t.Errorf("requests %q", requests)
		}
		if holds := w.lines("hold", "message"); len(holds) != 1 || !strings.Contains(holds[0], "it is a number") {
			t.Errorf("holds %q", holds)
		}
	})
}

func TestRunCarriesOutWhatGitSays(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.r.Run(ctx)
		}()
		w.r.SetDesired([]Cluster{w.wish})
		for range 100 {
			time.Sleep(Soon)
			w.settle()
			if len(w.lines("idle", "message")) > 0 {
				break
			}
		}
		if len(w.lines("idle", "message")) != 1 {
			t.Errorf("never idle:\n%s", w.log)
		}
		stop()
		<-ended
	})
}

func TestFailedPassIsTriedAgainAndSaidOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		refused := 0
		w.api.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			refused++
			return refused <= 3, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "orders-record", fmt.Errorf("no"))
		})
		w.r.SetDesired([]Cluster{w.wish})
		go func() {
			for w.r.next(w.Context()) {
			}
		}()
		for range 100 {
			time.Sleep(Soon)
			synctest.Wait()
		}
		if refused <= 3 {
			t.Errorf("tried %d times", refused)
		}
		if failed := w.lines("failed", "error"); len(failed) != 1 || !strings.Contains(failed[0], "create the record") {
			t.Errorf("said %q", failed)
		}
	})
}

// A file that says the same and has an error now, or none any more, is looked at.
func TestSameWish(t *testing.T) {
	good, other, bad := inGit().identified(), inGit(setReplicas(5)).identified(), inGit().identified()
	bad.Problems = []string{"bad"}
	if !sameWish(good, good) || !sameWish(bad, bad) || sameWish(good, other) || sameWish(good, bad) || sameWish(bad, good) {
		t.Errorf("%s, %s, %s", good.digest, other.digest, bad.digest)
	}
}

func TestSameCommitQueuesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.r.SetDesired([]Cluster{w.wish})
		key, _ := w.r.queue.Get()
		w.r.queue.Done(key)
		w.r.SetDesired([]Cluster{w.wish})
		if n := w.r.queue.Len(); n != 0 {
			t.Errorf("%d keys are queued", n)
		}
		w.commit(setVersion("3.6.12"))
		w.r.SetDesired([]Cluster{w.wish})
		if n := w.r.queue.Len(); n != 1 {
			t.Errorf("%d keys are queued after a change", n)
		}
	})
}

func TestChangesOfUnnamedClustersAreLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.r.enqueue("shop/orders")
		if w.r.queue.Len() != 0 {
			t.Error("a cluster that Git does not name was queued")
		}
		if got := w.r.Desired(); len(got) != 0 {
			t.Errorf("desired %v", got)
		}
	})
}

func TestRepeatedStepsAreSlowedDown(t *testing.T) {
	var p pace
	var waits []time.Duration
	for range 4 {
		waits = append(waits, p.after("shop/orders", "apply Service orders-client"))
	}
	if want := []time.Duration{0, Soon, 2 * Soon, 4 * Soon}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	for range 100 {
		p.after("shop/orders", "apply Service orders-client")
	}
	if w := p.after("shop/orders", "apply Service orders-client"); w != 5*time.Minute {
		t.Errorf("at last %s", w)
	}
	if w := p.after("shop/orders", "something else"); w != 0 {
		t.Errorf("another step waits %s", w)
	}
}

// A default takes the place of nothing that was set: neither of a limit nor of the
// lease.
func TestDefaultsOverrideNothing(t *testing.T) {
	other, noon := errors.New("another quorate acts"), time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	set := Options{
		Workers: 7, MaxDisrupted: 8, MaxBackups: 9, MaxDrills: 10, Resync: 11 * time.Second,
		Lease: func() error { return other }, Now: func() time.Time { return noon },
	}
	got := set.withDefaults()
	if !errors.Is(got.Lease(), other) || !got.Now().Equal(noon) {
		t.Errorf("lease %v, now %s", got.Lease(), got.Now())
	}
	if got.Workers != 7 || got.MaxDisrupted != 8 || got.MaxBackups != 9 || got.MaxDrills != 10 || got.Resync != 11*time.Second {
		t.Errorf("%+v", got)
	}
	if d := (Options{}).withDefaults(); d.Workers < 1 || d.MaxDisrupted != 1 || d.MaxBackups < 1 || d.MaxDrills < 1 || d.Resync <= 0 || d.Lease() != nil || d.Now().IsZero() {
		t.Errorf("the defaults: %+v", d)
	}
}
