package observe_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// 295: what Kubernetes itself keeps from running does not run whatever is on its volume.
func TestWhatKubernetesKeepsFromRunning(t *testing.T) {
	waiting := func(reason string, last *corev1.ContainerStateTerminated) []corev1.ContainerStatus {
		s := corev1.ContainerStatus{Name: "etcd", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
		if s.LastTerminationState.Terminated = last; last != nil {
			s.RestartCount = 3
		}
		return []corev1.ContainerStatus{s}
	}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"no node":                     {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}}, true},
		"no image":                    {corev1.PodStatus{ContainerStatuses: waiting("ImagePullBackOff", nil)}, true},
		"no Secret":                   {corev1.PodStatus{ContainerStatuses: waiting("CreateContainerConfigError", nil)}, true},
		"too little memory":           {corev1.PodStatus{ContainerStatuses: waiting("CrashLoopBackOff", &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137})}, true},
		"no such binary":              {corev1.PodStatus{ContainerStatuses: waiting("CrashLoopBackOff", &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128})}, true},
		"an etcd that ends by itself": {corev1.PodStatus{ContainerStatuses: waiting("CrashLoopBackOff", &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 2})}, false},
		"one that only starts":        {corev1.PodStatus{ContainerStatuses: waiting("ContainerCreating", nil)}, false},
	} {
		if got := pods.Describe(&corev1.Pod{Status: c.status}).Barred; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// 291: why a pod is missing is what the API server has told the StatefulSet controller of
// that pod last. Nothing is asked while all pods exist, and what may not be read is not
// known.
func TestWhyAPodIsMissing(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		first, last := time.Now().Add(-time.Hour).Truncate(time.Second), time.Now().Add(-time.Minute).Truncate(time.Second)
		refusal := func() *state.PodRefusal { return w.Look().Observed.Set.Refusal }
		tell := func(name string, uid types.UID, reason, message string, at time.Time) {
			w.Put(corev1.SchemeGroupVersion.WithResource("events"), &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Reason: reason, Message: message,
				InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Namespace: "shop", Name: "orders", UID: uid},
				FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(at),
			})
		}
		uid := w.Look().Set.UID
		tell("a", uid, "FailedCreate", `create Pod orders-1 in StatefulSet orders failed error: pods "orders-1" is forbidden: exceeded quota: db`, last)
		w.API.Requests()
		if r := refusal(); r != nil || strings.Contains(strings.Join(w.API.Requests(), " "), "events") {
			t.Errorf("with all pods %+v, by %s", r, w.API.Requests())
		}
		if err := w.API.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "shop", "orders-1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // and no controller creates it
		want := state.PodRefusal{Why: `pods "orders-1" is forbidden: exceeded quota: db`, Since: first, At: last}
		if r := refusal(); r == nil || r.Why != want.Why || !r.Since.Equal(want.Since) || !r.At.Equal(want.At) || !slices.Equal(r.Pods, []string{"orders-1"}) {
			t.Errorf("got %+v, want %+v", r, want)
		}
		tell("b", uid, "FailedCreate", `create Pod orders-0 in StatefulSet orders failed error: of a pod that exists now`, last.Add(time.Second))
		tell("c", "another", "FailedCreate", `create Pod orders-1 in StatefulSet orders failed error: of an earlier StatefulSet`, last.Add(time.Second))
		tell("d", uid, "FailedDelete", `something else`, last.Add(time.Second))
		if r := refusal(); r == nil || r.Why != want.Why {
			t.Errorf("got %+v, want %+v", r, want)
		}
		tell("e", uid, "FailedCreate", `create Claim data-orders-1 for Pod orders-1 in StatefulSet orders failed error: no more claims`, last.Add(time.Second))
		if r := refusal(); r == nil || r.Why != "no more claims" || !slices.Equal(r.Pods, []string{"orders-1"}) {
			t.Errorf("got %+v", r)
		}
		w.API.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))
		})
		if r := refusal(); r != nil {
			t.Errorf("what may not be read is known: %+v", r)
		}
	})
}
