package reconciler

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// execute carries out one action; those of a topic go on in its file. Each
// method is idempotent: that something is already so counts as done. A kind of
// action that is missing here is found by the linter.
func (e *Executor) execute(ctx context.Context, v *view, act action.Action) error {
	if err := e.lease(); err != nil {
		return err
	}
	switch a := act.(type) {
	case action.CreateRecord:
		return e.createRecord(ctx, v, a.Owner)
	case action.ClaimCluster:
		return e.claimCluster(ctx, v, a)
	case action.IssueCertificates:
		return e.issueCertificates(ctx, v)
	case action.ReissueCertificates:
		return e.widenCertificates(ctx, v, a)
	case action.ApplyObject:
		return e.applyObject(ctx, v, a)
	case action.CreateSet:
		return e.createSet(ctx, v, a)
	case action.GrowVolume:
		return e.growVolume(ctx, v, a)
	case action.RecordHoldings:
		return e.recordHoldings(ctx, v, a)
	case action.ReleaseSet:
		return e.releaseSet(ctx, v, a)
	case action.RecordFormed:
		return e.note(ctx, v, func(rec *record.Record) {
			rec.ClusterID, rec.Members, rec.BornOn = a.ClusterID, maps.Clone(a.Members), a.BornOn
		})
	case action.TakeBackup:
		return e.takeBackup(ctx, v, a)
	case action.StartRoll:
		return e.startRoll(ctx, v, a)
	case action.MoveLeader:
		return e.moveLeader(ctx, v, a)
	case action.RestartMember:
		return e.restartMember(ctx, v, a)
	case action.Compact:
		return e.compact(ctx, v, a)
	case action.Defragment:
		return e.defragment(ctx, v, a)
	case action.Disarm:
		return e.disarm(ctx, v, a)
	case action.EndRoll:
		return e.applyKept(ctx, v, a.Replicas)
	case action.BeginJoin, action.AddLearner, action.PromoteMember, action.EndJoin, action.DropLearner, action.BeginLeave, action.CancelLeave,
		action.RemoveMember, action.EndLeave, action.EndReplace, action.ResizeSet, action.DeletePod, action.DeleteVolume:
		return e.executeMembership(ctx, v, act)
	case action.Hibernate, action.Wake, action.BeginDeletion, action.Revive, action.DeleteObject, action.ForgetCluster:
		return e.executeLifecycle(ctx, v, act)
	case action.ForceSnapshot, action.RecordFlushed, action.EnableDowngrade, action.CancelDowngrade:
		return e.executeMinor(ctx, v, act)
	case action.RecordApplied:
		return e.note(ctx, v, record.Apply(a))
	case action.BeginRecovery, action.RestoreVolume, action.AdoptRecovery, action.EndRecovery, action.RefuseRecovery:
		return e.executeRecovery(ctx, v, act)
	case action.BeginRestore, action.CreateVolume, action.EndRestore:
		return e.executeRestore(ctx, v, act)
	}
	return fmt.Errorf("unknown action %T", act)
}

// again reads the record, the StatefulSet and the pods from the API server
// itself and decides again: an action is carried out only when fresh data leads
// to the very same one.
func (r *Reconciler) again(ctx context.Context, v *view, act action.Action) (*view, error) {
	fresh := *v
	live, err := r.observer.readLive(ctx, v.cluster)
	if err != nil {
		return nil, err
	}
	fresh.set = live.set
	fresh.observed.Record, fresh.observed.RecordProblem, fresh.observed.Set, fresh.observed.Pods = nil, "", nil, nil
	fresh.observeRecord(live.record)
	fresh.observeSet(live)
	if err := r.observer.aim(&fresh); err != nil {
		return nil, err
	}
	if err := fresh.observeDamage(ctx, r.observer, live); err != nil {
		return nil, err
	}
	if err := r.observer.observeRestore(ctx, &fresh); err != nil {
		return nil, err
	}
	if a, ok := act.(action.ApplyObject); ok {
		if err := r.observer.compareAgain(ctx, &fresh, live, a); err != nil {
			return nil, err
		}
	}
	p, err := r.decideFresh(ctx, &fresh)
	if err != nil {
		return nil, err
	}
	if p.Hold != nil || len(p.Steps) == 0 || !sameAction(p.Steps[0].Action, act) {
		return nil, state.ErrChanged
	}
	return &fresh, nil
}

// compareAgain compares the objects again, and reads the one that is about to be
// applied from the API server itself: the caches may not yet know that it was.
func (o *Observer) compareAgain(ctx context.Context, v *view, live *liveCluster, a action.ApplyObject) error {
	ns := v.cluster.Metadata.Namespace
	var err error
	switch a.ObjectKind {
	case "Service":
		live.services[a.Name], err = kube.FoundOrNil(o.kube.CoreV1().Services(ns).Get(ctx, a.Name, metav1.GetOptions{}))
	case "PodDisruptionBudget":
		live.budget, err = kube.FoundOrNil(o.kube.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, a.Name, metav1.GetOptions{}))
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", a.ObjectKind, a.Name, err)
	}
	return v.observeObjects(o, live)
}

// sameAction reports whether two actions are the same to the last field: their text
// names the object but not its UID.
func sameAction(a, b action.Action) bool { return reflect.DeepEqual(a, b) }

// readLive reads past the caches what a decision rests on most.
func (o *Observer) readLive(ctx context.Context, c desired.Cluster) (*liveCluster, error) {
	live, err := o.cache.read(c)
	if err != nil {
		return nil, err
	}
	ns := c.Metadata.Namespace
	live.record, err = o.kube.CoreV1().ConfigMaps(ns).Get(ctx, naming.Record(c.Metadata.Name), metav1.GetOptions{})
	if live.record, err = kube.FoundOrNil(live.record, err); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	live.set, err = o.kube.AppsV1().StatefulSets(ns).Get(ctx, c.Metadata.Name, metav1.GetOptions{})
	if live.set, err = kube.FoundOrNil(live.set, err); err != nil {
		return nil, fmt.Errorf("read the StatefulSet: %w", err)
	}
	live.pods, err = podsOf(ctx, o.kube, c)
	return live, err
}

// podsOf lists the members' pods as the API server itself has them.
func podsOf(ctx context.Context, kube kubernetes.Interface, c desired.Cluster) ([]*corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(c.Metadata.Namespace).List(ctx, metav1.ListOptions{LabelSelector: naming.LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return memberPods(c, pods), nil
}
