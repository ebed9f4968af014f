package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Follow adds the log of a container to log, and a copy to file, until ctx ends.
// It continues with the pod that comes after one that has ended; what that one
// wrote before it was found is there as well. It returns how it lost track.
func (c *Cluster) Follow(ctx context.Context, namespace, selector, container string, log *Log, file io.Writer) error {
	var since *metav1.Time
	for {
		pod, err := c.runningPod(ctx, namespace, selector)
		if err == nil {
			err = c.followPod(ctx, pod, container, since, log, file)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("follow the log of %s in %s: %w", container, namespace, err)
		}
		since = &metav1.Time{Time: time.Now()}
	}
}

// runningPod waits for a pod whose log can be read.
func (c *Cluster) runningPod(ctx context.Context, namespace, selector string) (*corev1.Pod, error) {
	var found *corev1.Pod
	err := Poll(ctx, deleteLimit, func(ctx context.Context) (bool, error) {
		pods, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, err
		}
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				found = &pods.Items[i]
			}
		}
		return found != nil, nil
	})
	return found, err
}

// followPod copies the log of one pod to its end.
func (c *Cluster) followPod(ctx context.Context, pod *corev1.Pod, container string, since *metav1.Time, log *Log, file io.Writer) error {
	stream, err := c.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Follow: true, SinceTime: since,
	}).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	_, err = log.ReadFrom(io.TeeReader(stream, file))
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
