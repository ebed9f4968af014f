package state

import (
	"time"

	"github.com/quorate/quorate/schema"
)

// Own reports whether a volume is known to hold what a member of this cluster has left
// on it, or nothing: there is no volume behind a claim that is not bound.
func (v *Volume) Own() bool {
	return (v.Holds != "" && v.Holds != HoldsForeign) || !v.Bound
}

// Anew reports whether a claim was made and has never had a volume; nil is no claim.
func (v *Volume) Anew() bool { return v != nil && v.Pending && !v.Terminating }

// Volume is the volume claim of one member, and the volume behind it.
type Volume struct {
	// Claim is the name of the claim, for example data-orders-2.
	Claim string
	// UID of the claim.
	UID string
	// Created is when the claim was made; zero when unknown.
	Created time.Time
	// Member that mounts it, and its ordinal; "" and -1 for a claim whose name is
	// not one that a member's claim has.
	Member  string
	Ordinal int32
	// Size that is asked for, in bytes.
	Size int64
	// Capacity that the volume has, in bytes; 0 until there is one.
	Capacity int64
	// Class is the name of the storage class; "" for none, or for a default that
	// Kubernetes has not filled in yet.
	Class string
	// Holds is whose data quorate has seen on the volume: the ID of a member in
	// hexadecimal, HoldsForeign, or "" where none was seen. It is on the
	// claim, and goes with it.
	Holds string
	// Keeps is the ID of the lost cluster whose data a recovery has put aside on the volume;
	// "" for none, also once a person has let that go. It is on the claim, and goes with it.
	Keeps string
	// Bound says that there is a volume behind the claim, and Pending that there never was one.
	Bound, Pending bool
	// Terminating says that the claim is deleted as soon as no pod uses it, GoingSince since
	// when that is asked for, and Finalizers what else it waits for.
	Terminating bool
	GoingSince  time.Time
	Finalizers  string
	// Growing is how far a growth is, in Kubernetes' words, and since when.
	Growing      string
	GrowingSince time.Time
	// NotExpandable is why the volume cannot grow; only read when it should.
	NotExpandable string
	// Trouble is why the claim has no volume, or no longer has it, or why the
	// volume does not grow, in Kubernetes' words; empty while all is well.
	Trouble string
}

// HoldsForeign is what a volume holds that is not a member's of this cluster.
const HoldsForeign = "foreign"

// Volume returns the volume of the member, or nil.
func (o *Observed) Volume(member string) *Volume {
	for i := range o.Volumes {
		if o.Volumes[i].Member == member {
			return &o.Volumes[i]
		}
	}
	return nil
}

// StorageClass is the storage class that a spec names, or "".
func StorageClass(storage schema.StorageSpec) string {
	if storage.StorageClassName == nil {
		return ""
	}
	return *storage.StorageClassName
}
