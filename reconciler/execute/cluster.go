package execute

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// createRecord creates the record with a fresh token. It never touches a record
// that exists.
func (e *Executor) createRecord(ctx context.Context, v *observe.View, owner state.Owner) error {
	c := v.Cluster.EtcdCluster
	token, err := naming.Random(8)
	if err != nil {
		return fmt.Errorf("create the record: %w", err)
	}
	rec := record.New(c.Metadata.Name + "-" + token)
	rec.Founders = c.Spec.Replicas
	rec.Owner = record.OwnerRecord(owner)
	return e.Records.Create(ctx, c, rec)
}

// note changes the cluster's record.
func (e *Executor) note(ctx context.Context, v *observe.View, change func(*record.Record)) error {
	_, err := e.Records.Update(ctx, v.Cluster.EtcdCluster, v.Desired.Owner, func(rec *record.Record) error {
		change(rec)
		return nil
	})
	return err
}

// noteIf changes the cluster's record where change finds what it rests on; where it does
// not, it returns false and the record stays.
func (e *Executor) noteIf(ctx context.Context, v *observe.View, change func(*record.Record) bool) error {
	_, err := e.updateIf(ctx, v, change)
	return err
}

// updateIf is noteIf that returns what the record has become.
func (e *Executor) updateIf(ctx context.Context, v *observe.View, change func(*record.Record) bool) (record.Record, error) {
	return e.Records.Update(ctx, v.Cluster.EtcdCluster, v.Desired.Owner, func(rec *record.Record) error {
		if !change(rec) {
			return state.ErrChanged
		}
		return nil
	})
}

// applyObject makes one object what is wanted.
func (e *Executor) applyObject(ctx context.Context, v *observe.View, a action.ApplyObject) error {
	ns := v.Cluster.Metadata.Namespace
	m, err := v.Manifests()
	switch {
	case err != nil:
		return err
	case a.ObjectKind == "Service" && a.Name == *m.Headless.Name:
		return apply(ctx, e, v, a, e.Kube.CoreV1().Services(ns), m.Headless)
	case a.ObjectKind == "Service" && a.Name == *m.Client.Name:
		return apply(ctx, e, v, a, e.Kube.CoreV1().Services(ns), m.Client)
	case a.ObjectKind == "PodDisruptionBudget":
		return apply(ctx, e, v, a, e.Kube.PolicyV1().PodDisruptionBudgets(ns), m.PDB)
	case a.ObjectKind == "StatefulSet":
		return e.applyKept(ctx, v, observe.Partition(v.Set)) // reverts what was changed out of band
	}
	return fmt.Errorf("apply %s %s: quorate keeps no such object", a.ObjectKind, a.Name)
}

// apply applies one object, and notes what the API server has made of it.
func apply[L drift.LiveObject, W any](ctx context.Context, e *Executor, v *observe.View, a action.ApplyObject, client kube.Client[L, W], want W) error {
	answer, err := kube.Apply(ctx, client, v.Cluster.EtcdCluster, a.Name, want)
	if err != nil {
		return kube.ApplyError(a.ObjectKind, a.Name, err)
	}
	d, err := drift.Whole(answer, want)
	if err != nil {
		return err
	}
	e.answered(v, a.ObjectKind, a.Name, d)
	return nil
}

// applyKept applies the StatefulSet with the given partition, and keeps the
// template that it has: only a roll may change that, behind its gates.
func (e *Executor) applyKept(ctx context.Context, v *observe.View, partition int32) error {
	keep, err := v.KeepTemplate()
	if err != nil {
		return err
	}
	return e.applySetAs(ctx, v, keep, observe.Replicas(v.Set), partition)
}

// applySet applies the StatefulSet with the given partition, and as many pods as it has.
func (e *Executor) applySet(ctx context.Context, v *observe.View, partition int32) error {
	m, err := v.Manifests()
	if err != nil {
		return err
	}
	return e.applySetAs(ctx, v, *m.StatefulSet, observe.Replicas(v.Set), partition)
}

