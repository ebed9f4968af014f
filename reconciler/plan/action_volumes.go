package plan

import (
	"fmt"
	"slices"
)

// GrowVolume asks for a larger volume. The member goes on running.
type GrowVolume struct {
	Claim, UID string
	// Member whose volume it is.
	Member string
	// From and To are in bytes.
	From, To int64
}

func (GrowVolume) isAction() {}

// String implements Action.
func (a GrowVolume) String() string {
	return fmt.Sprintf("grow the volume of %s %s → %s", a.Member, sizeText(a.From), sizeText(a.To))
}

// Disruptive implements Action: no member stops.
func (GrowVolume) Disruptive() bool { return false }

// after implements Action.
func (a GrowVolume) after(s *situation) {
	s.o.Volumes = slices.Clone(s.o.Volumes)
	if v := s.o.volume(a.Member); v != nil {
		v.Size, v.Capacity = a.To, a.To
	}
}

// undo implements Action.
func (GrowVolume) undo(*situation) string {
	return final + ": no volume shrinks; a larger one does no harm"
}

// ReleaseSet deletes the StatefulSet and leaves its pods running, so that one
// with other claims can take them over: Kubernetes changes none in place.
type ReleaseSet struct {
	SetUID string
	// Pods that stay, by their UIDs in the order of their ordinals: with another
	// pod among them the decision is made anew.
	Pods string
}

func (ReleaseSet) isAction() {}

// String implements Action.
func (ReleaseSet) String() string { return "release the pods from the StatefulSet" }

// Disruptive implements Action: no member stops.
func (ReleaseSet) Disruptive() bool { return false }

// after implements Action.
func (ReleaseSet) after(s *situation) { s.o.Set = nil }

// undo implements Action.
func (ReleaseSet) undo(*situation) string {
	return harmless + ": the pods go on, and the next step makes a StatefulSet for them"
}
