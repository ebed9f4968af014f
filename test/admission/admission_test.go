package admission

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 297: policies that change what no member's safety hangs on are told, and change nothing else: the
// cluster is made, comes to rest, and is upgraded, each member once.
func TestAdmissionThatChangesWhatDoesNotMatter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "light")
	mutate(w, "apps", "statefulsets", func(set, _ *appsv1.StatefulSet) {
		metav1.SetMetaDataLabel(&set.ObjectMeta, "team", "platform")
		metav1.SetMetaDataLabel(&set.Spec.Template.ObjectMeta, "mesh", "on")
		metav1.SetMetaDataAnnotation(&set.Spec.Template.ObjectMeta, "mesh.example/inject", "yes")
		containers := set.Spec.Template.Spec.Containers
		mirrored(containers)
		containers[0].ImagePullPolicy = corev1.PullAlways
		containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}
		sidecar(set, nil)
	})
	w.untilIdle()
	if c := w.set().Spec.Template.Spec.Containers; len(c) != 2 || c[0].ImagePullPolicy != corev1.PullAlways || !strings.HasPrefix(c[0].Image, "mirror.example/") {
		t.Fatalf("the policy does nothing: %+v", c)
	}
	if wrote := w.passes(20); len(wrote) > 0 {
		t.Errorf("at rest it writes %v", wrote)
	}
	before := w.pods()
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	w.writes.take()
	p := w.untilIdle()
	patches := slices.DeleteFunc(w.writes.take(), func(r string) bool { return !strings.Contains(r, "statefulsets/orders") })
	if len(patches) > 8 {
		t.Errorf("the upgrade wrote the StatefulSet %d times: %v", len(patches), patches)
	}
	for name, pod := range w.pods() {
		if pod.UID == before[name].UID || pod.Annotations[naming.AnnotationVersion] != "3.6.17" {
			t.Errorf("%s was not upgraded", name)
		}
	}
	told := ""
	for _, warning := range p.Warnings {
		told += warning.String() + "\n"
	}
	for _, want := range []string{"StatefulSet orders: the API server changes what quorate applies before it is stored", "imagePullPolicy (Always, wanted IfNotPresent)", "(mirror.example/"} {
		if !strings.Contains(told, want) {
			t.Errorf("the warnings lack %q:\n%s", want, told)
		}
	}
}

// 298: a policy that changes what members start with, or adds what kills them, holds: no member is
// restarted with that, one that heals may go on, and when the policy goes the roll does too.
func TestAdmissionThatEndangersMembersHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "heavy")
	w.untilIdle()
	stop := mutate(w, "apps", "statefulsets", func(set, _ *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(2381)},
		}}
		set.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(5))
	})
	before := w.pods()
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	p := w.untilHeld("fight", "StatefulSet orders: the API server changes what quorate applies", "livenessProbe", "terminationGracePeriodSeconds (5, wanted 60)", "exempt StatefulSet orders")
	if p.Hold.Kind != decision.Refused {
		t.Errorf("it is %s", p.Hold)
	}
	if wrote := w.passes(20); len(wrote) > 0 {
		t.Errorf("it writes %v", wrote)
	}
	for name, pod := range w.pods() {
		if pod.UID != before[name].UID {
			t.Errorf("%s was restarted", name)
		}
	}
	stop()
	w.restart()
	w.untilIdle()
	for name, pod := range w.pods() {
		if c := pod.Spec.Containers[0]; pod.UID == before[name].UID || c.LivenessProbe != nil || *pod.Spec.TerminationGracePeriodSeconds != 60 {
			t.Errorf("%s has %+v", name, c.LivenessProbe)
		}
	}
}

