package execute

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// startRoll gives the StatefulSet the new template. Before an upgrade the store
// is asked once more whether the backup is still there.
func (e *Executor) startRoll(ctx context.Context, v *observe.View, a action.StartRoll) error {
	for _, purpose := range []state.Purpose{state.ForUpgrade(a.To), state.ForDowngrade(a.To)} {
		if err := e.backupIsThere(ctx, v, purpose); err != nil {
			return fmt.Errorf("start the roll: %w", err)
		}
	}
	return e.applySet(ctx, v, a.Partition)
}

func (e *Executor) moveLeader(ctx context.Context, v *observe.View, a action.MoveLeader) error {
	leader, err := target(v, a.From, a.FromID, "move the leader")
	if err != nil {
		return err
	}
	return e.Members.MoveLeader(ctx, v.Cluster.Key(), leader, a.ToID)
}

// restartMember lets one member go: by lowering the partition to it, or by
// deleting exactly the pod that the decision was made on. How far all have come is noted
// before, so that its volume is known again.
func (e *Executor) restartMember(ctx context.Context, v *observe.View, a action.RestartMember) error {
	if err := noteFloors(ctx, e, v); err != nil {
		return fmt.Errorf("restart %s: %w", a.Member, err)
	}
	if !a.ByDeletion {
		return e.applySet(ctx, v, a.Partition)
	}
	return e.deletePod(ctx, v, a.Member, a.PodUID)
}
