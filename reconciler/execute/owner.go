package execute

import (
	"context"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// claimCluster records the owner of the cluster. An owner that was faster stays.
func (e *Executor) claimCluster(ctx context.Context, v *observe.View, a action.ClaimCluster) error {
	_, err := e.Records.Update(ctx, v.Cluster.EtcdCluster, state.Owner{}, func(rec *record.Record) error {
		was := state.Owner{}
		if owner := record.OwnerOf(*rec); owner != nil {
			was = *owner
		}
		if was != a.From && was != a.To {
			return state.ErrChanged
		}
		rec.Owner = record.OwnerRecord(a.To)
		return nil
	})
	return err
}