// 298: nor is a new cluster formed by members that start with something else.
func TestNoClusterIsFormedByMembersThatStartWithSomethingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "born")
	stop := mutate(w, "apps", "statefulsets", func(set, _ *appsv1.StatefulSet) {
		if etcd := &set.Spec.Template.Spec.Containers[0]; !slices.ContainsFunc(etcd.Env, forcesNewCluster) {
			etcd.Env = append(etcd.Env, corev1.EnvVar{Name: "ETCD_FORCE_NEW_CLUSTER", Value: "true"})
		}
	})
	w.untilHeld("bootstrap", "the API server changes what quorate applies", "ETCD_FORCE_NEW_CLUSTER")
	stop()
	w.restart()
	w.untilIdle()
	if slices.ContainsFunc(w.set().Spec.Template.Spec.Containers[0].Env, forcesNewCluster) {
		t.Error("it is still there")
	}
}

func forcesNewCluster(e corev1.EnvVar) bool { return e.Name == "ETCD_FORCE_NEW_CLUSTER" }

// 299: a Service or a budget that is refused is told with the words of the policy, tried less and
// less often, and keeps nothing from being done that heals: here from the space that is freed.
func TestWhatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "refused")
	w.untilIdle()
	stopService := w.refuse("", "services", `has(object.metadata.labels.owner)`, "every Service has an owner")
	stopBudget := w.refuse("policy", "poddisruptionbudgets", `has(object.metadata.labels.owner)`, "every budget has an owner")
	w.must(w.kube.CoreV1().Services(w.namespace).Delete(t.Context(), "orders-client", metav1.DeleteOptions{}))
	w.must(w.kube.PolicyV1().PodDisruptionBudgets(w.namespace).Delete(t.Context(), "orders", metav1.DeleteOptions{}))
	w.untilHeld("fight", "Service orders-client is not taken as quorate applies it", "every Service has an owner", "it is tried again at")
	if !strings.Contains(w.log.String(), "every budget has an owner") {
		t.Errorf("the log does not tell of the budget:\n%s", w.log)
	}
	if wrote := w.passes(30); len(wrote) > 4 {
		t.Errorf("it tries %v", wrote)
	}
	w.etcd.Change = func(r *state.Round) { r.Alarms = []state.Alarm{{MemberID: "a1", Kind: state.NoSpace}} }
	w.until("what frees space", func(p decision.Plan) bool {
		return p.Hold != nil && p.Hold.Rule == "alarms" || len(p.Steps) > 0 && p.Hold == nil && strings.Contains(p.Steps[0].String(), "space")
	})
	w.etcd.Change = nil
	stopService()
	stopBudget()
	w.restart()
	w.untilIdle()
}

// 300: what others have made under a name of the cluster stays as it is, also where the cluster's own
// had that name before.
func TestForeignServiceIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "foreign")
	w.untilIdle()
	services := w.kube.CoreV1().Services(w.namespace)
	w.must(services.Delete(t.Context(), "orders-client", metav1.DeleteOptions{}))
	helms := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-client", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/name": "shop"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	made, err := services.Create(t.Context(), helms, metav1.CreateOptions{FieldManager: "helm"})
	w.must(err)
	w.untilHeld("fight", "Service orders-client is not taken as quorate applies it: an object of this name exists, and it is not quorate's", "rename the cluster or remove that object")
	now, err := services.Get(t.Context(), "orders-client", metav1.GetOptions{})
	w.must(err)
	if now.ResourceVersion != made.ResourceVersion {
		t.Errorf("it was changed: %+v", now)
	}
	w.must(services.Delete(t.Context(), "orders-client", metav1.DeleteOptions{}))
	w.restart()
	w.untilIdle()
	ours, err := services.Get(t.Context(), "orders-client", metav1.GetOptions{})
	w.must(err)

	// Somebody takes the labels off: it is still quorate's.
	ours.Labels = nil
	_, err = services.Update(t.Context(), ours, metav1.UpdateOptions{FieldManager: "kubectl-label"})
	w.must(err)
	w.until("the labels to be back", func(decision.Plan) bool {
		s, err := services.Get(t.Context(), "orders-client", metav1.GetOptions{})
		return err == nil && naming.Owns(s, w.wish.EtcdCluster) && s.UID == ours.UID
	})
}
