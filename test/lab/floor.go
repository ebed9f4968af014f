package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// FloorRoll restarts a cluster as a plain script does: it deletes the pods one
// by one, the highest ordinal first, and waits until each is back and ready. It
// checks nothing else. Its wall time is what quorate's roll is measured by.
func (c *Cluster) FloorRoll(ctx context.Context, namespace, name string) (time.Duration, error) {
	pods, err := c.Pods(ctx, namespace, name)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for _, pod := range slices.Backward(pods) {
		if err := c.replacePod(ctx, &pod); err != nil {
			return 0, fmt.Errorf("floor roll: %w", err)
		}
	}
	return time.Since(begin), nil
}

// replacePod deletes a pod and waits for the next one of that name to be ready.
// It watches from before the deletion, so that it sees the end as it happens.
func (c *Cluster) replacePod(ctx context.Context, pod *corev1.Pod) error {
	pods := c.Client.CoreV1().Pods(pod.Namespace)
	ctx, cancel := context.WithTimeout(ctx, deleteLimit)
	defer cancel()
	events, err := pods.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", pod.Name, err)
	}
	defer events.Stop()
	err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", pod.Name, err)
	}
	return awaitReady(ctx, events, pod.Name, pod.UID)
}

func awaitReady(ctx context.Context, events watch.Interface, name string, old types.UID) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready again: %w", name, ctx.Err())
		case event, ok := <-events.ResultChan():
			if !ok {
				return fmt.Errorf("%s is not ready again, and the watch has ended", name)
			}
			if pod, isPod := event.Object.(*corev1.Pod); isPod && pod.UID != old && Ready(pod) {
				return nil
			}
		}
	}
}

// Ready reports whether a pod is ready and not being deleted.
func Ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// sortByOrdinal sorts by the number at the end of the name: 10 comes after 9.
func sortByOrdinal(pods []corev1.Pod) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(ordinal(a.Name), ordinal(b.Name)) })
}

func ordinal(pod string) int {
	n, _ := strconv.Atoi(pod[strings.LastIndex(pod, "-")+1:])
	return n
}
