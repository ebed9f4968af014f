package reconcilertest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Away lets the API server answer no question about one resource.
func Away(w *World, resource string) {
	w.API.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, clustertest.ErrAway })
}

// The owners of these tests.
func Us() state.Owner {
	return state.Owner{Source: "https://git.example.com/etcd.git@main", Instance: "default"}
}

func Them() state.Owner {
	return state.Owner{Source: "https://git.example.com/old.git@main", Instance: "default"}
}

// Claimed is an owner by one of its claims.
func Claimed(o state.Owner, claim int) state.Owner {
	o.Claim = claim
	return o
}

// jobs are the Jobs that exist.
func JobsOf(w *World) []batchv1.Job {
	w.Helper()
	list, err := w.API.BatchV1().Jobs("shop").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// JobEnded lets the Job end well.
func JobEnded(w *World) {
	w.Helper()
	JobEndedWith(w, batchv1.JobComplete)
}

// JobEndedWith lets the first Job end in some way.
func JobEndedWith(w *World, how batchv1.JobConditionType) {
	w.Helper()
	job := JobsOf(w)[0]
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
	if _, err := w.API.BatchV1().Jobs("shop").UpdateStatus(w.Context(), &job, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// StartsAlone lets the first member of the recovered cluster answer.
func StartsAlone(w *World, name string, revision int64) {
	g := w.Record().Recovering
	w.Etcd.Members = []string{name}
	w.Etcd.Change = func(r *state.Round) {
		*r = state.Round{At: r.At, Deep: r.Deep, ClusterID: g.NewClusterID, ClusterVersion: r.ClusterVersion, Members: []state.Member{{
			ID: g.NewMemberID, Name: name, Leader: g.NewMemberID, Revision: revision, Version: w.VersionOf(name), Term: 2,
		}}}
	}
}

// First executes the actions that another one depends on.
func First(actions ...action.Action) func(w *World) {
	return func(w *World) {
		for _, a := range actions {
			w.MustDo(a)
		}
		w.Settle()
	}
}

// Asleep is a recovery of orders-1 that has come to where its volume is restored.
func Asleep(w *World) {
	Unready(w)
	First(action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", Revision: 7})(w)
	First(action.ResizeSet{SetUID: string(w.Set().UID), From: 3, To: 0, Partition: 3})(w)
}

// Restoring is a world in which Git asks for a restore into orders, and nothing
// exists but the backup.
func Restoring(t *testing.T, test func(w *World), edits ...func(*backup.Manifest)) {
	t.Helper()
	url := StoredBackup(t, edits...)
	Run(t, func(w *World) {
		w.AsksRestore(url)
		test(w)
	})
}

// StoredBackup is a backup in a directory.
func StoredBackup(t *testing.T, edits ...func(*backup.Manifest)) string {
	t.Helper()
	dir := t.TempDir()
	url := "file://" + dir + "/1.db?root=" + dir
	m := backup.Manifest{ClusterID: "c0", EtcdVersion: "3.5.35", Revision: 7}
	for _, edit := range edits {
		edit(&m)
	}
	if _, err := (backup.Store{}).Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
		t.Fatal(err)
	}
	return url
}

// RestoreGoesOn lets the Job end, and then the first member answer.
func RestoreGoesOn(w *World) {
	switch r := w.Record(); {
	case r.Recovering != nil && len(JobsOf(w)) == 1 && r.ClusterID == "":
		JobEnded(w)
	case r.Recovering != nil && r.ClusterID != "":
		StartsAlone(w, "orders-0", 7+state.RevisionBump)
	}
}

func metaEach(list runtime.Object, f func(name string, o runtime.Object)) error {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	for i := range items.Len() {
		o, ok := items.Index(i).Addr().Interface().(interface {
			runtime.Object
			metav1.Object
		})
		if !ok {
			return fmt.Errorf("item %d is no object", i)
		}
		f(o.GetName(), o)
	}
	return nil
}

// Damage cuts the record short.
func Damage(w *World) {
	w.Helper()
	configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")
	object, err := w.API.Tracker().Get(configMaps, "shop", "orders-record")
	if err != nil {
		w.Fatal(err)
	}
	cm, _ := object.(*corev1.ConfigMap)
	cm.Data[naming.KeyRecord] = cm.Data[naming.KeyRecord][:20]
	w.Put(configMaps, cm)
}

// Stepwise lets the file ask for a walk through the releases in between.
func Stepwise(c *schema.EtcdCluster) { c.Spec.Upgrade.Path = schema.PathStepwise }

func ClaimsResource() apischema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
}

// Gather is every series but the histogram's, as name{label=value,…}.
func Gather(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "etcd_namespace" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			if m.GetHistogram() == nil {
				all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return all
}

// Ill makes orders-1 a pod that is not ready since a time.
func Ill(w *World, since time.Time, change func(*corev1.Pod)) {
	w.Helper()
	pod := w.Pod("orders-1")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
	pod.Status.ContainerStatuses[0].Ready = false
	change(pod)
	w.Put(PodsResource(), pod)
	w.Settle()
}

// Tie binds the claim of orders-1 to a volume that only one host has.
func Tie(w *World, phase corev1.PersistentVolumeClaimPhase, hosts ...string) {
	w.Helper()
	w.Put(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-orders-1", Namespace: "shop", Labels: naming.OwnLabels(w.Wish.EtcdCluster)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
	})
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}
	if len(hosts) > 0 {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
		}}}}
	}
	w.Put(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), volume)
	w.Settle()
}

// BackedUp is a formed world that has been asked for something.
func BackedUp(t *testing.T, test func(w *World)) {
	t.Helper()
	Formed(t, func(w *World) {
		w.R.SetDesired([]desired.Cluster{w.Wish})
		test(w)
	})
}

// Failing is a reader that fails.
type Failing struct{ Err error }

func (f Failing) Read([]byte) (int, error) { return 0, f.Err }

// WantMetrics compares the named metrics with their text form, whose comment
// lines are left out.
func WantMetrics(t *testing.T, registry prometheus.Gatherer, want map[string]float64) {
	t.Helper()
	got := Gather(t, registry)
	for series, value := range want {
		if v, ok := got[series]; !ok || v != value {
			t.Errorf("%s is %v (there: %t), want %v", series, v, ok, value)
		}
	}
}

// ReadyPod is the pod as a kubelet reports it that finds it ready, or not, now.
func ReadyPod(p *corev1.Pod, ready bool) *corev1.Pod {
	p, status := p.DeepCopy(), corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	})
	return p
}

// Unready has the kubelets find the members of two of three places not ready.
func Unready(w *World) {
	w.Helper()
	for _, name := range []string{"orders-0", "orders-2"} {
		w.Put(PodsResource(), ReadyPod(w.Pod(name), false))
	}
	w.Settle()
}
