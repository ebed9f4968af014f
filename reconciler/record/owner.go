package record

import (
	"github.com/quorate/quorate/reconciler/state"
)

// OwnerOf is the owner as the planner knows it.
func OwnerOf(r Record) *state.Owner {
	if r.Owner == nil {
		return nil
	}
	return &state.Owner{Source: r.Owner.Source, Instance: r.Owner.Instance, Claim: r.Owner.Claim}
}

// OwnerRecord is an owner as it is recorded; nil for none.
func OwnerRecord(o state.Owner) *Owner {
	if o.Nobody() {
		return nil
	}
	return &Owner{Source: o.Source, Instance: o.Instance, Claim: o.Claim}
}
