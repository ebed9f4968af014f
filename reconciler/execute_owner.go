package reconciler

import (
	"context"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// claimCluster writes down who looks after the cluster. Somebody who was faster
// stays the owner.
func (e *Executor) claimCluster(ctx context.Context, v *view, a action.ClaimCluster) error {
	_, err := e.records.Update(ctx, v.cluster.EtcdCluster, state.Owner{}, func(record *Record) error {
		was := state.Owner{}
		if owner := ownerOf(*record); owner != nil {
			was = *owner
		}
		if was != a.From && was != a.To {
			return state.ErrChanged
		}
		record.Owner = ownerRecord(a.To)
		return nil
	})
	return err
}

// ownerOf is the owner as the planner knows it.
func ownerOf(r Record) *state.Owner {
	if r.Owner == nil {
		return nil
	}
	return &state.Owner{Source: r.Owner.Source, Instance: r.Owner.Instance, Claim: r.Owner.Claim}
}

// ownerRecord is an owner as it is written down; nil for nobody.
func ownerRecord(o state.Owner) *OwnerRecord {
	if o.Nobody() {
		return nil
	}
	return &OwnerRecord{Source: o.Source, Instance: o.Instance, Claim: o.Claim}
}
