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

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/restore"
)

// executeRecovery carries out what a person has chosen for a lost cluster.
func (r *Reconciler) executeRecovery(ctx context.Context, v *view, action plan.Action) error {
	switch a := action.(type) {
	case plan.BeginRecovery:
		return r.beginRecovery(ctx, v, a)
	case plan.RestoreVolume:
		return r.restoreVolume(ctx, v, a)
	case plan.AdoptRecovery:
		return r.noteMembership(ctx, v, func(m *Record) bool { return m.adoptRecovery(a) })
	case plan.EndRecovery:
		return r.endRecovery(ctx, v, a)
	case plan.RefuseRecovery:
		return r.updateRecord(ctx, v, func(m *Record) { m.RefusedRecovery = a.OneShot })
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

// beginRecovery chooses the identity of the recovered cluster, and writes down
// what is going to happen.
func (r *Reconciler) beginRecovery(ctx context.Context, v *view, a plan.BeginRecovery) error {
	g := RecoveringRecord{
		OneShot: a.OneShot, ClusterID: a.ClusterID, Member: a.Member, ObjectURL: a.ObjectURL, Since: r.now().UTC(),
		Credentials:    v.cluster.Spec.Backup.Destination.Credentials.SecretName,
		VerifiedBackup: VerifiedBackup{Revision: a.Revision},
	}
	random, err := randomHex(8)
	if err != nil {
		return fmt.Errorf("begin the recovery: %w", err)
	}
	c := v.cluster.EtcdCluster
	g.Token = c.Metadata.Name + "-" + random
	if g.NewClusterID, g.NewMemberID, err = restore.Identity(g.Token, a.Member, PeerURL(c, a.Member)); err != nil {
		return fmt.Errorf("begin the recovery: %w", err)
	}
	if a.ObjectURL != "" {
		store, err := r.clusterStore(ctx, v.cluster)
		if err != nil {
			return fmt.Errorf("begin the recovery: %w", err)
		}
		if err := r.rest(ctx, &g, store, a, v.cluster.Spec.Recovery.Decryption); err != nil {
			return fmt.Errorf("begin the recovery: %w", err)
		}
	}
	return r.noteMembership(ctx, v, func(m *Record) bool { return m.beginRecovery(g) })
}

// restoreVolume creates the Job that restores, when no member runs and the claim
// is the one that the decision was made on.
func (r *Reconciler) restoreVolume(ctx context.Context, v *view, a plan.RestoreVolume) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	g := record.Recovering
	if g == nil || g.NewClusterID != a.ClusterID || record.ClusterID != g.ClusterID || g.Member != a.Member {
		return errChanged
	}
	ns := v.cluster.Metadata.Namespace
	if err := r.wantUnused(ctx, v.cluster, a.Claim, restoreName(v.cluster.Metadata.Name, *g)); err != nil {
		return err
	}
	claim, err := r.kube.CoreV1().PersistentVolumeClaims(ns).Get(ctx, a.Claim, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("read claim %s: %w", a.Claim, err)
	case string(claim.UID) != a.ClaimUID, claim.DeletionTimestamp != nil:
		return errChanged
	}
	if err := r.offerBackup(ctx, v, *g); err != nil {
		return err
	}
	job := renderRestore(v.cluster, v.set, r.options.Render.GuardImage, a.Claim, *g)
	if _, err := r.kube.BatchV1().Jobs(ns).Create(ctx, job, metav1.CreateOptions{FieldManager: FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// wantUnused wants no member's pod, nor any other but the Job's own that could write to
// a claim. All of the namespace are asked for: somebody's copy of a pod need not have
// its labels.
func (r *Reconciler) wantUnused(ctx context.Context, c Cluster, claim, job string) error {
	pods, err := r.kube.CoreV1().Pods(c.Metadata.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for _, pod := range pods.Items {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		uses := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		})
		switch {
		case pod.Labels[LabelCluster] == c.Metadata.Name && isMemberName(c.EtcdCluster, pod.Name):
			return errChanged
		case uses && !ended && pod.Labels[batchv1.JobNameLabel] != job:
			return fmt.Errorf("restore onto volume claim %s: the pod %s uses it: delete that pod, or let it end", claim, pod.Name)
		}
	}
	return nil
}

// endRecovery writes down that a recovery is over. Its Job and its Secret go first:
// nothing would name them any more.
func (r *Reconciler) endRecovery(ctx context.Context, v *view, a plan.EndRecovery) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	if g := record.Recovering; g != nil && g.OneShot == a.OneShot && record.ClusterID == g.NewClusterID {
		if err := r.removeRestore(ctx, v.cluster.Metadata.Namespace, restoreName(v.cluster.Metadata.Name, *g)); err != nil {
			return fmt.Errorf("end the recovery: %w", err)
		}
	}
	return r.noteMembership(ctx, v, func(m *Record) bool { return m.endRecovery(a, r.now()) })
}

// removeRestore deletes what a restore needed. Its name is one that nothing else has.
func (r *Reconciler) removeRestore(ctx context.Context, namespace, name string) error {
	err := r.kube.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Job %s: %w", name, err)
	}
	err = r.kube.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Secret %s: %w", name, err)
	}
	return nil
}

// observeRestore looks how far the restore is, where one is due. It asks the API
// server itself: Jobs are no part of a cluster's daily life, and not watched.
func (r *Reconciler) observeRestore(ctx context.Context, v *view) error {
	v.observed.Restore = plan.Restore{}
	if v.record == nil || v.record.Recovering == nil || v.record.ClusterID != v.record.Recovering.ClusterID {
		return nil
	}
	ns, name := v.cluster.Metadata.Namespace, restoreName(v.cluster.Metadata.Name, *v.record.Recovering)
	job, err := r.readJob(ctx, ns, name)
	if err != nil || job == nil {
		return err
	}
	pods, err := r.podsOfJob(ctx, ns, name)
	if err != nil {
		return err
	}
	v.observed.Restore = restoreStateOf(job, pods)
	return nil
}

// restoreStateOf says how far a restore is. A Job counts as done or failed only
// by its own last word, when its last pod has ended.
func restoreStateOf(job *batchv1.Job, pods []corev1.Pod) plan.Restore {
	state := plan.Restore{State: plan.RestoreRunning, Job: job.Name, Since: job.CreationTimestamp.Time}
	said := restoreSaid(pods)
	if said != "" {
		state.Detail = "the restore: " + said
	}
	switch end := jobEnd(job); {
	case end == nil:
	case end.Type == batchv1.JobComplete:
		state.State = plan.RestoreDone
	default:
		state.State, state.Detail = plan.RestoreFailed, cmp.Or(said, end.Message, end.Reason)
	}
	return state
}

// restoreSaid is what the newest pod of a restore has to say, or "".
func restoreSaid(pods []corev1.Pod) string {
	newest := newestPod(pods)
	return podTrouble(&newest)
}
