package reconciler

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/plan"
)

// startRoll gives the StatefulSet the new template. Before an upgrade the store
// is asked once more whether the backup is still there.
func (r *Reconciler) startRoll(ctx context.Context, v *view, a plan.StartRoll) error {
	for _, purpose := range []string{a.To, plan.DowngradeTo(a.To)} {
		if err := r.backupIsThere(ctx, v, purpose); err != nil {
			return fmt.Errorf("start the roll: %w", err)
		}
	}
	return r.applySet(ctx, v, a.Partition)
}

func (r *Reconciler) moveLeader(ctx context.Context, v *view, a plan.MoveLeader) error {
	leader, err := v.target(a.From, a.FromID)
	if err != nil {
		return fmt.Errorf("move the leader: %w", err)
	}
	return r.etcd.MoveLeader(ctx, v.cluster.Key(), leader, a.ToID)
}

// restartMember lets one member go: by lowering the partition to it, or by
// deleting exactly the pod that the decision was made on.
func (r *Reconciler) restartMember(ctx context.Context, v *view, a plan.RestartMember) error {
	if !a.ByDeletion {
		return r.applySet(ctx, v, a.Partition)
	}
	return r.deletePod(ctx, v, a.Member, a.PodUID)
}
