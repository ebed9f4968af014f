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
	"github.com/quorate/quorate/reconciler/restore"
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
	m, url, err := e.Stores.Find(ctx, v.Cluster.Metadata.Namespace, *v.Cluster.Restore)
	if err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	if err := stores.FitsRelease(m, a.Version); err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	random, err := naming.Random(8)
	if err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	g := record.Recovering{Token: c.Metadata.Name + "-" + random, ObjectURL: url, Credentials: v.Cluster.Restore.Credentials()}
	if g.Verified, err = m.Verified(v.Cluster.Restore.Source.Decryption, "spec.source.decryption.secretName"); err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	if g.NewClusterID, g.NewMemberID, err = restore.Identity(g.Token, a.Member, naming.PeerURL(c, a.Member)); err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	rec := record.NewRestore(a, m, g, e.Now())
	rec.Owner = record.OwnerRecord(a.Owner)
	if was != nil {
		if err := rec.Succeed(*was, random[:6], e.Now()); err != nil {
			return fmt.Errorf("restore %s: %w", a.Restore, err)
		}
	}
	return e.Records.Replace(ctx, c, rec, live)
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
	claims := e.Kube.CoreV1().PersistentVolumeClaims(v.Cluster.Metadata.Namespace)
	template := v.Manifests.StatefulSet.Spec.VolumeClaimTemplates[0].Spec
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
