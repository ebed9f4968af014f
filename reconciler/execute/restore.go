package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/restore/identity"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
)

// beginRestore chooses the backup, reads the whole of it, and records what is
// going to happen. Before that, nothing is made.
func (e *Executor) beginRestore(ctx context.Context, v *observe.View, a action.BeginRestore) error {
	c := v.Cluster.EtcdCluster
	live, err := e.Records.Find(ctx, c)
	if err != nil {
		return err
	}
	was, err := recordToSucceed(live, a)
	if err != nil || was.BegunBy(a) {
		return err // the same was begun already
	}
	if err := e.nothingInTheWay(ctx, v, a.InPlace); err != nil {
		return err
	}
	rec, random, err := restored(ctx, e, v, a, was)
	if err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	rec.Owner = record.OwnerRecord(a.Owner)
	if was != nil {
		if err := rec.Succeed(*was, random[:6], e.Now()); err != nil {
			return fmt.Errorf("restore %s: %w", a.Restore, err)
		}
	}
	return e.Records.Replace(ctx, c, rec, live)
}

// restored is the record of a cluster that is to begin with a backup, which is read
// whole and checked. random is what its token ends with.
func restored(ctx context.Context, e *Executor, v *observe.View, a action.BeginRestore, was *record.Record) (rec record.Record, random string, err error) {
	c, w := v.Cluster.EtcdCluster, *v.Cluster.Restore
	f, err := e.Stores.Find(ctx, c.Metadata.Namespace, w, a.Object, e.Now())
	if err != nil {
		return rec, "", err
	}
	if err := errors.Join(stores.FitsRelease(f.Manifest, a.Version), stores.FitsVolume(f.Manifest, v.Cluster)); err != nil {
		return rec, "", err
	}
	if random, err = naming.Random(8); err != nil {
		return rec, "", err
	}
	g := record.Recovering{Token: c.Metadata.Name + "-" + random, ObjectURL: f.URL, Credentials: w.Credentials(), PodAccess: w.PodAccess()}
	if g.Verified, err = f.Verified(w.Source.Decryption, "spec.source.decryption.secretName"); err != nil {
		return rec, "", err
	}
	if g.Above, err = above(ctx, e.Stores, v, was, f.Revision, stores.HighestRevision(f.Beside, v.Cluster)); err != nil {
		return rec, "", err
	}
	if g.NewClusterID, g.NewMemberID, err = identity.Of(g.Token, a.Member, naming.PeerURL(c, a.Member)); err != nil {
		return rec, "", err
	}
	rec = record.NewRestore(a, f.Manifest, g, e.Now())
	rec.Restored.Chosen = f.Text
	return rec, random, nil
}

// above is the highest revision that clusters of this name are known to have had, 0
// where that is not above the one that the next begins with: from what their record
// says, if there is one, what a member says that still answers, and what the manifests
// of their backups say. A place that cannot be listed is in the way only where there is no
// record: a revision that goes back makes every client that watches miss what is written.
func above(ctx context.Context, s stores.Stores, v *observe.View, was *record.Record, from, known int64) (int64, error) {
	known = max(known, highest(v.Observed.Rounds))
	if was != nil {
		recorded, err := was.Reached()
		if err != nil {
			return 0, err
		}
		known = max(known, recorded)
	}
	listed, err := s.Reached(ctx, v.Cluster)
	if err != nil && was == nil {
		return 0, fmt.Errorf("how far earlier clusters of this name had come is unknown, and revisions must not go back: %w; correct that, or give the new cluster another name or another backup.destination", err)
	}
	known = max(known, listed)
	switch {
	case known > state.MaxRevision:
		return 0, fmt.Errorf("an earlier cluster of this name, or the manifest of one of its backups, tells of revision %d, which cannot be true: correct that manifest, or give the new cluster another name", known)
	case known <= from:
		return 0, nil
	}
	return known, nil
}

// highest is the highest revision that a member has named.
func highest(rounds []state.Round) (revision int64) {
	for _, r := range rounds {
		for _, m := range r.Members {
			revision = max(revision, m.Revision)
		}
	}
	return revision
}

// recordToSucceed is the record that a restore takes the place of, if any: that of
// a deleted cluster, or, the second time, the restore's own.
func recordToSucceed(live *corev1.ConfigMap, a action.BeginRestore) (*record.Record, error) {
	if live == nil {
		if a.InPlace {
			return nil, state.ErrChanged
		}
		return nil, nil
	}
	was, err := record.Read(live)
	if err != nil {
		return nil, err
	}
	if !was.BegunBy(a) && (!a.InPlace || !was.Deleted) {
		return nil, state.ErrChanged
	}
	return &was, nil
}

// nothingInTheWay looks past the caches for what must not exist.
func (e *Executor) nothingInTheWay(ctx context.Context, v *observe.View, inPlace bool) error {
	c, ns := v.Cluster.EtcdCluster, v.Cluster.Metadata.Namespace
	named := metav1.ListOptions{LabelSelector: naming.LabelCluster + "=" + c.Metadata.Name}
	pods, errPods := observe.Pods(ctx, e.Kube, v.Cluster)
	claims, errClaims := e.Kube.CoreV1().PersistentVolumeClaims(ns).List(ctx, named)
	_, errSet := e.Kube.AppsV1().StatefulSets(ns).Get(ctx, c.Metadata.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(errSet) {
		return cmp.Or(errSet, state.ErrChanged)
	}
	switch err := errors.Join(errPods, errClaims); {
	case err != nil:
		return fmt.Errorf("look for what is in the way: %w", err)
	case len(pods) > 0, len(claims.Items) > 0 && !inPlace:
		return state.ErrChanged
	}
	return nil
}

// createVolume makes the claim of the first member, exactly as the StatefulSet
// would: it takes the claim over by its name.
func (e *Executor) createVolume(ctx context.Context, v *observe.View, a action.CreateVolume) error {
	rec, err := e.Records.Get(ctx, v.Cluster.EtcdCluster)
	if err != nil {
		return err
	}
	if g := rec.Recovering; g == nil || rec.Restored == nil || g.Member != a.Member || rec.Formed() || a.Claim != v.ClaimName(a.Member) {
		return state.ErrChanged
	}
	m, err := v.Manifests()
	if err != nil {
		return err
	}
	claims := e.Kube.CoreV1().PersistentVolumeClaims(v.Cluster.Metadata.Namespace)
	template := m.StatefulSet.Spec.VolumeClaimTemplates[0].Spec
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: a.Claim, Namespace: v.Cluster.Metadata.Namespace, Labels: maps.Clone(naming.OwnLabels(v.Cluster.EtcdCluster))},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: template.AccessModes, VolumeMode: template.VolumeMode, StorageClassName: template.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{Requests: *template.Resources.Requests},
		},
	}
	_, err = claims.Create(ctx, want, metav1.CreateOptions{FieldManager: naming.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		live, err := claims.Get(ctx, a.Claim, metav1.GetOptions{})
		if err == nil && !naming.Owns(live, v.Cluster.EtcdCluster) {
			err = errors.New("it exists and does not carry quorate's labels, so it is somebody else's: look at it and delete it by hand")
		}
		if err != nil {
			return fmt.Errorf("create the volume claim %s: %w", a.Claim, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the volume claim %s: %w", a.Claim, err)
	}
	return nil
}
