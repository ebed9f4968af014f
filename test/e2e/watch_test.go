package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quorate/quorate/test/lab"
)

// rollWatch sees every change of the pods of a cluster: in which order they were
// replaced, and whether two were ever away at once.
type rollWatch struct {
	mu       sync.Mutex
	pods     map[string]podState
	replaced []string
	problems []string
}

// podState is what a rollWatch knows of a pod. It is away from its deletion, or a
// restart of etcd in it, until it is ready again. That a probe comes too late, as
// it does where the machine is short of time, takes no pod away.
type podState struct {
	uid      string
	restarts int32
	away     bool
}

// watchPods begins to watch; all pods must be ready. The watch ends with the
// test.
func (w *world) watchPods() *rollWatch {
	w.Helper()
	r := &rollWatch{pods: map[string]podState{}}
	pods := w.cluster.Client.CoreV1().Pods(w.namespace)
	selector := metav1.ListOptions{LabelSelector: clusterSelector}
	list, err := pods.List(w.Context(), selector)
	w.must(err)
	for i := range list.Items {
		r.see(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	r.take()
	ctx, cancel := context.WithCancel(context.Background())
	selector.ResourceVersion = list.ResourceVersion
	watcher, err := pods.Watch(ctx, selector)
	w.must(err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watcher.ResultChan() {
			r.see(event)
		}
	}()
	w.Cleanup(func() { cancel(); <-ended })
	return r
}

// see takes in one change.
func (r *rollWatch) see(event watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		r.problems = append(r.problems, fmt.Sprintf("the watch broke: %v", event.Object))
		return
	}
	before := r.pods[pod.Name]
	now := podState{uid: string(pod.UID)}
	for _, c := range pod.Status.ContainerStatuses {
		now.restarts += c.RestartCount
	}
	ready := event.Type != watch.Deleted && lab.Ready(pod)
	left := event.Type == watch.Deleted || pod.DeletionTimestamp != nil || before.uid != now.uid || before.restarts < now.restarts
	now.away = !ready && (before.away || left)
	if before.uid != now.uid {
		r.replaced = append(r.replaced, pod.Name)
	}
	r.pods[pod.Name] = now
	var away []string
	for _, other := range slices.Sorted(maps.Keys(r.pods)) {
		if r.pods[other].away {
			away = append(away, other)
		}
	}
	if len(away) > 1 {
		r.problems = append(r.problems, fmt.Sprintf("away at once: %v", away))
	}
}

// take returns the names of the pods that were replaced since the last take, in
// order, and what was wrong; it forgets both.
func (r *rollWatch) take() (replaced, problems []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	replaced, problems, r.replaced, r.problems = r.replaced, r.problems, nil, nil
	return replaced, problems
}

// expectRoll wants exactly these pods to have been replaced since the last call,
// in this order and one at a time.
func (w *world) expectRoll(r *rollWatch, want ...string) {
	w.Helper()
	replaced, problems := r.take()
	if !slices.Equal(replaced, want) {
		w.Errorf("pods were replaced in the order %v, want %v", replaced, want)
	}
	for _, p := range problems {
		w.Error(p)
	}
}
