package reconciler

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// backupTimeout bounds one backup, however large the database.
const backupTimeout = time.Hour

// errChanged says that the world moved between the decision and the action.
var errChanged = errors.New("the cluster changed between the decision and the action; quorate looks again")

// execute carries out one action. Each method below is idempotent: that
// something is already so counts as done.
func (r *Reconciler) execute(ctx context.Context, v *view, action plan.Action) error {
	if err := r.options.Lease(); err != nil {
		return err
	}
	switch a := action.(type) {
	case plan.CreateRecord:
		return r.createRecord(ctx, v)
	case plan.IssueCertificates:
		return r.issueCertificates(ctx, v)
	case plan.ApplyObject:
		return r.applyObject(ctx, v, a)
	case plan.CreateSet:
		return r.applySet(ctx, v, a.Replicas)
	case plan.RecordFormed:
		return r.updateRecord(ctx, v, func(record *Record) { record.ClusterID, record.Members = a.ClusterID, maps.Clone(a.Members) })
	case plan.TakeBackup:
		return r.takeBackup(ctx, v, a)
	case plan.StartRoll:
		return r.startRoll(ctx, v, a)
	case plan.MoveLeader:
		return r.moveLeader(ctx, v, a)
	case plan.RestartMember:
		return r.restartMember(ctx, v, a)
	case plan.EndRoll:
		return r.applySet(ctx, v, a.Replicas)
	case plan.RecordApplied:
		return r.updateRecord(ctx, v, func(record *Record) {
			record.Applied = &AppliedRecord{SpecHash: a.SpecHash, Version: a.Version, Commit: a.Commit}
		})
	}
	return fmt.Errorf("unknown action %T", action)
}

// again reads the record, the StatefulSet and the pods from the API server
// itself and decides again: an action is carried out only when fresh data leads
// to the very same one.
func (r *Reconciler) again(ctx context.Context, v *view, action plan.Action) (*view, error) {
	fresh := *v
	live, err := r.readLive(ctx, v.cluster)
	if err != nil {
		return nil, err
	}
	fresh.set = live.set
	fresh.observed.Record, fresh.observed.RecordProblem, fresh.observed.Set, fresh.observed.Pods = nil, "", nil, nil
	fresh.observeRecord(live.record)
	if err := r.render(&fresh); err != nil {
		return nil, err
	}
	fresh.observeSet(live)
	if a, ok := action.(plan.ApplyObject); ok {
		if err := r.compareAgain(ctx, &fresh, live, a); err != nil {
			return nil, err
		}
	}
	p := plan.Make(fresh.desired, fresh.observed, r.now())
	if p.Hold != nil || len(p.Steps) == 0 || !sameAction(p.Steps[0].Action, action) {
		return nil, errChanged
	}
	return &fresh, nil
}

// compareAgain compares the objects again, and reads the one that is about to be
// applied from the API server itself: the caches may not yet know that it was.
func (r *Reconciler) compareAgain(ctx context.Context, v *view, live *liveCluster, a plan.ApplyObject) error {
	ns := v.cluster.Metadata.Namespace
	var err error
	switch a.Kind {
	case "Service":
		live.services[a.Name], err = foundOrNil(r.kube.CoreV1().Services(ns).Get(ctx, a.Name, metav1.GetOptions{}))
	case "PodDisruptionBudget":
		live.budget, err = foundOrNil(r.kube.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, a.Name, metav1.GetOptions{}))
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", a.Kind, a.Name, err)
	}
	return v.observeObjects(r, live)
}

// sameAction compares two actions by what they do. Not every action is
// comparable with ==, and their text names the object but not its UID.
func sameAction(a, b plan.Action) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

// readLive reads past the caches what a decision rests on most.
func (r *Reconciler) readLive(ctx context.Context, c Cluster) (*liveCluster, error) {
	live, err := r.cache.read(c)
	if err != nil {
		return nil, err
	}
	ns := c.Metadata.Namespace
	live.record, err = r.kube.CoreV1().ConfigMaps(ns).Get(ctx, RecordName(c.EtcdCluster), metav1.GetOptions{})
	if live.record, err = foundOrNil(live.record, err); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	live.set, err = r.kube.AppsV1().StatefulSets(ns).Get(ctx, c.Metadata.Name, metav1.GetOptions{})
	if live.set, err = foundOrNil(live.set, err); err != nil {
		return nil, fmt.Errorf("read the StatefulSet: %w", err)
	}
	pods, err := r.kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	live.pods = nil
	for i := range pods.Items {
		live.pods = append(live.pods, &pods.Items[i])
	}
	return live, nil
}

// foundOrNil turns "not found" into nil without an error.
func foundOrNil[T any](object *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// applyOptions make quorate the owner of what it applies: Git wins.
func applyOptions() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
}

