package jobs

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	return namePrefix(q, noun) + random, nil
}

func namePrefix(q desired.Backup, noun string) string {
	return q.Metadata.Name[:min(40, len(q.Metadata.Name))] + "-" + noun + "-"
}

// IsName reports whether NewName can have made a name. Records tell the names of Jobs, and
// whoever may write ConfigMaps may write a record.
func IsName(q desired.Backup, noun, name string) bool {
	random, ok := strings.CutPrefix(name, namePrefix(q, noun))
	raw, err := hex.DecodeString(random)
	return ok && err == nil && len(raw) == 4
}

// Of says which object of Git's a Job is for, and the Secret of its name: both carry a
// label with its name, and go with its record. A Job found by name that is not so marked
// is not quorate's: it is not followed, and not removed.
type Of struct {
	Namespace, Label, Name string
	// Record is the UID of the record that it goes with, "" for none.
	Record types.UID
}

// OfRestore are the Jobs that restore a backup into a cluster.
func OfRestore(c desired.Cluster) Of {
	return Of{Namespace: c.Metadata.Namespace, Label: naming.LabelRestoreOf, Name: c.Metadata.Name}
}

// OfRequest are the Jobs of a backup or schedule: those that take a backup, or those of its
// restore drills, by the label.
func OfRequest(q desired.Backup, label string, owner types.UID) Of {
	return Of{Namespace: q.Metadata.Namespace, Label: label, Name: q.Metadata.Name, Record: owner}
}

// ErrForeign says that something that was found by name is not what the name was given to.
var ErrForeign = errors.New("it is not quorate's: it lacks the label or the owner of those that quorate makes for this object; it is left alone: delete or rename it")

func (o Of) marks(live metav1.Object) bool {
	return kube.Marked(live, map[string]string{o.Label: o.Name}, o.Record)
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
type Client struct {
	Kube kubernetes.Interface
	// Namespaces are those that may be read; none for all.
	Namespaces kube.Namespaces
}

// Read reads a Job from the API server itself, nil where there is none: Jobs are no
// part of a cluster's daily life, and not watched. The error is ErrForeign for one that is
// not of that object.
func (j Client) Read(ctx context.Context, of Of, name string) (*batchv1.Job, error) {
	job, err := kube.FoundOrNil(j.Kube.BatchV1().Jobs(of.Namespace).Get(ctx, name, metav1.GetOptions{}))
	if err == nil && job != nil && !of.marks(job) {
		err = ErrForeign
	}
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

// Running are the owners of the Jobs with a label that have not ended: the records of backups
// and schedules, if quorate made them. A namespace that quorate may not read has no Job of it.
func (j Client) Running(ctx context.Context, label string) (owners map[types.NamespacedName]bool, err error) {
	owners = map[types.NamespacedName]bool{}
	for namespace := range j.Namespaces.All() {
		list, err := j.Kube.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: label})
		switch {
		case kube.Withheld(namespace, err):
			continue
		case err != nil:
			return nil, fmt.Errorf("list the Jobs with the label %s: %w", label, err)
		}
		for i := range list.Items {
			job := &list.Items[i]
			if job.DeletionTimestamp != nil || Finished(job) != nil {
				continue
			}
			for _, owner := range job.OwnerReferences {
				owners[types.NamespacedName{Namespace: job.Namespace, Name: owner.Name}] = true
			}
		}
	}
	return owners, nil
}

// Start creates a Job; one of that object that is there is left as it is.
func (j Client) Start(ctx context.Context, of Of, job *batchv1.Job) error {
	_, err := j.Kube.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: naming.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		_, err = j.Read(ctx, of, job.Name)
	}
	if err != nil {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// Remove deletes a Job and the Secret of its name, exactly those that were found to be of
// that object. What else has the name stays.
func (j Client) Remove(ctx context.Context, of Of, name string) error {
	jobs, secrets := j.Kube.BatchV1().Jobs(of.Namespace), j.Kube.CoreV1().Secrets(of.Namespace)
	job, err := kube.FoundOrNil(jobs.Get(ctx, name, metav1.GetOptions{}))
	if err == nil && job != nil && of.marks(job) {
		err = jobs.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(job.UID)), PropagationPolicy: new(metav1.DeletePropagationBackground)})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Job %s: %w", name, err)
	}
	secret, err := kube.FoundOrNil(secrets.Get(ctx, name, metav1.GetOptions{}))
	if err == nil && secret != nil && of.marks(secret) {
		err = secrets.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(secret.UID))})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Secret %s: %w", name, err)
	}
	return nil
}
