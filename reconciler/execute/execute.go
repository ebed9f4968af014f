package execute

import (
	"context"
	"fmt"
	"maps"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
)

// Execute executes one action. Each method is idempotent: that something is already
// so counts as done. A kind of action that is missing here is found by the linter.
func (e *Executor) Execute(ctx context.Context, v *observe.View, act action.Action) error {
	if err := e.Lease(v.Cluster.Key()); err != nil {
		return err
	}
	switch a := act.(type) {
	case action.CreateRecord:
		return e.createRecord(ctx, v, a.Owner)
	case action.ClaimCluster:
		return e.claimCluster(ctx, v, a)
	case action.IssueCertificates:
		return issuer{e}.issue(ctx, v)
	case action.ReissueCertificates:
		return issuer{e}.reissue(ctx, v, a.Secrets)
	case action.RenewCertificates:
		return issuer{e}.reissue(ctx, v, a.Secrets)
	case action.KeepTrust:
		return issuer{e}.keepTrust(ctx, v, a)
	case action.IssueClientCertificates:
		return issuer{e}.issueClients(ctx, v, a.Secrets)
	case action.CopyCertificate:
		return copier{e}.write(ctx, v, a)
	case action.DeleteCopy:
		return copier{e}.remove(ctx, v, a)
	case action.MakeAuthorities:
		return rotator{issuer{e}}.makeAuthorities(ctx, v)
	case action.PublishTrust:
		return rotator{issuer{e}}.publishTrust(ctx, v, a)
	case action.SwitchCertificates:
		return rotator{issuer{e}}.switchCertificates(ctx, v, a)
	case action.RetireAuthorities:
		return rotator{issuer{e}}.retireAuthorities(ctx, v, a)
	case action.ApplyObject:
		return e.applyObject(ctx, v, a)
	case action.CreateSet:
		return e.createSet(ctx, v, a)
	case action.GrowVolume:
		return e.growVolume(ctx, v, a)
	case action.TryClass:
		return tryClass(ctx, e, v, a)
	case action.RecordHoldings:
		return e.recordHoldings(ctx, v, a)
	case action.ReleaseSet:
		return e.releaseSet(ctx, v, a)
	case action.RecordFormed:
		return e.note(ctx, v, func(rec *record.Record) {
			rec.ClusterID, rec.Members, rec.BornOn = a.ClusterID, maps.Clone(a.Members), a.BornOn
		})
	case action.TakeBackup:
		return snapshotter{e}.takeBackup(ctx, v, a)
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
	case action.BeginJoin:
		return e.noteIf(ctx, v, func(m *record.Record) bool { return m.BeginJoin(a, e.Now()) })
	case action.AddLearner:
		return e.addLearner(ctx, v, a)
	case action.PromoteMember:
		return e.promoteMember(ctx, v, a)
	case action.EndJoin:
		return e.noteIf(ctx, v, func(m *record.Record) bool { return m.EndJoin(a) })
	case action.DropLearner:
		return e.dropLearner(ctx, v, a)
	case action.BeginLeave:
		return e.noteIf(ctx, v, func(m *record.Record) bool { return m.BeginLeave(a, e.Now()) })
	case action.CancelLeave:
		return e.cancelLeave(ctx, v, a)
	case action.RemoveMember:
		return e.removeMember(ctx, v, a)
	case action.EndLeave:
		return e.endLeave(ctx, v, a)
	case action.EndReplace:
		return e.noteIf(ctx, v, func(m *record.Record) bool { return m.EndReplace(a) })
	case action.ResizeSet:
		return e.resizeSet(ctx, v, a)
	case action.DeletePod:
		return e.deleteIdlePod(ctx, v, a)
	case action.DeleteVolume:
		return e.deleteVolume(ctx, v, a)
	case action.Hibernate:
		return e.note(ctx, v, func(rec *record.Record) {
			rec.Hibernated = true
			rec.Saw(highest(v.Observed.Rounds))
			rec.NoteFloors(v.Observed.Round(), e.Now())
		})
	case action.Wake:
		return e.note(ctx, v, func(rec *record.Record) { rec.Hibernated = false })
	case action.BeginDeletion:
		return e.beginDeletion(ctx, v, a)
	case action.Revive:
		return e.note(ctx, v, func(rec *record.Record) { rec.Deleted = false })
	case action.DeleteObject:
		return e.deleteObject(ctx, v, a)
	case action.ForgetCluster:
		return e.forgetCluster(ctx, v)
	case action.ForceSnapshot:
		return e.nudge(ctx, v, a)
	case action.RecordFlushed:
		return e.note(ctx, v, func(rec *record.Record) { rec.BornOn, rec.Flushed, rec.Nudged = a.BornOn, maps.Clone(a.Members), nil })
	case action.EnableDowngrade:
		return e.enableDowngrade(ctx, v, a)
	case action.CancelDowngrade:
		return e.cancelDowngrade(ctx, v, a)
	case action.BeginRecovery:
		return e.beginRecovery(ctx, v, a)
	case action.RestoreVolume:
		return e.restoreVolume(ctx, v, a)
	case action.AdoptRecovery:
		return adoptRecovery(ctx, e, v, a)
	case action.EndRecovery:
		return e.endRecovery(ctx, v, a)
	case action.RefuseRecovery:
		return e.note(ctx, v, func(m *record.Record) { m.RefuseRecovery(a.OneShot) })
	case action.BeginRestore:
		return e.beginRestore(ctx, v, a)
	case action.CreateVolume:
		return e.createVolume(ctx, v, a)
	case action.EndRestore:
		return e.noteIf(ctx, v, func(m *record.Record) bool { return m.EndRestore(a, e.Now()) })
	case action.MoveMember:
		return moveMember(ctx, e, v, a)
	case action.ChangeAuth:
		return changeAuth(ctx, e, v, a)
	case action.NoteTimes:
		return e.note(ctx, v, func(rec *record.Record) { rec.NoteTimes(a, e.Now()) })
	case action.RecordApplied:
		return e.note(ctx, v, func(rec *record.Record) {
			record.Apply(a, v.Cluster.Accepted, e.ServerNow())(rec)
			rec.NoteFloors(v.Observed.Round(), e.Now())
		})
	}
	return fmt.Errorf("unknown action %T", act)
}