// applySetAs applies a variant of the StatefulSet with so many pods, and removes what others have
// added to it. Only CreateSet and ResizeSet change how many pods there are, because only their rules ask whose
// those are. Where one exists, its UID and version must be those that the
// decision was made on.
func (e *Executor) applySetAs(ctx context.Context, v *observe.View, want appsv1ac.StatefulSetApplyConfiguration, replicas, partition int32) error {
	meta, spec := *want.ObjectMetaApplyConfiguration, *want.Spec
	want.ObjectMetaApplyConfiguration, want.Spec = &meta, &spec
	strategy, rolling := *spec.UpdateStrategy, *spec.UpdateStrategy.RollingUpdate
	spec.Replicas, rolling.Partition, strategy.RollingUpdate, spec.UpdateStrategy = &replicas, &partition, &rolling, &strategy
	sets := e.Kube.AppsV1().StatefulSets(*want.Namespace)
	if v.Set != nil {
		if err := e.sameRevision(ctx, v, want); err != nil {
			return err
		}
		if err := e.keepsVolumes(ctx, v, want); err != nil {
			return err
		}
		// Additions are what the full desired state does not name: a template that is kept
		// lacks what was changed in it, and that must not go.
		m, err := v.Manifests()
		if err != nil {
			return err
		}
		live, err := kube.OwnAdditions(ctx, sets, v.Set, m.StatefulSet)
		if err != nil {
			return kube.ApplyError("StatefulSet", *want.Name, err)
		}
		want.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	}
	options := kube.ApplyOptions()
	options.Force = v.Set != nil // what came in between is not quorate's
	answer, err := sets.Apply(ctx, &want, options)
	if err != nil {
		return kube.ApplyError("StatefulSet", *want.Name, err)
	}
	template, d, err := drift.StatefulSet(answer, &want)
	if err != nil {
		return err
	}
	e.answered(v, "StatefulSet", *want.Name, d.And(template))
	return nil
}

// sameRevision fails where a write that lets pods go would be another revision, too: a policy
// or webhook that has come or gone makes something else of the same template, and the controller
// would restart every member at or above the partition. So the API server is asked first what it
// would store. Where that is another template, it is stored with the partition above all members,
// and what is to restart is decided again.
func (e *Executor) sameRevision(ctx context.Context, v *observe.View, want appsv1ac.StatefulSetApplyConfiguration) error {
	hash := v.Set.Spec.Template.Annotations[naming.AnnotationTemplateHash]
	if *want.Spec.UpdateStrategy.RollingUpdate.Partition >= *want.Spec.Replicas || want.Spec.Template.Annotations[naming.AnnotationTemplateHash] != hash {
		return nil // nobody goes, or those that do go for another template
	}
	would, err := e.wouldStore(ctx, want)
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(would.Spec.Template, v.Set.Spec.Template) {
		return nil
	}
	spec, rolling, replicas := *want.Spec, *want.Spec.UpdateStrategy, observe.Replicas(v.Set)
	want.Spec, spec.UpdateStrategy, spec.Replicas = &spec, &rolling, &replicas
	rolling.RollingUpdate = appsv1ac.RollingUpdateStatefulSetStrategy().WithPartition(replicas)
	want.WithUID(v.Set.UID).WithResourceVersion(v.Set.ResourceVersion)
	if _, err := e.Kube.AppsV1().StatefulSets(*want.Namespace).Apply(ctx, &want, kube.ApplyOptions()); err != nil {
		return kube.ApplyError("StatefulSet", *want.Name, err)
	}
	return fmt.Errorf("apply StatefulSet %s: its pod template is no longer stored as it was, because a policy or webhook has come or gone, or makes another template of each write, "+
		"and with it every finished member would restart at once; the partition is back above all of them: %w", *want.Name, state.ErrChanged)
}

// keepsVolumes fails where pods are to go, and a policy or webhook would have Kubernetes delete
// their claims with them. Which claims go is quorate's to say, by Git, one by one.
func (e *Executor) keepsVolumes(ctx context.Context, v *observe.View, want appsv1ac.StatefulSetApplyConfiguration) error {
	if *want.Spec.Replicas >= observe.Replicas(v.Set) {
		return nil
	}
	would, err := e.wouldStore(ctx, want)
	if err != nil {
		return err
	}
	if p := would.Spec.PersistentVolumeClaimRetentionPolicy; p != nil && p.WhenScaled != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		return fmt.Errorf("apply StatefulSet %s with %d pods: a policy or webhook stores persistentVolumeClaimRetentionPolicy.whenScaled as %s, so that Kubernetes would delete the volumes of the pods that go; "+
			"exempt the StatefulSet from it (kubectl get mutatingadmissionpolicies,mutatingwebhookconfigurations)", *want.Name, *want.Spec.Replicas, p.WhenScaled)
	}
	return nil
}

// wouldStore asks the API server what it would store of the StatefulSet.
func (e *Executor) wouldStore(ctx context.Context, want appsv1ac.StatefulSetApplyConfiguration) (*appsv1.StatefulSet, error) {
	options := kube.ApplyOptions()
	options.DryRun = []string{metav1.DryRunAll}
	would, err := e.Kube.AppsV1().StatefulSets(*want.Namespace).Apply(ctx, &want, options)
	if err != nil {
		return nil, kube.ApplyError("StatefulSet", *want.Name, err)
	}
	return would, nil
}

// answered notes that an object was taken, and how it differs from what was applied.
func (e *Executor) answered(v *observe.View, kind, name string, d drift.Drift) {
	key, object := v.Cluster.Key(), kind+"/"+name
	e.Fights.Taken(key, object)
	e.Fights.Answered(key, object, d, e.Now())
}
