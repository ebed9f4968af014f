package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newJob is a name for one more Job of a request: one that nothing else has.
func (q Request) newJob(noun string) (string, error) {
	random, err := randomHex(4)
	if err != nil {
		return "", err
	}
	return q.Metadata.Name[:min(40, len(q.Metadata.Name))] + "-" + noun + "-" + random, nil
}

// requestJob is a Job for a backup or a schedule, which it goes with. It is marked
// with the request's name, and has one try and a limit; kept is for how long it stays
// when it has ended and nobody has removed it.
func requestJob(name, app, mark string, q Request, k *keptRequest, limit, kept time.Duration, pod corev1.PodSpec) *batchv1.Job {
	labels := map[string]string{
		"app.kubernetes.io/name": app, "app.kubernetes.io/instance": q.Metadata.Name,
		"app.kubernetes.io/managed-by": "quorate", mark: q.Metadata.Name,
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: q.Metadata.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{ownerRecordOf(k)}},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(int64(limit.Seconds())), TTLSecondsAfterFinished: new(int32(kept.Seconds())),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// ownerRecordOf lets what belongs to a backup or a schedule go with its record.
func ownerRecordOf(k *keptRequest) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: k.live.Name, UID: k.live.UID}
}

// readJob reads a Job from the API server itself, nil where there is none: Jobs are no
// part of a cluster's daily life, and not watched.
func (r *Reconciler) readJob(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	job, err := foundOrNil(r.kube.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("read Job %s: %w", name, err)
	}
	return job, nil
}

// podsOfJob reads its pods.
func (r *Reconciler) podsOfJob(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	pods, err := r.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name})
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

// jobEnd is a Job's own last word, nil before it has spoken it.
func jobEnd(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

// jobsRunning counts the Jobs with a label that have not ended, in all namespaces.
func (r *Reconciler) jobsRunning(ctx context.Context, label string) (n int, err error) {
	jobs, err := r.kube.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return 0, fmt.Errorf("list the Jobs with the label %s: %w", label, err)
	}
	for i := range jobs.Items {
		if j := &jobs.Items[i]; j.DeletionTimestamp == nil && jobEnd(j) == nil {
			n++
		}
	}
	return n, nil
}
