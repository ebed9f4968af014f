package admission

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/schema"
)

// sidecar adds a container to what members start from.
func sidecar(set, _ *appsv1.StatefulSet) {
	pod := &set.Spec.Template.Spec
	if !slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "mesh" }) {
		pod.Containers = append(pod.Containers, corev1.Container{Name: "mesh", Image: "mirror.example/mesh:1"})
	}
}

// mirrored has the images come from another registry.
func mirrored(containers []corev1.Container) {
	for i, c := range containers {
		if !strings.HasPrefix(c.Image, "mirror.example/") {
			containers[i].Image = "mirror.example/" + c.Image
		}
	}
}

// step makes one pass, lets the controllers do all that it leads to, and fails where another pod
// went than that of the member which the pass restarted. It returns that one's name.
func (w *world) step() string {
	w.Helper()
	before := w.pods()
	p, err := w.r.Plan(w.Context(), w.wish)
	w.must(err)
	chosen := ""
	if p.Hold == nil && len(p.Steps) > 0 {
		if a, restarts := p.Steps[0].Action.(action.RestartMember); restarts {
			chosen = a.Member
		}
	}
	wait, err := w.r.Pass(w.Context(), w.wish)
	if err != nil {
		w.Log(err)
	}
	w.untilControlled()
	gone := ""
	for name, pod := range w.pods() {
		switch {
		case pod.UID == before[name].UID:
		case name != chosen:
			w.Errorf("%s was restarted outside of the gates, by a pass that chose %q; the plan was\n%s", name, chosen, p.Text())
		default:
			gone = name
		}
	}
	if gone == "" {
		time.Sleep(min(wait, time.Second))
	}
	return gone
}

// untilControlled waits until the StatefulSet controller has nothing left to do.
func (w *world) untilControlled() {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if w.controlled() {
			return
		}
	}
	w.Fatal("the StatefulSet controller does not come to rest")
}

func (w *world) controlled() bool {
	set, members := w.set(), w.pods()
	if set.Status.ObservedGeneration != set.Generation || len(members) != int(observe.Replicas(set)) {
		return false
	}
	for name, pod := range members {
		replaced := naming.Ordinal(name) >= observe.Partition(set) && pod.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision
		if replaced || pod.DeletionTimestamp != nil || !pods.Ready(&pod) {
			return false
		}
	}
	return true
}

// rollUntil steps until a member was restarted, and returns all that were, in their order.
func (w *world) rollUntil(over func(restarted []string) bool) (restarted []string) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && !w.Failed(); {
		if name := w.step(); name != "" {
			restarted = append(restarted, name)
		}
		if over(restarted) {
			return restarted
		}
	}
	w.Fatalf("restarted %v; the log says\n%s", restarted, w.log)
	return nil
}

func (w *world) idle([]string) bool {
	p, err := w.r.Plan(w.Context(), w.wish)
	w.must(err)
	return p.Idle()
}

// 360: a policy that comes in the midst of a roll makes another revision of the template by the very
// write that lets the next member go. No member that the roll had finished goes with that one:
// the roll begins again, one after the other.
func TestPolicyThatComesInMidRoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "comes")
	w.untilIdle()
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	w.rollUntil(func(restarted []string) bool { return len(restarted) == 1 })
	mutate(w, "apps", "statefulsets", sidecar)
	if got := strings.Join(w.rollUntil(w.idle), " "); got != "orders-2 orders-1 orders-0" {
		t.Errorf("restarted %s", got)
	}
	for name, pod := range w.pods() {
		if len(pod.Spec.Containers) != 2 || pod.Annotations[naming.AnnotationVersion] != "3.6.17" {
			t.Errorf("%s has %s and %d containers", name, pod.Annotations[naming.AnnotationVersion], len(pod.Spec.Containers))
		}
	}
}

