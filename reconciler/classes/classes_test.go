package classes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/classes"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// readerOf asks an API server that has these objects.
func readerOf(objects ...runtime.Object) (classes.Reader, *fake.Clientset) {
	api := fake.NewClientset(objects...)
	return classes.Reader{Kube: api, Jobs: jobs.Client{Kube: api}}, api
}

func classOf(name string, change func(*storagev1.StorageClass)) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "disks.example.com"}
	if change != nil {
		change(c)
	}
	return c
}

// answers has the API server answer all that is asked of a resource with an error.
func answers(api *fake.Clientset, verb, kind string, err error) {
	api.PrependReactor(verb, kind, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// Why a volume cannot grow; what nobody may read is no error.
func TestClassesWhoseVolumesDoNotGrow(t *testing.T) {
	grows := func(allowed *bool) func(*storagev1.StorageClass) {
		return func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = allowed }
	}
	r, api := readerOf(classOf("grows", grows(new(true))), classOf("rigid", grows(new(false))), classOf("silent", nil))
	check := func(class, want string) {
		t.Helper()
		got, err := r.Rigidity(t.Context(), class)
		if err != nil || !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q: %v", class, got, want, err)
		}
	}
	check("grows", "")
	check("rigid", "does not allow it")
	check("silent", "does not allow it")
	check("absent", "no longer exists")
	check("", "only volumes of a class can grow")
	answers(api, "get", "storageclasses", apierrors.NewForbidden(storagev1.Resource("storageclasses"), "grows", errors.New("no")))
	check("grows", "quorate may not read StorageClass grows")
	answers(api, "get", "storageclasses", apierrors.NewInternalError(errors.New("away")))
	if _, err := r.Rigidity(t.Context(), "grows"); err == nil || !strings.Contains(err.Error(), "read StorageClass grows") {
		t.Errorf("%v", err)
	}
}

// moving is a cluster that is to have its volumes in class fast.
func moving(change schema.ClassChange) desired.Cluster {
	return *clustertest.InGit(func(c *schema.EtcdCluster) {
		c.Spec.Storage.StorageClassName, c.Spec.Storage.ClassChange = new("fast"), change
	})
}

// members are the claims of the three members, changed by edit.
func members(edit func(i int, c *corev1.PersistentVolumeClaim)) (list []*corev1.PersistentVolumeClaim) {
	for i := range 3 {
		list = append(list, clustertest.Claim(fmt.Sprintf("data-orders-%d", i), func(c *corev1.PersistentVolumeClaim) {
			if edit != nil {
				edit(i, c)
			}
		}))
	}
	return list
}

func TestATrialIsReadWhileVolumesAreToChange(t *testing.T) {
	c, rec := moving(schema.ClassChangeReplace), &record.Record{Members: map[string]string{"orders-0": "a0", "orders-1": "a1", "orders-2": "a2"}}
	of := jobs.OfTrial(c)
	job := func(end batchv1.JobConditionType, reason string) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: jobs.TrialName("orders", "fast", 8<<30), Namespace: c.Metadata.Namespace, Labels: map[string]string{of.Label: of.Name, "app.kubernetes.io/managed-by": "quorate"},
		}}
		if end != "" {
			j.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue, Reason: reason, Message: "the end"}}
		}
		return j
	}
	byHand := classOf("fast", func(c *storagev1.StorageClass) { c.Provisioner = "kubernetes.io/no-provisioner" })
	volume := func(name, class, size string, phase corev1.PersistentVolumePhase) runtime.Object {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeStatus{Phase: phase}}
		v.Spec.StorageClassName, v.Spec.Capacity = class, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		return v
	}
	three := []runtime.Object{
		byHand, volume("a", "fast", "8Gi", corev1.VolumeAvailable), volume("b", "fast", "9Gi", corev1.VolumeAvailable), volume("c", "fast", "8Gi", corev1.VolumeAvailable),
	}
	fast := classOf("fast", nil)
	for name, test := range map[string]struct {
		objects []runtime.Object
		cluster desired.Cluster
		rec     *record.Record
		claims  []*corev1.PersistentVolumeClaim
		want    state.Trial
		asks    bool
	}{
		"nothing is to change":       {objects: nil, cluster: moving(""), rec: rec, claims: members(nil)},
		"the cluster has not formed": {cluster: c, claims: members(nil)},
		"a member has one": {cluster: c, rec: rec, claims: members(func(i int, c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = map[bool]*string{true: new("fast"), false: new("standard")}[i == 1]
		})},
		"no member has a volume":   {cluster: c, rec: rec, claims: members(func(_ int, c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })},
		"the class does not exist": {cluster: c, rec: rec, claims: members(nil), want: state.Trial{Problem: "StorageClass fast does not exist"}, asks: true},
		"no trial yet":             {objects: []runtime.Object{fast}, cluster: c, rec: rec, claims: members(nil), asks: true},
		"a claim without a volume counts for nothing": {objects: []runtime.Object{fast}, cluster: c, rec: rec, asks: true, claims: members(func(i int, c *corev1.PersistentVolumeClaim) {
			if i == 2 {
				c.Spec.StorageClassName, c.Status.Phase = new("fast"), corev1.ClaimPending
			}
		})},
		"it runs":                    {objects: []runtime.Object{fast, job("", "")}, cluster: c, rec: rec, claims: members(nil), want: state.Trial{State: state.TrialRunning}, asks: true},
		"it has gone well":           {objects: []runtime.Object{fast, job(batchv1.JobComplete, "")}, cluster: c, rec: rec, claims: members(nil), want: state.Trial{State: state.TrialDone}, asks: true},
		"no pod had a volume":        {objects: []runtime.Object{fast, job(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)}, cluster: c, rec: rec, claims: members(nil), want: state.Trial{State: state.TrialFailed, Why: "no pod had it within 15m0s"}, asks: true},
		"its pods have failed":       {objects: []runtime.Object{fast, job(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)}, cluster: c, rec: rec, claims: members(nil), want: state.Trial{State: state.TrialFailed, Why: "the end"}, asks: true},
		"people make enough volumes": {objects: three, cluster: c, rec: rec, claims: members(nil), want: state.Trial{State: state.TrialDone}, asks: true},
		"people have made too few":   {objects: append(three[:3:3], volume("c", "fast", "4Gi", corev1.VolumeAvailable), volume("d", "fast", "8Gi", corev1.VolumeBound), volume("e", "slow", "8Gi", corev1.VolumeAvailable)), cluster: c, rec: rec, claims: members(nil), want: state.Trial{Problem: "people make the volumes of class fast, and 2 of the 3 PersistentVolumes that its members need are available"}, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, api := readerOf(test.objects...)
			got, err := r.Trial(t.Context(), test.cluster, test.rec, test.claims)
			got.Job = ""
			if err != nil || got != test.want {
				t.Errorf("got %+v, want %+v: %v", got, test.want, err)
			}
			if asked := len(api.Actions()) > 0; asked != test.asks {
				t.Errorf("it asked %v", api.Actions())
			}
		})
	}
}

