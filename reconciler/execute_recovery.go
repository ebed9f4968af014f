package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/restore"
	"github.com/quorate/quorate/reconciler/state"
)

// executeRecovery carries out what a person has chosen for a lost cluster.
func (e *Executor) executeRecovery(ctx context.Context, v *view, act action.Action) error {
	switch a := act.(type) {
	case action.BeginRecovery:
		return e.beginRecovery(ctx, v, a)
	case action.RestoreVolume:
		return e.restoreVolume(ctx, v, a)
	case action.AdoptRecovery:
		return e.noteIf(ctx, v, func(m *record.Record) bool { return m.AdoptRecovery(a) })
	case action.EndRecovery:
		return e.endRecovery(ctx, v, a)
	case action.RefuseRecovery:
		return e.note(ctx, v, func(m *record.Record) { m.RefusedRecovery = a.OneShot })
	default:
		return fmt.Errorf("unknown action %T", act)
	}
}

// BeginRecovery chooses the identity of the recovered cluster, and writes down
// what is going to happen.
func (e *Executor) beginRecovery(ctx context.Context, v *view, a action.BeginRecovery) error {
	g := record.Recovering{
		OneShot: a.OneShot, ClusterID: a.ClusterID, Member: a.Member, ObjectURL: a.ObjectURL, Since: e.now().UTC(),
		Credentials: v.cluster.Spec.Backup.Destination.Credentials.SecretName,
		Verified:    backup.Verified{Revision: a.Revision},
	}
	random, err := naming.Random(8)
	if err != nil {
		return fmt.Errorf("begin the recovery: %w", err)
	}
	c := v.cluster.EtcdCluster
	g.Token = c.Metadata.Name + "-" + random
	if g.NewClusterID, g.NewMemberID, err = restore.Identity(g.Token, a.Member, naming.PeerURL(c, a.Member)); err != nil {
		return fmt.Errorf("begin the recovery: %w", err)
	}
	if a.ObjectURL != "" {
		store, err := e.stores.OfCluster(ctx, v.cluster)
		if err != nil {
			return fmt.Errorf("begin the recovery: %w", err)
		}
		if err := e.rest(ctx, &g, store, a, v.cluster.Spec.Recovery.Decryption); err != nil {
			return fmt.Errorf("begin the recovery: %w", err)
		}
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool { return m.BeginRecovery(g) })
}

// restoreVolume creates the Job that restores, when no member runs and the claim
// is the one that the decision was made on.
func (e *Executor) restoreVolume(ctx context.Context, v *view, a action.RestoreVolume) error {
	rec, err := e.records.Get(ctx, v.cluster.EtcdCluster)
	if err != nil {
		return err
	}
	g := rec.Recovering
	if g == nil || g.NewClusterID != a.ClusterID || rec.ClusterID != g.ClusterID || g.Member != a.Member {
		return state.ErrChanged
	}
	ns := v.cluster.Metadata.Namespace
	if err := e.wantUnused(ctx, v.cluster, a.Claim, jobs.RestoreName(v.cluster.Metadata.Name, *g)); err != nil {
		return err
	}
	claim, err := e.kube.CoreV1().PersistentVolumeClaims(ns).Get(ctx, a.Claim, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("read claim %s: %w", a.Claim, err)
	case string(claim.UID) != a.ClaimUID, claim.DeletionTimestamp != nil:
		return state.ErrChanged
	}
	if err := e.offerBackup(ctx, v, *g); err != nil {
		return err
	}
	job := jobs.RenderRestore(v.cluster, v.set, e.options.GuardImage, a.Claim, *g)
	if _, err := e.kube.BatchV1().Jobs(ns).Create(ctx, job, metav1.CreateOptions{FieldManager: naming.FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// wantUnused wants no member's pod, nor any other but the Job's own that could write to
// a claim. All of the namespace are asked for: somebody's copy of a pod need not have
// its labels.
func (e *Executor) wantUnused(ctx context.Context, c desired.Cluster, claim, job string) error {
	pods, err := e.kube.CoreV1().Pods(c.Metadata.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for _, pod := range pods.Items {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		uses := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		})
		switch {
		case pod.Labels[naming.LabelCluster] == c.Metadata.Name && naming.IsMember(c.Metadata.Name, pod.Name):
			return state.ErrChanged
		case uses && !ended && pod.Labels[batchv1.JobNameLabel] != job:
			return fmt.Errorf("restore onto volume claim %s: the pod %s uses it: delete that pod, or let it end", claim, pod.Name)
		}
	}
	return nil
}

// EndRecovery writes down that a recovery is over. Its Job and its Secret go first:
// nothing would name them any more.
func (e *Executor) endRecovery(ctx context.Context, v *view, a action.EndRecovery) error {
	rec, err := e.records.Get(ctx, v.cluster.EtcdCluster)
	if err != nil {
		return err
	}
	if g := rec.Recovering; g != nil && g.OneShot == a.OneShot && rec.ClusterID == g.NewClusterID {
		if err := e.jobs.Remove(ctx, v.cluster.Metadata.Namespace, jobs.RestoreName(v.cluster.Metadata.Name, *g)); err != nil {
			return fmt.Errorf("end the recovery: %w", err)
		}
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool { return m.EndRecovery(a, e.now()) })
}

// observeRestore looks how far the restore is, where one is due. It asks the API
// server itself: Jobs are no part of a cluster's daily life, and not watched.
func (o *Observer) observeRestore(ctx context.Context, v *view) error {
	v.observed.Restore = state.Restore{}
	if v.record == nil || v.record.Recovering == nil || v.record.ClusterID != v.record.Recovering.ClusterID {
		return nil
	}
	ns, name := v.cluster.Metadata.Namespace, jobs.RestoreName(v.cluster.Metadata.Name, *v.record.Recovering)
	job, err := o.jobs.Read(ctx, ns, name)
	if err != nil || job == nil {
		return err
	}
	pods, err := o.jobs.Pods(ctx, ns, name)
	if err != nil {
		return err
	}
	v.observed.Restore = restoreStateOf(job, pods)
	return nil
}

// restoreStateOf says how far a restore is. A Job counts as done or failed only
// by its own last word, when its last pod has ended.
func restoreStateOf(job *batchv1.Job, pods []corev1.Pod) state.Restore {
	got := state.Restore{State: state.RestoreRunning, Job: job.Name, Since: job.CreationTimestamp.Time}
	said := jobs.Said(pods)
	if said != "" {
		got.Detail = "the restore: " + said
	}
	switch end := jobs.Finished(job); {
	case end == nil:
	case end.Type == batchv1.JobComplete:
		got.State = state.RestoreDone
	default:
		got.State, got.Detail = state.RestoreFailed, cmp.Or(said, end.Message, end.Reason)
	}
	return got
}
