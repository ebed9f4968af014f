package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
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
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// world is the cluster shop/orders on a fake API server, with a StatefulSet
// controller and etcd behind it. It lives in a synctest bubble, where waiting
// takes no time and the caches have caught up when everybody waits.
type world struct {
	*testing.T
	api      *fakeAPI
	etcd     *fakeEtcd
	events   *eventrecord.FakeRecorder
	registry *prometheus.Registry
	log      *bytes.Buffer
	r        *Reconciler
	wish     desired.Cluster
	// backups is the directory that backups go to.
	backups string
	// broken maps a version to what its pods wait for instead of running.
	broken map[string]corev1.ContainerStateWaiting
	// drills is what a container of each restore drill's pod says; nil, or a container
	// without a name, for none.
	drills func() corev1.ContainerStatus
}

// certificateEpoch is the time of tests about certificates.
var certificateEpoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ordersOptions() manifests.Options {
	return manifests.Options{GuardImage: "ghcr.io/quorate/quorate:v0.1.0", ClusterDomain: "cluster.local"}
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
	c := clustertest.Orders(edits...)
	schema.Default(&c)
	w := &world{
		T: t, api: newFakeAPI(), events: eventrecord.NewFakeRecorder(1000), registry: prometheus.NewRegistry(),
		log: &bytes.Buffer{}, backups: backups, wish: desired.Cluster{EtcdCluster: c, Commit: "0a1b2c3"},
	}
	w.etcd = &fakeEtcd{version: w.versionOf, snapshot: backuptest.Snapshot(8 << 10), leader: "orders-0", saved: map[string]int64{}}
	for i := range int(c.Spec.Replicas) {
		w.etcd.members = append(w.etcd.members, naming.Member(c.Metadata.Name, int32(i)))
	}
	w.r = New(w.api, w.etcd, w.events, NewMetrics(w.registry), slog.New(slog.NewJSONHandler(w.log, nil)), Options{
		Render:    ordersOptions(),
		BackupURL: "file://" + backups + "/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?root=" + backups,
	})
	t.Cleanup(func() { w.r.Close() })
	if err := w.r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.api.ClearActions()
	return w
}

// reconfigure restarts quorate with other options: what Git says, and what the caches
// hold, is the same.
func (w *world) reconfigure(edit func(*Options)) {
	was, o := w.r, w.r.options
	edit(&o)
	w.r = was.With(o, was.observer.etcd, w.events, was.reporter.metrics, was.reporter.log)
	if clusters := slices.Collect(maps.Values(was.Desired())); len(clusters) > 0 {
		w.r.SetDesired(clusters)
	}
	if backups := slices.Collect(maps.Values(was.Backups())); len(backups) > 0 {
		w.r.SetBackups(backups)
	}
	w.sign(was.executor.stores.Sign)
	w.Cleanup(was.Close)
}

// ask has quorate ask other members.
func (w *world) ask(members etcd.Members) {
	w.r.observer.etcd, w.r.executor.etcd, w.r.scheduler.etcd = members, members, members
}

// sign has restores read backups by other URLs than those of the store.
func (w *world) sign(by func(context.Context, backup.Store, string, time.Duration) (string, error)) {
	w.r.executor.stores.Sign, w.r.scheduler.stores.Sign = by, by
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

// pass makes one pass and lets the world answer it. It must leave what Git says as it
// is: the next commit has parts of it, too.
func (w *world) pass() (time.Duration, error) {
	w.Helper()
	before := w.json(w.wish)
	wait, err := w.r.Pass(w.Context(), w.wish)
	if after := w.json(w.wish); !bytes.Equal(before, after) {
		w.Errorf("the pass has changed\n%s\nto\n%s", before, after)
	}
	w.settle()
	return wait, err
}

func (w *world) json(v any) []byte {
	w.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		w.Fatal(err)
	}
	return text
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
func (w *world) record() record.Record {
	w.Helper()
	object, err := w.api.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "shop", "orders-record")
	if err != nil {
		w.Fatal(err)
	}
	cm, _ := object.(*corev1.ConfigMap)
	r, err := record.Read(cm)
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
	return pod.Annotations[naming.AnnotationVersion]
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
			Labels: naming.OverlayMaps(template.Labels, map[string]string{appsv1.StatefulSetRevisionLabel: name}),
		},
		Spec: template.Spec,
	}
	etcd := corev1.ContainerStatus{Name: naming.ContainerEtcd, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ready := corev1.ConditionTrue
	if waiting, broken := w.broken[pod.Annotations[naming.AnnotationVersion]]; broken {
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
