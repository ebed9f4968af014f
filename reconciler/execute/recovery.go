package execute

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/restore/identity"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// rest rests a recovery on a backup, which is read whole and checked. A backup of
// another cluster, one that nobody signed who is trusted, or one that the members' release
// cannot take, is refused.
func (e *Executor) rest(ctx context.Context, g *record.Recovering, store backup.Store, a action.BeginRecovery, asked schema.RecoverySpec) error {
	m, err := store.Verify(ctx, a.ObjectURL)
	if err != nil {
		return err
	}
	if err := e.Stores.Trusted(m, stores.TrustOfRecovery(asked)); err != nil {
		return err
	}
	if m.ClusterID != a.ClusterID {
		return fmt.Errorf("the backup at %s is of cluster %s, and this is cluster %s: name a backup of this one", m.Object, m.ClusterID, a.ClusterID)
	}
	if !release.StartsOn(m.EtcdVersion, a.Version) {
		return fmt.Errorf("the backup at %s was made by etcd %q, and the pods are made for %s, which cannot start on it: name another one", m.Object, m.EtcdVersion, a.Version)
	}
	if g.Verified, err = m.Verified(asked.Decryption, "spec.recovery.decryption.secretName"); err != nil {
		return err
	}
	// Fail now rather than when the restore Job reads the backup.
	_, _, err = e.Stores.Way(ctx, store, stores.Offered{ObjectURL: a.ObjectURL, Credentials: g.Credentials, Pod: g.PodAccess})
	return err
}

// offerBackup writes the Secret by which the restore finds its backup, and says how it is
// to read it: as Git says, for the record may be anybody's. renew says that a pod has been
// given a signed URL, and waits for another one.
func (e *Executor) offerBackup(ctx context.Context, v *observe.View, g record.Recovering, renew bool) (stores.Way, error) {
	if g.ObjectURL == "" {
		return stores.Way{}, nil
	}
	store, as, err := e.Stores.InGit(ctx, v.Cluster, g.ObjectURL, g.SHA256)
	if err != nil {
		return stores.Way{}, fmt.Errorf("offer the backup of the restore: %w", err)
	}
	if renew {
		as = stores.Offered{ObjectURL: as.ObjectURL}
	}
	c := v.Cluster.Metadata
	secret := corev1ac.Secret(jobs.RestoreName(c.Name, g), c.Namespace).WithLabels(map[string]string{naming.LabelRestoreOf: c.Name})
	return e.Stores.Offer(ctx, store, as, secret, e.Now())
}

// KeepOffered renews the offer of a backup while a restore is to read by it.
func (e *Executor) KeepOffered(ctx context.Context, v *observe.View) error {
	if v.Record == nil || v.Record.Recovering == nil || v.Record.Recovering.ObjectURL == "" {
		return nil
	}
	g, c := *v.Record.Recovering, v.Cluster.Metadata
	return e.Stores.KeepOffered(ctx, c.Namespace, jobs.RestoreName(c.Name, g), e.Now(), func() error { return e.Lease(v.Cluster.Key()) }, func() error {
		if _, err := e.offerBackup(ctx, v, g, true); err != nil {
			return fmt.Errorf("sign the URL of the backup again for the restore that is under way: %w", err)
		}
		return nil
	})
}

// BeginRecovery chooses the identity of the recovered cluster, and records
// what is going to happen.
func (e *Executor) beginRecovery(ctx context.Context, v *observe.View, a action.BeginRecovery) error {
	a.ObjectURL = e.Stores.At(v.Cluster.Metadata.Namespace, v.Cluster.Spec.Backup.Destination.Credentials.SecretName, a.ObjectURL)
	g := record.Recovering{
		OneShot: a.OneShot, ClusterID: a.ClusterID, Member: a.Member, ObjectURL: a.ObjectURL, Since: e.Now().UTC(),
		Credentials: v.Cluster.Spec.Backup.Destination.Credentials.SecretName, PodAccess: v.Cluster.Spec.Backup.Destination.PodAccess,
		Verified: backup.Verified{Revision: a.Revision},
	}
	random, err := naming.Random(8)
	if err != nil {
		return fmt.Errorf("begin the recovery: %w", err)
	}
	c := v.Cluster.EtcdCluster
	g.Token = c.Metadata.Name + "-" + random
	if g.NewClusterID, g.NewMemberID, err = identity.Of(g.Token, a.Member, naming.PeerURL(c, a.Member)); err != nil {
		return fmt.Errorf("begin the recovery: %w", err)
	}
	if a.ObjectURL != "" {
		store, err := e.Stores.OfCluster(ctx, v.Cluster, a.ObjectURL)
		if err != nil {
			return fmt.Errorf("begin the recovery: %w", err)
		}
		if err := e.rest(ctx, &g, store, a, v.Cluster.Spec.Recovery); err != nil {
			return fmt.Errorf("begin the recovery: %w", err)
		}
	}
	if g.Above, err = aboveLost(ctx, e, v, g.Revision); err != nil {
		return fmt.Errorf("begin the recovery: %w", err)
	}
	if err := e.wantLost(ctx, v); err != nil {
		return fmt.Errorf("begin the recovery: %w", err)
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool {
		m.Saw(g.Above)
		return m.BeginRecovery(g)
	})
}

