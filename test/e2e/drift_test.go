package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/lab"
)

// TestEditsByHand changes objects out of band, as a person with kubectl does. Git
// wins, and no edit of the pods' template restarts a member.
func TestEditsByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "edits")
	want := spec{version: "3.6.16", replicas: 3}
	w.create(want)
	writer, pods := w.load(), w.watchPods()
	services := w.cluster.Client.CoreV1().Services(w.namespace)

	// The client Service comes back, at another address.
	w.mark = w.daemon.Log.Mark()
	w.must(services.Delete(t.Context(), name+"-client", metav1.DeleteOptions{}))
	w.await("the Service to be applied", holdLimit, lab.Done("apply Service orders-client"))
	w.awaitIdle(want.version, holdLimit)
	w.eventually("the Service to have an endpoint", holdLimit, func(ctx context.Context) (bool, error) {
		client, err := w.cluster.Dial(ctx, w.namespace, name)
		if err != nil {
			return false, nil
		}
		return true, client.Close()
	})
	w.expectServing(3)

	// An edit of what quorate says in the template.
	w.kubectl("set", "image", "statefulset/orders", "etcd=quay.io/coreos/etcd:v3.5.35")
	w.await("the StatefulSet to be applied", holdLimit, lab.Step("apply StatefulSet orders"))
	w.awaitIdle(want.version, holdLimit)
	w.expectImage("quay.io/coreos/etcd:v3.6.16")

	// An edit of what quorate does not speak of.
	w.kubectl("set", "env", "statefulset/orders", "ETCD_LOG_LEVEL=debug")
	w.expectNoEnv("ETCD_LOG_LEVEL")
	time.Sleep(quiet)
	w.expectRoll(pods)
	w.finishLoad(writer)

	// 50: scaled up. The guard keeps what is no member from starting.
	w.mark = w.daemon.Log.Mark()
	w.kubectl("scale", "statefulset/orders", "--replicas=5")
	w.await("the StatefulSet to be as large as before", holdLimit, lab.Step("resize the StatefulSet 5 → 3"))
	w.awaitIdle(want.version, rollLimit)
	w.expectGone("orders-3", "orders-4")
	w.expectVersion(3, want.version)
	w.expectServing(3)

	// 50: scaled down. The member comes back on its own volume.
	before := w.record()
	w.mark = w.daemon.Log.Mark()
	w.kubectl("scale", "statefulset/orders", "--replicas=2")
	w.await("the StatefulSet to be as large as before", holdLimit, lab.Step("resize the StatefulSet 2 → 3"))
	w.awaitIdle(want.version, rollLimit)
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	if after := w.record(); after.ClusterID != before.ClusterID {
		t.Errorf("cluster %s became %s", before.ClusterID, after.ClusterID)
	}
	if w.events()["DriftCorrected"] == 0 {
		t.Errorf("no Event tells who had changed the StatefulSet: %v", w.events())
	}
}

// TestDriftThatIsLeft lets others set a field that Git ignores, puts back the one beside it,
// and under Detect leaves both and says so, until a person has put it back (241, 242).
func TestDriftThatIsLeft(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "left")
	want := spec{version: "3.6.16", replicas: 1, more: "  drift:\n    ignore:\n    - {kind: Service, path: /spec/sessionAffinity, reason: a test sets it}\n    - {kind: Service, path: /spec/sessionAffinityConfig, reason: the API server adds it}\n"}
	w.create(want)
	spec := func() corev1.ServiceSpec {
		s, err := w.cluster.Client.CoreV1().Services(w.namespace).Get(t.Context(), "orders-client", metav1.GetOptions{})
		w.must(err)
		return s.Spec
	}
	const both = `{"spec":{"sessionAffinity":"ClientIP","publishNotReadyAddresses":true}}`
	w.mark = w.daemon.Log.Mark()
	w.kubectl("patch", "service/orders-client", "--type=merge", "--patch="+both)
	w.await("the Service to be applied", holdLimit, lab.Done("apply Service orders-client"))
	w.awaitIdle(want.version, holdLimit)
	time.Sleep(quiet)
	if s := spec(); s.SessionAffinity != corev1.ServiceAffinityClientIP || s.PublishNotReadyAddresses {
		t.Errorf("it is %+v", s)
	}

	want.more += "    mode: Detect\n"
	w.commit("Leave drift", want)
	w.awaitIdle(want.version, holdLimit)
	w.mark = w.daemon.Log.Mark()
	w.kubectl("patch", "service/orders-client", "--type=merge", "--patch="+both)
	hold := w.awaitHold("Refused", holdLimit, "Service orders-client is drifted", ".spec.publishNotReadyAddresses", "spec.drift.mode is Detect")
	t.Logf("quorate says: %s", hold.Hold())
	time.Sleep(quiet)
	w.expectNoStep(w.mark)
	if s := spec(); !s.PublishNotReadyAddresses {
		t.Errorf("it is %+v", s)
	}
	w.mark = w.daemon.Log.Mark()
	w.kubectl("patch", "service/orders-client", "--type=merge", `--patch={"spec":{"publishNotReadyAddresses":null}}`)
	w.awaitIdle(want.version, holdLimit)
}

// kubectl runs kubectl in the test's namespace.
func (w *world) kubectl(args ...string) {
	w.Helper()
	cmd, err := w.cluster.Kubectl(w.Context(), append([]string{"--namespace=" + w.namespace}, args...)...)
	w.must(err)
	if text, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// etcdContainer is etcd's container in the StatefulSet's template.
func (w *world) etcdContainer() corev1.Container {
	w.Helper()
	set, err := w.cluster.Client.AppsV1().StatefulSets(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	w.must(err)
	return set.Spec.Template.Spec.Containers[0]
}

func (w *world) expectImage(want string) {
	w.Helper()
	if got := w.etcdContainer().Image; got != want {
		w.Errorf("the template has the image %s, want %s", got, want)
	}
}

// expectNoEnv waits until a variable is gone from the template.
func (w *world) expectNoEnv(variable string) {
	w.Helper()
	w.eventually(variable+" to be gone from the template", holdLimit, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(w.etcdContainer().Env, func(e corev1.EnvVar) bool { return e.Name == variable }), nil
	})
}

// expectGone waits until pods are gone.
func (w *world) expectGone(names ...string) {
	w.Helper()
	for _, pod := range names {
		w.eventually(pod+" to go", holdLimit, func(ctx context.Context) (bool, error) {
			_, err := w.cluster.Client.CoreV1().Pods(w.namespace).Get(ctx, pod, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
	}
}
