package execute

import (
	"context"
	"fmt"
	"maps"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
)

// Execute carries out one action; those of a topic go on in its file. Each
// method is idempotent: that something is already so counts as done. A kind of
// action that is missing here is found by the linter.
func (e *Executor) Execute(ctx context.Context, v *observe.View, act action.Action) error {
	if err := e.Lease(); err != nil {
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