// createRecord creates the record with a fresh token. It never touches a record
// that exists.
func (r *Reconciler) createRecord(ctx context.Context, v *view) error {
	c := v.cluster.EtcdCluster
	token, err := randomHex(8)
	if err != nil {
		return fmt.Errorf("create the record: %w", err)
	}
	want := NewRecord(c.Metadata.Name + "-" + token).ConfigMap(c)
	_, err = r.kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: *want.Name, Namespace: *want.Namespace, Labels: want.Labels},
		Data:       want.Data,
	}, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the record: %w", err)
	}
	return nil
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
// changed it in between.
func (r *Reconciler) updateRecord(ctx context.Context, v *view, change func(*Record)) error {
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
	change(&record)
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
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return fmt.Errorf("list the certificates: %w", err)
	}
	existing := map[string]*corev1.Secret{}
	for i := range list.Items {
		existing[list.Items[i].Name] = &list.Items[i]
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

// applySetDrift brings back what somebody changed in the StatefulSet, and keeps
// the template that it has: only a roll may change that, behind its gates.
func (r *Reconciler) applySetDrift(ctx context.Context, v *view) error {
	if v.set.Spec.Template.Annotations[AnnotationTemplateHash] == v.manifests.TemplateHash {
		return r.applySet(ctx, v, partitionOf(v.set))
	}
	owned, err := appsv1ac.ExtractStatefulSet(v.set, FieldManager)
	if err != nil {
		return fmt.Errorf("apply StatefulSet %s: %w", v.set.Name, err)
	}
	if owned.Spec == nil || owned.Spec.Template == nil {
		return fmt.Errorf("apply StatefulSet %s: quorate does not own its template, so it cannot be kept as it is; wait for the roll to end", v.set.Name)
	}
	keep, spec := *v.manifests.StatefulSet, *v.manifests.StatefulSet.Spec
	spec.Template, keep.Spec = owned.Spec.Template, &spec
	return r.applySetAs(ctx, v, keep, partitionOf(v.set))
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

// takeBackup streams a snapshot of the member into the store, and records it
// once what the store holds has been read back.
func (r *Reconciler) takeBackup(ctx context.Context, v *view, a plan.TakeBackup) error {
	ctx, cancel := context.WithTimeout(ctx, backupTimeout)
	defer cancel()
	url, err := r.backupURL(v)
	if err != nil {
		return err
	}
	endpoint, err := v.endpoint(a.Member)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	snapshot, err := r.etcd.Snapshot(ctx, v.cluster.Key(), endpoint)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer func() { _ = snapshot.Close() }()
	m, err := SaveBackup(ctx, url, snapshot, r.manifestOf(v, a))
	if err != nil {
		return err
	}
	return r.updateRecord(ctx, v, func(record *Record) {
		record.Backup = &BackupRecord{
			ClusterID: m.ClusterID, TargetVersion: m.TargetVersion, URL: url,
			SHA256: m.SHA256, Revision: m.Revision, Size: m.Size, TakenAt: r.now().UTC(),
		}
	})
}

// backupURL is the place of one more backup of the cluster. The name is new
// every time: nothing is ever overwritten, not even a failed try.
func (r *Reconciler) backupURL(v *view) (string, error) {
	unique, err := randomHex(3)
	if err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	c := v.cluster
	return schema.ExpandObjectURL(r.backupTemplate(c), schema.ObjectURLData{
		Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Version: c.Spec.Version,
		UID: r.now().UTC().Format("20060102T150405Z") + "-" + unique,
	})
}

// manifestOf describes the backup that is about to be taken.
func (r *Reconciler) manifestOf(v *view, a plan.TakeBackup) Manifest {
	m := Manifest{
		Namespace: v.cluster.Metadata.Namespace, Name: v.cluster.Metadata.Name,
		ClusterID: a.ClusterID, Member: a.Member, TargetVersion: a.Target, Commit: v.cluster.Commit,
		Reason: fmt.Sprintf("upgrade %s → %s", a.From, a.Target), Time: r.now(),
	}
	for _, round := range v.observed.Rounds {
		for _, member := range round.Members {
			if member.ID == a.MemberID {
				m.describe(member)
			}
		}
	}
	return m
}

// describe adds what the member said of itself.
func (m *Manifest) describe(member plan.Member) {
	m.EtcdVersion, m.StorageVersion = member.Version, member.StorageVersion
	m.Revision = max(m.Revision, member.Revision)
	if member.HashRevision > 0 {
		m.Hash, m.HashRevision, m.CompactRevision = member.Hash, member.HashRevision, member.CompactRevision
	}
}

// startRoll gives the StatefulSet the new template. Before an upgrade the store
// is asked once more whether the backup is still there.
func (r *Reconciler) startRoll(ctx context.Context, v *view, a plan.StartRoll) error {
	if b := v.record.Backup; b != nil && b.TargetVersion == a.To {
		m, err := ReadManifest(ctx, b.URL)
		if err != nil {
			return fmt.Errorf("start the roll: %w", err)
		}
		if m.ClusterID != b.ClusterID || m.SHA256 != b.SHA256 {
			return fmt.Errorf("start the roll: the backup at %s is not the one that was verified; another is taken when that one is 15 minutes old", m.Object)
		}
	}
	return r.applySet(ctx, v, a.Partition)
}

func (r *Reconciler) moveLeader(ctx context.Context, v *view, a plan.MoveLeader) error {
	endpoint, err := v.endpoint(a.From)
	if err != nil {
		return fmt.Errorf("move the leader: %w", err)
	}
	return r.etcd.MoveLeader(ctx, v.cluster.Key(), endpoint, a.ToID)
}

// restartMember lets one member go: by lowering the partition to it, or by
// deleting exactly the pod that the decision was made on.
func (r *Reconciler) restartMember(ctx context.Context, v *view, a plan.RestartMember) error {
	if !a.ByDeletion {
		return r.applySet(ctx, v, a.Partition)
	}
	uid := types.UID(a.PodUID)
	err := r.kube.CoreV1().Pods(v.cluster.Metadata.Namespace).Delete(ctx, a.Member, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", a.Member, err)
	}
	return nil
}
