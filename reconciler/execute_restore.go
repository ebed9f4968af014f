package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/restore"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// executeRestore carries out what makes a cluster out of a backup.
func (r *Reconciler) executeRestore(ctx context.Context, v *view, action plan.Action) error {
	switch a := action.(type) {
	case plan.BeginRestore:
		return r.beginRestore(ctx, v, a)
	case plan.CreateVolume:
		return r.createVolume(ctx, v, a)
	case plan.EndRestore:
		return r.noteMembership(ctx, v, func(m *Record) bool { return m.endRestore(a, r.now()) })
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

// beginRestore chooses the backup, reads the whole of it, and writes down what is
// going to happen. Before that, nothing is made.
func (r *Reconciler) beginRestore(ctx context.Context, v *view, a plan.BeginRestore) error {
	c := v.cluster.EtcdCluster
	live, err := foundOrNil(r.kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Get(ctx, RecordName(c), metav1.GetOptions{}))
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	was, err := recordToSucceed(live, a)
	if err != nil || was.begunBy(a) {
		return err // the same was begun already
	}
	if err := r.nothingInTheWay(ctx, v, a.InPlace); err != nil {
		return err
	}
	m, url, err := r.backupFor(ctx, v)
	if err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	if err := fitsRelease(m, a.Version); err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	random, err := randomHex(8)
	if err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	g := RecoveringRecord{Token: c.Metadata.Name + "-" + random, ObjectURL: url, Credentials: v.cluster.Restore.credentials()}
	if g.VerifiedBackup, err = verified(m, v.cluster.Restore.Source.Decryption, "spec.source.decryption.secretName"); err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	if g.NewClusterID, g.NewMemberID, err = restore.Identity(g.Token, a.Member, PeerURL(c, a.Member)); err != nil {
		return fmt.Errorf("restore %s: %w", a.Restore, err)
	}
	record := newRestoreRecord(a, m, g, r.now())
	record.Owner = ownerRecord(a.Owner)
	if was != nil {
		if err := record.succeed(*was, random[:6], r.now()); err != nil {
			return fmt.Errorf("restore %s: %w", a.Restore, err)
		}
	}
	return r.putRestoreRecord(ctx, c, record, live)
}

// recordToSucceed is the record that a restore takes the place of, if any: that of
// a deleted cluster, or, the second time, the restore's own.
func recordToSucceed(live *corev1.ConfigMap, a plan.BeginRestore) (*Record, error) {
	if live == nil {
		if a.InPlace {
			return nil, errChanged
		}
		return nil, nil
	}
	was, err := ReadRecord(live)
	if err != nil {
		return nil, err
	}
	if !was.begunBy(a) && (!a.InPlace || !was.Deleted) {
		return nil, errChanged
	}
	return &was, nil
}

// nothingInTheWay looks past the caches for what must not exist.
func (r *Reconciler) nothingInTheWay(ctx context.Context, v *view, inPlace bool) error {
	c, ns := v.cluster.EtcdCluster, v.cluster.Metadata.Namespace
	named := metav1.ListOptions{LabelSelector: LabelCluster + "=" + c.Metadata.Name}
	pods, errPods := r.podsOf(ctx, v.cluster)
	claims, errClaims := r.kube.CoreV1().PersistentVolumeClaims(ns).List(ctx, named)
	_, errSet := r.kube.AppsV1().StatefulSets(ns).Get(ctx, c.Metadata.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(errSet) {
		return cmp.Or(errSet, errChanged)
	}
	switch err := errors.Join(errPods, errClaims); {
	case err != nil:
		return fmt.Errorf("look for what is in the way: %w", err)
	case len(pods) > 0, len(claims.Items) > 0 && !inPlace:
		return errChanged
	}
	return nil
}

// putRestoreRecord creates the record, or replaces exactly the one that was read.
func (r *Reconciler) putRestoreRecord(ctx context.Context, c schema.EtcdCluster, record Record, was *corev1.ConfigMap) error {
	configMaps, want := r.kube.CoreV1().ConfigMaps(c.Metadata.Namespace), newRecordMap(record, c)
	var err error
	if was != nil {
		next := was.DeepCopy()
		next.Data = want.Data
		_, err = configMaps.Update(ctx, next, metav1.UpdateOptions{FieldManager: FieldManager})
	} else {
		_, err = configMaps.Create(ctx, want, metav1.CreateOptions{FieldManager: FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// fitsRelease refuses a backup that the release cannot start on. From 3.6 on the
// storage version says what is in the database; before, the member's own does.
func fitsRelease(m backup.Manifest, version string) error {
	if !startsOn(cmp.Or(m.StorageVersion, m.EtcdVersion), version) {
		return fmt.Errorf("the backup at %s was made by etcd %q with storage version %q, and etcd %s cannot start on that; name a release of the same minor, or of the one after it, in spec.clusterTemplate.version",
			m.Object, m.EtcdVersion, m.StorageVersion, version)
	}
	return nil
}

// startsOn says whether a release can start on the data of another: one of the same
// minor, or of the one before. What is no release counts for no.
func startsOn(data, version string) bool {
	from, errFrom := release.Parse(data)
	to, errTo := release.Parse(version)
	return errors.Join(errFrom, errTo) == nil && from.Major == to.Major && (to.Minor == from.Minor || to.Minor == from.Minor+1)
}

// createVolume makes the claim of the first member, exactly as the StatefulSet
// would: it takes the claim over by its name.
func (r *Reconciler) createVolume(ctx context.Context, v *view, a plan.CreateVolume) error {
	record, err := r.liveRecord(ctx, v)
	if err != nil {
		return err
	}
	if g := record.Recovering; g == nil || record.Restored == nil || g.Member != a.Member || record.Formed() || a.Claim != v.claimName(a.Member) {
		return errChanged
	}
	claims := r.kube.CoreV1().PersistentVolumeClaims(v.cluster.Metadata.Namespace)
	template := v.manifests.StatefulSet.Spec.VolumeClaimTemplates[0].Spec
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: a.Claim, Namespace: v.cluster.Metadata.Namespace, Labels: maps.Clone(OwnLabels(v.cluster.EtcdCluster))},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: template.AccessModes, VolumeMode: template.VolumeMode, StorageClassName: template.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{Requests: *template.Resources.Requests},
		},
	}
	_, err = claims.Create(ctx, want, metav1.CreateOptions{FieldManager: FieldManager})
	if apierrors.IsAlreadyExists(err) {
		live, err := claims.Get(ctx, a.Claim, metav1.GetOptions{})
		if err == nil && !isOurs(live, v.cluster.EtcdCluster) {
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
