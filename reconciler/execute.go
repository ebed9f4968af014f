package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan"
)

// errChanged says that the world moved between the decision and the action.
var errChanged = errors.New("the cluster changed between the decision and the action; quorate looks again")

// execute carries out one action; those of a topic go on in its file. Each
// method is idempotent: that something is already so counts as done. A kind of
// action that is missing here is found by the linter.
func (r *Reconciler) execute(ctx context.Context, v *view, action plan.Action) error {
	if err := r.options.Lease(); err != nil {
		return err
	}
	switch a := action.(type) {
	case plan.CreateRecord:
		return r.createRecord(ctx, v, a.Owner)
	case plan.ClaimCluster:
		return r.claimCluster(ctx, v, a)
	case plan.IssueCertificates:
		return r.issueCertificates(ctx, v)
	case plan.WidenCertificates:
		return r.widenCertificates(ctx, v, a)
	case plan.ApplyObject:
		return r.applyObject(ctx, v, a)
	case plan.CreateSet:
		return r.createSet(ctx, v, a)
	case plan.GrowVolume:
		return r.growVolume(ctx, v, a)
	case plan.RecordHoldings:
		return r.recordHoldings(ctx, v, a)
	case plan.ReleaseSet:
		return r.releaseSet(ctx, v, a)
	case plan.RecordFormed:
		return r.updateRecord(ctx, v, func(record *Record) {
			record.ClusterID, record.Members, record.BornOn = a.ClusterID, maps.Clone(a.Members), a.BornOn
		})
	case plan.TakeBackup:
		return r.takeBackup(ctx, v, a)
	case plan.StartRoll:
		return r.startRoll(ctx, v, a)
	case plan.MoveLeader:
		return r.moveLeader(ctx, v, a)
	case plan.RestartMember:
		return r.restartMember(ctx, v, a)
	case plan.Compact:
		return r.compact(ctx, v, a)
	case plan.Defragment:
		return r.defragment(ctx, v, a)
	case plan.Disarm:
		return r.disarm(ctx, v, a)
	case plan.EndRoll:
		return r.applyKept(ctx, v, a.Replicas)
	case plan.BeginJoin, plan.AddLearner, plan.PromoteMember, plan.EndJoin, plan.DropLearner, plan.BeginLeave, plan.CancelLeave,
		plan.RemoveMember, plan.EndLeave, plan.EndReplace, plan.ResizeSet, plan.DeletePod, plan.DeleteVolume:
		return r.executeMembership(ctx, v, action)
	case plan.Hibernate, plan.Wake, plan.BeginDeletion, plan.Revive, plan.DeleteObject, plan.ForgetCluster:
		return r.executeLifecycle(ctx, v, action)
	case plan.Nudge, plan.RecordFlushed, plan.EnableDowngrade, plan.CancelDowngrade:
		return r.executeMinor(ctx, v, action)
	case plan.RecordApplied:
		return r.updateRecord(ctx, v, recordApplied(a))
	case plan.BeginRecovery, plan.RestoreVolume, plan.AdoptRecovery, plan.EndRecovery, plan.RefuseRecovery:
		return r.executeRecovery(ctx, v, action)
	case plan.BeginRestore, plan.CreateVolume, plan.EndRestore:
		return r.executeRestore(ctx, v, action)
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
	fresh.observeSet(live)
	if err := r.aim(&fresh); err != nil {
		return nil, err
	}
	if err := fresh.observeDamage(ctx, r, live); err != nil {
		return nil, err
	}
	if err := r.observeRestore(ctx, &fresh); err != nil {
		return nil, err
	}
	if a, ok := action.(plan.ApplyObject); ok {
		if err := r.compareAgain(ctx, &fresh, live, a); err != nil {
			return nil, err
		}
	}
	p, err := r.plan(ctx, &fresh, true)
	if err != nil {
		return nil, err
	}
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
	live.pods, err = r.podsOf(ctx, c)
	return live, err
}

// podsOf lists the members' pods as the API server itself has them.
func (r *Reconciler) podsOf(ctx context.Context, c Cluster) ([]*corev1.Pod, error) {
	list, err := r.kube.CoreV1().Pods(c.Metadata.Namespace).List(ctx, metav1.ListOptions{LabelSelector: LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return memberPods(c, pods), nil
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
