package plan

import (
	"fmt"
	"slices"
)

// RecordHoldings writes on volume claims what the volumes hold.
type RecordHoldings struct{ Volumes []Holding }

// Holding is what one volume holds.
type Holding struct {
	// Claim and its UID, and the pod that has the volume.
	Claim, UID     string
	Member, PodUID string
	// Holds is as in Volume.
	Holds string
}

func (RecordHoldings) isAction() {}

// String implements Action.
func (a RecordHoldings) String() string {
	if len(a.Volumes) == 1 {
		return "record whose data volume claim " + a.Volumes[0].Claim + " holds"
	}
	return fmt.Sprintf("record whose data %d volume claims hold", len(a.Volumes))
}

// Disruptive implements Action: no member stops.
func (RecordHoldings) Disruptive() bool { return false }

// after implements Action.
func (a RecordHoldings) after(s *situation) {
	s.o.Volumes = slices.Clone(s.o.Volumes)
	for _, h := range a.Volumes {
		if v := s.o.volume(h.Member); v != nil {
			v.Holds = h.Holds
		}
	}
}

// undo implements Action.
func (RecordHoldings) undo(*situation) string { return onlyNotes }
