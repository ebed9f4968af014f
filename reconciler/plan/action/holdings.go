package action

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
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

// Kind implements Action.
func (RecordHoldings) Kind() string { return "RecordHoldings" }

// String implements Action.
func (a RecordHoldings) String() string {
	if len(a.Volumes) == 1 {
		return "record whose data volume claim " + a.Volumes[0].Claim + " holds"
	}
	return fmt.Sprintf("record whose data %d volume claims hold", len(a.Volumes))
}

// Disruptive implements Action: no member stops.
func (RecordHoldings) Disruptive() bool { return false }

// After implements Action.
func (a RecordHoldings) After(s *situation.Situation) {
	s.Observed.Volumes = slices.Clone(s.Observed.Volumes)
	for _, h := range a.Volumes {
		if v := s.Observed.Volume(h.Member); v != nil {
			v.Holds = h.Holds
		}
	}
}

// Undo implements Action.
func (RecordHoldings) Undo(*situation.Situation) Undo { return onlyNotes() }