// What nobody may read is for the trial to tell, or for a person; what fails is an error.
func TestATrialThatCannotBeRead(t *testing.T) {
	c, rec := moving(schema.ClassChangeReplace), &record.Record{Members: map[string]string{"orders-0": "a0"}}
	forbidden, away := apierrors.NewForbidden(storagev1.Resource("storageclasses"), "fast", errors.New("no")), apierrors.NewInternalError(errors.New("away"))
	r, api := readerOf()
	answers(api, "get", "storageclasses", forbidden)
	if got, err := r.Trial(t.Context(), c, rec, members(nil)); err != nil || got != (state.Trial{}) {
		t.Errorf("%+v %v", got, err)
	}
	answers(api, "get", "storageclasses", away)
	if _, err := r.Trial(t.Context(), c, rec, members(nil)); err == nil || !strings.Contains(err.Error(), "read StorageClass fast") {
		t.Errorf("%v", err)
	}
	r, api = readerOf(classOf("fast", func(c *storagev1.StorageClass) { c.Provisioner = "kubernetes.io/no-provisioner" }))
	answers(api, "list", "persistentvolumes", forbidden)
	if got, err := r.Trial(t.Context(), c, rec, members(nil)); err != nil || !strings.Contains(got.Problem, "grant list on persistentvolumes") {
		t.Errorf("%+v %v", got, err)
	}
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: jobs.TrialName("orders", "fast", 8<<30), Namespace: c.Metadata.Namespace}}
	r, _ = readerOf(classOf("fast", nil), foreign)
	if got, err := r.Trial(t.Context(), c, rec, members(nil)); err != nil || !strings.Contains(got.Problem, "it is not quorate's") {
		t.Errorf("%+v %v", got, err)
	}
}

// The trial runs where members may, mounts a volume of the class, and belongs to no Service and no budget.
func TestATrialMountsAVolumeOfTheClass(t *testing.T) {
	c := moving(schema.ClassChangeReplace)
	job := jobs.RenderTrial(c, nil, "quorate:v1", "fast", 8<<30)
	if job.Labels[naming.LabelTrialOf] != "orders" || job.Labels[naming.LabelCluster] != "" || job.Spec.Template.Labels[naming.LabelCluster] != "" {
		t.Errorf("it is labelled %v", job.Labels)
	}
	pod := job.Spec.Template.Spec
	claim := pod.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec
	if size := claim.Resources.Requests[corev1.ResourceStorage]; *claim.StorageClassName != "fast" || size.Value() != 8<<30 || pod.Containers[0].VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Errorf("it asks for %+v", claim)
	}
	if one, other := jobs.TrialName("orders", "fast", 8<<30), jobs.TrialName("orders", "fast", 16<<30); one == other || one == jobs.TrialName("orders", "slow", 8<<30) {
		t.Errorf("two trials share the name %s", one)
	}
}
