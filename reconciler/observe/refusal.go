package observe

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/state"
)

// failedCreate is the reason by which the StatefulSet controller tells that it could not
// create a pod, or the volume claim of one: a quota, Pod Security, a policy, a priority
// class that does not exist. A StatefulSet has no condition for it, so that this Event is
// all there is.
const failedCreate = "FailedCreate"

// refusedPod finds the pod in what the StatefulSet controller says of it, or of its claim:
// "create Pod orders-2 in StatefulSet orders failed", "create Claim data-orders-2 for Pod
// orders-2 in StatefulSet orders failed".
var refusedPod = regexp.MustCompile(`Pod (\S+) in StatefulSet`)

// refusal is why a pod that is missing was last refused, or nil. It is read only while a
// pod is missing: at rest nothing is asked. Where quorate may not read Events, none is
// known.
func (o *Observer) refusal(ctx context.Context, live liveCluster) (*state.PodRefusal, error) {
	if live.set == nil || len(live.pods) >= int(Replicas(live.set)) {
		return nil, nil
	}
	events, err := o.Kube.CoreV1().Events(live.set.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(live.set.UID) + ",reason=" + failedCreate,
	})
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list the Events of StatefulSet %s: %w", live.set.Name, err)
	}
	var last *state.PodRefusal
	var refused []string
	for i := range events.Items {
		e := &events.Items[i]
		if e.InvolvedObject.UID != live.set.UID || e.Reason != failedCreate || ofPodThatExists(e, live.pods) {
			continue
		}
		if r := refusalOf(e); last == nil || r.At.After(last.At) {
			last = &r
		}
		if of := refusedPod.FindStringSubmatch(e.Message); of != nil && !slices.Contains(refused, of[1]) {
			refused = append(refused, of[1])
		}
	}
	if last != nil {
		last.Pods = refused
	}
	return last, nil
}

// ofPodThatExists reports whether an Event is about a pod that could be created since.
func ofPodThatExists(e *corev1.Event, pods []*corev1.Pod) bool {
	for _, p := range pods {
		if strings.Contains(e.Message, "create Pod "+p.Name+" in ") {
			return true
		}
	}
	return false
}

// refusalOf reads an Event of the StatefulSet controller: "create Pod orders-2 in
// StatefulSet orders failed error: " and what the API server said.
func refusalOf(e *corev1.Event) state.PodRefusal {
	_, why, found := strings.Cut(e.Message, " failed error: ")
	if !found {
		why = e.Message
	}
	r := state.PodRefusal{Why: pods.LastLine(why), Since: e.FirstTimestamp.Time, At: e.LastTimestamp.Time}
	if r.At.IsZero() {
		r.Since, r.At = e.EventTime.Time, e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(r.At) {
		r.At = e.Series.LastObservedTime.Time
	}
	return r
}

// LastChange is when an object, or a subresource of it, was last changed, zero when that is
// unknown.
func LastChange(object metav1.Object, subresource string) time.Time {
	last := time.Time{}
	for _, e := range object.GetManagedFields() {
		if e.Subresource == subresource && e.Time != nil && e.Time.After(last) {
			last = e.Time.Time
		}
	}
	return last
}