// adoptRecovery records the new identity, after it is on each claim what is kept there.
func adoptRecovery(ctx context.Context, e *Executor, v *observe.View, a action.AdoptRecovery) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	if g := rec.Recovering; g != nil && a.From != "" && g.ClusterID == a.From {
		for _, member := range slices.Sorted(maps.Keys(g.Members)) {
			if _, err := markKept(ctx, e, v, v.ClaimName(member), a.From); err != nil {
				return fmt.Errorf("note on volume claim %s what the recovery keeps there: %w", v.ClaimName(member), err)
			}
		}
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool { return m.AdoptRecovery(a) })
}

// markKept notes on a claim of the cluster, where there is one, that its volume keeps what is
// left of a lost one, and reports whether nothing of that goes unasked: it is noted, or there
// is no claim. The claims of others, whom the record may name, are left alone.
func markKept(ctx context.Context, e *Executor, v *observe.View, claim, lost string) (safe bool, err error) {
	live, err := kube.FoundOrNil(e.Kube.CoreV1().PersistentVolumeClaims(v.Cluster.Metadata.Namespace).Get(ctx, claim, metav1.GetOptions{}))
	switch {
	case err != nil, live == nil:
		return err == nil, err
	case !naming.Owns(live, v.Cluster.EtcdCluster):
		return false, nil
	case live.Annotations[naming.AnnotationKeeps] == lost:
		return true, nil
	}
	err = e.patchClaim(ctx, live, map[string]string{naming.AnnotationKeeps: lost}, nil)
	return err == nil, err
}

// wantLost wants no quorum of the members to be ready by now: to read a backup takes
// minutes, and what has come back meanwhile is not recovered.
func (e *Executor) wantLost(ctx context.Context, v *observe.View) error {
	live, err := observe.Pods(ctx, e.Kube, v.Cluster)
	if err != nil {
		return err
	}
	ready := 0
	for _, p := range live {
		pod, known := pods.Describe(p), v.Observed.Pod(p.Name)
		pod.NodeSilent = known != nil && known.UID == pod.UID && known.NodeSilent
		if _, member := v.Record.Members[pod.Name]; member && pod.Serving() {
			ready++
		}
	}
	if ready >= state.Quorum(len(v.Record.Members)) {
		return state.ErrChanged
	}
	return nil
}

// aboveLost is above for a lost cluster: its record and its members know the most, so that
// a store is not waited for.
func aboveLost(ctx context.Context, e *Executor, v *observe.View, from int64) (int64, error) {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, recoveryListTime)
	defer cancel()
	return above(ctx, e.Stores, v, &rec, from, 0)
}

// recoveryListTime is how long a recovery asks the store how far backups have come.
const recoveryListTime = 30 * time.Second

// restoreVolume creates the Job that restores, when no member runs and the claim
// is the one that the decision was made on.
func (e *Executor) restoreVolume(ctx context.Context, v *observe.View, a action.RestoreVolume) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	g := rec.Recovering
	if g == nil || g.NewClusterID != a.ClusterID || rec.ClusterID != g.ClusterID || g.Member != a.Member {
		return state.ErrChanged
	}
	if a.AcceptHashMismatch != "" {
		g.AcceptHashMismatch = a.AcceptHashMismatch // another Job: the one that refused stays
	}
	ns := v.Cluster.Metadata.Namespace
	if err := e.wantUnused(ctx, v.Cluster, a.Claim, jobs.RestoreName(v.Cluster.Metadata.Name, *g)); err != nil {
		return err
	}
	claim, err := e.Kube.CoreV1().PersistentVolumeClaims(ns).Get(ctx, a.Claim, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("read claim %s: %w", a.Claim, err)
	case string(claim.UID) != a.ClaimUID, claim.DeletionTimestamp != nil:
		return state.ErrChanged
	}
	if a.AcceptHashMismatch != "" {
		if err := e.noteIf(ctx, v, func(m *record.Record) bool { return m.AcceptHashMismatch(a.ClusterID, a.AcceptHashMismatch) }); err != nil {
			return err
		}
	}
	way, err := e.offerBackup(ctx, v, *g, false)
	if err != nil {
		return err
	}
	return e.Jobs.Start(ctx, jobs.OfRestore(v.Cluster), jobs.RenderRestore(v.Cluster, v.Set, e.Options.GuardImage, a.Claim, *g, way))
}

// wantUnused wants no member's pod, nor any other but the Job's own that could write to
// a claim. All of the namespace are asked for: a copy of a pod need not have
// its labels.
func (e *Executor) wantUnused(ctx context.Context, c desired.Cluster, claim, job string) error {
	all, err := e.Kube.CoreV1().Pods(c.Metadata.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for _, pod := range all.Items {
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

// EndRecovery records that a recovery is over. Its Job and its Secret go first:
// nothing would name them any more.
func (e *Executor) endRecovery(ctx context.Context, v *observe.View, a action.EndRecovery) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	if g := rec.Recovering; g != nil && g.OneShot == a.OneShot && rec.ClusterID == g.NewClusterID {
		for _, name := range jobs.RestoreNames(v.Cluster.Metadata.Name, *g) {
			if err := e.Jobs.Remove(ctx, jobs.OfRestore(v.Cluster), name); err != nil {
				return fmt.Errorf("end the recovery: %w", err)
			}
		}
	}
	return e.noteIf(ctx, v, func(m *record.Record) bool {
		m.Saw(highest(v.Observed.Rounds))
		return m.EndRecovery(a, e.Now())
	})
}