// 360: so it is with one that goes.
func TestPolicyThatGoesInMidRoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "goes")
	stop := mutate(w, "apps", "statefulsets", func(set, _ *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	})
	w.untilIdle()
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	w.rollUntil(func(restarted []string) bool { return len(restarted) == 2 })
	stop()
	if got := strings.Join(w.rollUntil(w.idle), " "); got != "orders-2 orders-1 orders-0" {
		t.Errorf("restarted %s", got)
	}
	for name, pod := range w.pods() {
		if pod.Spec.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent {
			t.Errorf("%s was not restarted", name)
		}
	}
}

// 361: a policy that makes another template of each write lets no member go at all: each restart
// would take all that are finished with it.
func TestPolicyThatNeverMakesTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "never")
	w.untilIdle()
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	w.rollUntil(func(restarted []string) bool { return len(restarted) == 1 })
	mutate(w, "apps", "statefulsets", func(set, was *appsv1.StatefulSet) {
		metav1.SetMetaDataAnnotation(&set.Spec.Template.ObjectMeta, "stamp", strconv.FormatInt(was.Generation, 10))
	})
	restarted := w.rollUntil(func([]string) bool { return strings.Contains(w.log.String(), "another template of each write") })
	if len(restarted) > 0 {
		t.Errorf("restarted %v", restarted)
	}
}

// 362: at rest a policy, and the revision that somebody's write makes by it, restart nobody.
func TestPolicyThatComesAtRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "rests")
	w.untilIdle()
	before := w.pods()
	mutate(w, "apps", "statefulsets", sidecar)
	set := w.set()
	set.Annotations = map[string]string{"team": "platform"}
	_, err := w.kube.AppsV1().StatefulSets(w.namespace).Update(t.Context(), set, metav1.UpdateOptions{FieldManager: "kubectl-annotate"})
	w.must(err)
	for range 5 {
		w.step()
	}
	w.untilIdle()
	for name, pod := range w.pods() {
		if pod.UID != before[name].UID {
			t.Errorf("%s was restarted", name)
		}
	}
	if set := w.set(); set.Status.UpdateRevision == set.Status.CurrentRevision {
		t.Error("the policy makes no other revision")
	}
}

// 364: where a policy lets the controller replace several at once, the partition does not: one member
// after the other is restarted, each behind the gates.
func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "several")
	mutate(w, "apps", "statefulsets", func(set, _ *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(3))
	})
	w.untilIdle()
	if most := w.set().Spec.UpdateStrategy.RollingUpdate.MaxUnavailable; most == nil || most.IntValue() != 3 {
		t.Fatalf("the policy does nothing: %v", most)
	}
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	if got := strings.Join(w.rollUntil(w.idle), " "); got != "orders-2 orders-1 orders-0" {
		t.Errorf("restarted %s", got)
	}
}

// 365: a policy that changes each pod, and leaves the StatefulSet as it is, makes no pod outdated: it is
// told, nothing is written at rest, and an upgrade restarts each member once.
func TestPolicyThatChangesPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "pods")
	mutate(w, "", "pods", func(pod, _ *corev1.Pod) {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(5))
		mirrored(pod.Spec.Containers)
	})
	p := w.untilIdle()
	if image := w.pods()["orders-0"].Spec.Containers[0].Image; !strings.HasPrefix(image, "mirror.example/") {
		t.Fatalf("the policy does nothing: %s", image)
	}
	if wrote := w.passes(10); len(wrote) > 0 {
		t.Errorf("at rest it writes %v", wrote)
	}
	told := ""
	for _, warning := range p.Warnings {
		told += warning.String() + "\n"
	}
	for _, want := range []string{"pod orders-0: the API server has made something else", "etcd: image (mirror.example/", "terminationGracePeriodSeconds (5, wanted 60)"} {
		if !strings.Contains(told, want) {
			t.Errorf("the warnings lack %q:\n%s", want, told)
		}
	}
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	if got := strings.Join(w.rollUntil(w.idle), " "); got != "orders-2 orders-1 orders-0" {
		t.Errorf("restarted %s", got)
	}
}
