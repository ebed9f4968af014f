package action

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// GrowVolume asks for a larger volume. The member keeps running.
type GrowVolume struct {
	Claim, UID string
	// Member whose volume it is.
	Member string
	// From and To are in bytes.
	From, To int64
}

func (GrowVolume) isAction() {}

// Kind implements Action.
func (GrowVolume) Kind() string { return "GrowVolume" }

// String implements Action.
func (a GrowVolume) String() string {
	return fmt.Sprintf("grow the volume of %s %s → %s", a.Member, state.SizeText(a.From), state.SizeText(a.To))
}

// Disruptive implements Action: no member stops.
func (GrowVolume) Disruptive() bool { return false }

// After implements Action.
func (a GrowVolume) After(s *situation.Situation) {
	s.Observed.Volumes = slices.Clone(s.Observed.Volumes)
	if v := s.Observed.Volume(a.Member); v != nil {
		v.Size, v.Capacity = a.To, a.To
	}
}

// Undo implements Action.
func (GrowVolume) Undo(*situation.Situation) Undo {
	return final("no volume shrinks; a larger one does no harm")
}

// TryClass makes a volume of a storage class, has a pod mount it, and lets it go.
type TryClass struct {
	Class string
	// Size in bytes.
	Size int64
}

func (TryClass) isAction() {}

// Kind implements Action.
func (TryClass) Kind() string { return "TryClass" }

// String implements Action.
func (a TryClass) String() string {
	return fmt.Sprintf("try class %s with a volume of %s", a.Class, state.SizeText(a.Size))
}

// Disruptive implements Action: no member stops.
func (TryClass) Disruptive() bool { return false }

// After implements Action.
func (TryClass) After(s *situation.Situation) { s.Observed.Trial = state.Trial{State: state.TrialDone} }

// Undo implements Action.
func (TryClass) Undo(*situation.Situation) Undo {
	return harmless("the volume belongs to no member, and goes by itself")
}

// ReleaseSet deletes the StatefulSet and leaves its pods running, so that one
// with other claims can take them over: Kubernetes changes none in place.
type ReleaseSet struct {
	SetUID string
	// PodUIDs that stay, by their UIDs in the order of their ordinals: with another
	// pod among them it is decided again.
	PodUIDs string
}

func (ReleaseSet) isAction() {}

// Kind implements Action.
func (ReleaseSet) Kind() string { return "ReleaseSet" }

// String implements Action.
func (ReleaseSet) String() string { return "release the pods from the StatefulSet" }

// Disruptive implements Action: no member stops.
func (ReleaseSet) Disruptive() bool { return false }

// After implements Action.
func (ReleaseSet) After(s *situation.Situation) { s.Observed.Set = nil }

// Undo implements Action.
func (ReleaseSet) Undo(*situation.Situation) Undo {
	return harmless("the pods keep running, and the next step creates a StatefulSet for them")
}
