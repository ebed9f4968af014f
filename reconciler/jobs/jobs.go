package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
)

// Said is what the newest pod of a restore has to say, or "".
func Said(list []corev1.Pod) string {
	newest := newestPod(list)
	return pods.Trouble(&newest)
}

// NewName is a name for one more Job of a backup or schedule: one that nothing else has.
func NewName(q desired.Backup, noun string) (string, error) {
	random, err := naming.Random(4)
	if err != nil {
		return "", err
	}
	return q.Metadata.Name[:min(40, len(q.Metadata.Name))] + "-" + noun + "-" + random, nil
}

// Job is what the Jobs of a backup and of a schedule have in common.
type Job struct {
	Name string
	// For is the backup or the schedule, and Owner its record, with which all goes that
	// belongs to it.
	For   desired.Backup
	Owner metav1.OwnerReference
}

// render makes the Job, with one try and a limit. It carries a label with the name of
// what it is for; kept is for how long it stays when it has ended and was not removed.
func (j Job) render(app, label string, limit, kept time.Duration, pod corev1.PodSpec) *batchv1.Job {
	labels := map[string]string{
		"app.kubernetes.io/name": app, "app.kubernetes.io/instance": j.For.Metadata.Name,
		"app.kubernetes.io/managed-by": "quorate", label: j.For.Metadata.Name,
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, Namespace: j.For.Metadata.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{j.Owner}},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(int64(limit.Seconds())), TTLSecondsAfterFinished: new(int32(kept.Seconds())),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// Client reads and removes the Jobs that quorate starts.
type Client struct{ Kube kubernetes.Interface }

// Read reads a Job from the API server itself, nil where there is none: Jobs are no
// part of a cluster's daily life, and not watched.
func (j Client) Read(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	job, err := kube.FoundOrNil(j.Kube.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("read Job %s: %w", name, err)
	}
	return job, nil
}

// Pods reads its pods.
func (j Client) Pods(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	pods, err := j.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of Job %s: %w", name, err)
	}
	return pods.Items, nil
}

// newestPod is the last try of a Job, the zero pod where there is none.
func newestPod(pods []corev1.Pod) corev1.Pod {
	return slices.MaxFunc(append([]corev1.Pod{{}}, pods...), func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}

// Finished is the Job's Complete or Failed condition, nil while it has neither.
func Finished(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

// Running counts the Jobs with a label that have not ended, in all namespaces.
func (j Client) Running(ctx context.Context, label string) (n int, err error) {
	running, err := j.Kube.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return 0, fmt.Errorf("list the Jobs with the label %s: %w", label, err)
	}
	for i := range running.Items {
		if j := &running.Items[i]; j.DeletionTimestamp == nil && Finished(j) == nil {
			n++
		}
	}
	return n, nil
}

// Start creates a Job; one that is there is left as it is.
func (j Client) Start(ctx context.Context, job *batchv1.Job) error {
	_, err := j.Kube.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: naming.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// Remove deletes a Job and the Secret of its name, which nothing else has.
func (j Client) Remove(ctx context.Context, namespace, name string) error {
	err := j.Kube.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Job %s: %w", name, err)
	}
	err = j.Kube.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Secret %s: %w", name, err)
	}
	return nil
}
