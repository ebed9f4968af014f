package reconciler

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// createRecord creates the record with a fresh token. It never touches a record
// that exists.
func (r *Reconciler) createRecord(ctx context.Context, v *view, owner plan.Owner) error {
	c := v.cluster.EtcdCluster
	token, err := randomHex(8)
	if err != nil {
		return fmt.Errorf("create the record: %w", err)
	}
	record := NewRecord(c.Metadata.Name + "-" + token)
	record.Founders = c.Spec.Replicas
	record.Owner = ownerRecord(owner)
	_, err = r.kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Create(ctx, newRecordMap(record, c), metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the record: %w", err)
	}
	return nil
}

// newRecordMap is the ConfigMap of a record that is created: server-side apply
// would take over one that exists.
func newRecordMap(record Record, c schema.EtcdCluster) *corev1.ConfigMap {
	want := record.ConfigMap(c)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: *want.Name, Namespace: *want.Namespace, Labels: want.Labels}, Data: want.Data,
	}
}

// randomHex returns n random bytes in hexadecimal.
func randomHex(n int) (string, error) {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

// updateRecord changes the live record, and fails when somebody else has
// changed it in between, or the cluster has changed hands. A change that changes
// nothing is not written.
func (r *Reconciler) updateRecord(ctx context.Context, v *view, change func(*Record)) error {
	return r.tryRecord(ctx, v, func(record *Record) error {
		if owner := ownerOf(*record); owner != nil && !v.desired.Owner.Nobody() && !owner.Is(v.desired.Owner) {
			return errChanged
		}
		change(record)
		return nil
	})
}

// tryRecord is updateRecord with a change that may refuse.
func (r *Reconciler) tryRecord(ctx context.Context, v *view, change func(*Record) error) error {
	c := v.cluster.EtcdCluster
	configMaps := r.kube.CoreV1().ConfigMaps(c.Metadata.Namespace)
	live, err := configMaps.Get(ctx, RecordName(c), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	record, err := ReadRecord(live)
	if err != nil {
		return err
	}
	before := record.ConfigMap(c).Data
	if err := change(&record); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	if maps.Equal(record.ConfigMap(c).Data, before) && maps.Equal(live.Data, before) {
		return nil
	}
	record.Revision++
	live.Data = record.ConfigMap(c).Data
	if _, err := configMaps.Update(ctx, live, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// issueCertificates creates the Secrets that are missing, authorities first.
func (r *Reconciler) issueCertificates(ctx context.Context, v *view) error {
	c := v.cluster.EtcdCluster
	secrets := r.kube.CoreV1().Secrets(c.Metadata.Namespace)
	existing, err := r.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	missing, err := CertificateSecrets(c, r.options.Render.ClusterDomain, existing, r.now())
	if err != nil {
		return err
	}
	for _, secret := range missing {
		_, err := secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Secret %s: it exists, but is not labelled as this cluster's, or somebody was faster", secret.Name)
		}
		if err != nil {
			return fmt.Errorf("create Secret %s: %w", secret.Name, err)
		}
	}
	return nil
}

// liveSecrets reads the cluster's own Secrets past the caches, by name.
func (r *Reconciler) liveSecrets(ctx context.Context, c schema.EtcdCluster) (map[string]*corev1.Secret, error) {
	list, err := r.kube.CoreV1().Secrets(c.Metadata.Namespace).List(ctx, metav1.ListOptions{LabelSelector: LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return nil, fmt.Errorf("list the certificates: %w", err)
	}
	live := map[string]*corev1.Secret{}
	for i := range list.Items {
		live[list.Items[i].Name] = &list.Items[i]
	}
	return live, nil
}

// widenCertificates replaces certificates that name too few members. Secrets and
// authorities are read past the caches; one that has changed in between stays.
func (r *Reconciler) widenCertificates(ctx context.Context, v *view, a plan.WidenCertificates) error {
	c := v.cluster.EtcdCluster
	secrets, domain := r.kube.CoreV1().Secrets(c.Metadata.Namespace), r.options.Render.ClusterDomain
	live, err := r.liveSecrets(ctx, c)
	if err != nil {
		return err
	}
	status := CheckCertificates(c, domain, live, r.now())
	if len(status.Missing)+len(status.Problems) > 0 {
		return errChanged
	}
	for _, l := range certificateLeaves(c, domain) {
		if !slices.Contains(a.Secrets, l.secret) || !slices.Contains(status.Narrow, l.secret) {
			continue
		}
		wide, err := WidenedLeaf(c, domain, live[l.secret], live[l.authority], r.now())
		if err != nil {
			return err
		}
		if _, err := secrets.Update(ctx, wide, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil {
			return fmt.Errorf("update Secret %s: %w", l.secret, err)
		}
	}
	return nil
}

// applyObject makes one object what is wanted.
func (r *Reconciler) applyObject(ctx context.Context, v *view, a plan.ApplyObject) error {
	ns, m := v.cluster.Metadata.Namespace, v.manifests
	var err error
	switch {
	case a.Kind == "Service" && a.Name == *m.Headless.Name:
		err = applyWhole(ctx, r.kube.CoreV1().Services(ns), a.Name, m.Headless)
	case a.Kind == "Service" && a.Name == *m.Client.Name:
		err = applyWhole(ctx, r.kube.CoreV1().Services(ns), a.Name, m.Client)
	case a.Kind == "PodDisruptionBudget":
		err = applyWhole(ctx, r.kube.PolicyV1().PodDisruptionBudgets(ns), a.Name, m.PDB)
	case a.Kind == "StatefulSet":
		return r.applySetDrift(ctx, v)
	default:
		return fmt.Errorf("apply %s %s: quorate keeps no such object", a.Kind, a.Name)
	}
	return applyError(a.Kind, a.Name, err)
}

// applyError says what could not be applied, nil without an error. Most often a
// conflict is a controller that has written the status at the same time.
func applyError(kind, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("apply %s %s: %w: %w", kind, name, errChanged, err)
	}
	return fmt.Errorf("apply %s %s: %w", kind, name, err)
}

// objects is what applying needs of a client for one kind.
type objects[L liveObject, W any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (L, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (L, error)
	Apply(ctx context.Context, want W, o metav1.ApplyOptions) (L, error)
}

// applyWhole applies an object, and removes what others have added to its spec.
func applyWhole[L liveObject, W any](ctx context.Context, client objects[L, W], name string, want W) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	default:
		if _, err := ownAdditions(ctx, client, live, want); err != nil {
			return err
		}
	}
	_, err = client.Apply(ctx, want, applyOptions())
	return err
}

// ownAdditions makes quorate the owner of what others have added to the spec, so
// that the next apply removes it. It changes nothing else, and returns the object
// as it is then.
func ownAdditions[L liveObject, W any](ctx context.Context, client objects[L, W], live L, want W) (L, error) {
	patch, err := takeOver(live, want)
	if err != nil || patch == nil {
		return live, err
	}
	return client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
}

// applySetDrift brings back what somebody changed in the StatefulSet.
func (r *Reconciler) applySetDrift(ctx context.Context, v *view) error {
	return r.applyKept(ctx, v, partitionOf(v.set))
}

// applyKept applies the StatefulSet with the given partition, and keeps the
// template that it has: only a roll may change that, behind its gates.
func (r *Reconciler) applyKept(ctx context.Context, v *view, partition int32) error {
	keep, err := v.keepTemplate()
	if err != nil {
		return err
	}
	return r.applySetAs(ctx, v, keep, partition)
}

// keepTemplate is the wanted StatefulSet with the template that the live one has.
func (v *view) keepTemplate() (appsv1ac.StatefulSetApplyConfiguration, error) {
	keep, spec := *v.manifests.StatefulSet, *v.manifests.StatefulSet.Spec
	keep.Spec = &spec
	if v.set.Spec.Template.Annotations[AnnotationTemplateHash] == v.manifests.TemplateHash {
		return keep, nil
	}
	owned, err := appsv1ac.ExtractStatefulSet(v.set, FieldManager)
	if err != nil {
		return keep, fmt.Errorf("apply StatefulSet %s: %w", v.set.Name, err)
	}
	if owned.Spec == nil || owned.Spec.Template == nil {
		return keep, fmt.Errorf("apply StatefulSet %s: quorate does not own its template, so it cannot be kept as it is; wait for the roll to end", v.set.Name)
	}
	spec.Template = owned.Spec.Template
	return keep, nil
}

// applySet applies the StatefulSet with the given partition.
func (r *Reconciler) applySet(ctx context.Context, v *view, partition int32) error {
	return r.applySetAs(ctx, v, *v.manifests.StatefulSet, partition)
}

// applySetAs applies a variant of the StatefulSet, and removes what others have
// added to it. Where one exists, its UID and version must be those that the
// decision was made on.
func (r *Reconciler) applySetAs(ctx context.Context, v *view, want appsv1ac.StatefulSetApplyConfiguration, partition int32) error {
	meta, spec := *want.ObjectMetaApplyConfiguration, *want.Spec
	want.ObjectMetaApplyConfiguration, want.Spec = &meta, &spec
	strategy, rolling := *spec.UpdateStrategy, *spec.UpdateStrategy.RollingUpdate
	rolling.Partition, strategy.RollingUpdate, spec.UpdateStrategy = &partition, &rolling, &strategy
	sets := r.kube.AppsV1().StatefulSets(*want.Namespace)
	if v.set != nil {
		// Additions are what the full wish does not name: a template that is kept
		// lacks what somebody has changed in it, and that must not go.
		live, err := ownAdditions(ctx, sets, v.set, v.manifests.StatefulSet)
		if err != nil {
			return applyError("StatefulSet", *want.Name, err)
		}
		want.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	}
	_, err := sets.Apply(ctx, &want, applyOptions())
	return applyError("StatefulSet", *want.Name, err)
}
