package reconciler

import (
	"context"

	"github.com/quorate/quorate/reconciler/plan"
)

// claimCluster writes down who looks after the cluster. Somebody who was faster
// stays the owner.
func (r *Reconciler) claimCluster(ctx context.Context, v *view, a plan.ClaimCluster) error {
	return r.tryRecord(ctx, v, func(record *Record) error {
		was := plan.Owner{}
		if owner := ownerOf(*record); owner != nil {
			was = *owner
		}
		if was != a.From && was != a.To {
			return errChanged
		}
		record.Owner = ownerRecord(a.To)
		return nil
	})
}

// ownerOf is the owner as the planner knows it.
func ownerOf(r Record) *plan.Owner {
	if r.Owner == nil {
		return nil
	}
	return &plan.Owner{Source: r.Owner.Source, Instance: r.Owner.Instance, Claim: r.Owner.Claim}
}

// ownerRecord is an owner as it is written down; nil for nobody.
func ownerRecord(o plan.Owner) *OwnerRecord {
	if o.Nobody() {
		return nil
	}
	return &OwnerRecord{Source: o.Source, Instance: o.Instance, Claim: o.Claim}
}
