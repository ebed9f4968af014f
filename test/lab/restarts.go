package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quorate/quorate/reconciler/naming"
)

// Restart is when the steps of a member's restart were seen, by the clock of who watches. A zero
// time is a step that was not seen.
type Restart struct {
	Pod string
	// Deleted is when the deletion of the old pod began, and Gone when it was over.
	Deleted, Gone time.Time
	// Created is when the new pod was there, Prepared when its last init container had ended,
	// Started when its etcd ran, and Ready when it was ready.
	Created, Prepared, Started, Ready time.Time
}

// Restarts are the restarts of a cluster's members while they are watched.
type Restarts struct {
	mu    sync.Mutex
	seen  []Restart
	uids  map[string]types.UID
	close func()
	ended chan struct{}
}

// WatchRestarts watches the pods of a cluster until Stop.
func (c *Cluster) WatchRestarts(ctx context.Context, namespace, cluster string) (*Restarts, error) {
	pods := c.Client.CoreV1().Pods(namespace)
	options := metav1.ListOptions{LabelSelector: naming.LabelCluster + "=" + cluster}
	list, err := pods.List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", cluster, err)
	}
	r := newRestarts(list.Items)
	options.ResourceVersion = list.ResourceVersion
	w, err := pods.Watch(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("watch the pods of %s: %w", cluster, err)
	}
	r.close = w.Stop
	go func() {
		defer close(r.ended)
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				r.note(e.Type, pod, time.Now())
			}
		}
	}()
	return r, nil
}

func newRestarts(pods []corev1.Pod) *Restarts {
	r := &Restarts{uids: map[string]types.UID{}, ended: make(chan struct{})}
	for _, p := range pods {
		r.uids[p.Name] = p.UID
	}
	return r
}

// Stop ends the watch, and returns the restarts that were seen whole, in their order.
func (r *Restarts) Stop() []Restart {
	r.close()
	<-r.ended
	return r.whole()
}

func (r *Restarts) whole() []Restart {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.seen), func(s Restart) bool { return s.Deleted.IsZero() || s.Ready.IsZero() })
}

// note takes in what was seen of a pod.
func (r *Restarts) note(event watch.EventType, pod *corev1.Pod, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := func(t *time.Time, seen bool) {
		if seen && t.IsZero() {
			*t = now
		}
	}
	old := r.uids[pod.Name] == pod.UID
	if old {
		if pod.DeletionTimestamp == nil && event != watch.Deleted {
			return
		}
		s := r.last(pod.Name, func(s *Restart) bool { return s.Gone.IsZero() })
		first(&s.Deleted, true)
		first(&s.Gone, event == watch.Deleted)
		return
	}
	s := r.last(pod.Name, func(s *Restart) bool { return s.Ready.IsZero() })
	first(&s.Created, true)
	first(&s.Prepared, initialized(pod))
	first(&s.Started, runs(pod))
	first(&s.Ready, ready(pod))
	if !s.Ready.IsZero() {
		r.uids[pod.Name] = pod.UID
	}
}

// last is the last restart of a pod that is still under way, or a new one.
func (r *Restarts) last(pod string, open func(*Restart) bool) *Restart {
	for i := len(r.seen) - 1; i >= 0; i-- {
		if s := &r.seen[i]; s.Pod == pod && open(s) {
			return s
		}
	}
	r.seen = append(r.seen, Restart{Pod: pod})
	return &r.seen[len(r.seen)-1]
}

// initialized reports whether the containers that come before etcd have ended, all of a pod
// without any as soon as it has a node.
func initialized(pod *corev1.Pod) bool { return has(pod, corev1.PodInitialized) }

func ready(pod *corev1.Pod) bool { return has(pod, corev1.PodReady) }

func has(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}

// runs reports whether the etcd of a pod runs.
func runs(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == naming.ContainerEtcd && c.State.Running != nil
	})
}
