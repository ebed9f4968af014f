package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
)

// onTheWay reports whether a roll to a template leads to what Git says: it is that, or
// one of the stops before it.
func (w *world) onTheWay(to int8) bool {
	last, at := variants[w.ask.variant].minor, variants[to].minor
	switch {
	case to == w.ask.variant:
		return true
	case to == v36Flush:
		return last == 7 && w.oldestMinor() <= 6
	case !w.ask.stepwise:
		return false
	case to == v37:
		return last == 6 && (w.anyRuns(v37Early) || w.anyRuns(v37)) // it must be 3.7.3 to go down
	case to == v35 || to == v36:
		return w.oldestMinor() <= at && at < last
	}
	return false
}

// oldestMinor is that of the pods.
func (w *world) oldestMinor() int8 {
	oldest := int8(99)
	for i := range w.pods {
		if w.pods[i].state != podAbsent {
			oldest = min(oldest, variants[w.pods[i].template].minor)
		}
	}
	return oldest
}

// anyRuns reports whether a member runs a variant.
func (w *world) anyRuns(v int8) bool {
	for i := range w.pods {
		if w.pods[i].template == v && w.runs(int8(i)) {
			return true
		}
	}
	return false
}

// judgeFlushed wants no log to hold what the next minor cannot read.
func judgeFlushed(w *world, a action.RecordFlushed) string {
	for name, id := range a.Members {
		switch i := ordinal8(name); {
		case w.seats[i].id == 0 || memberIDs[w.seats[i].id] != id:
			return fmt.Sprintf("I14: member %d is noted as flushed under an ID that is not its own", i)
		case w.claims[i].raw:
			return fmt.Sprintf("I14: member %d is noted as flushed, and its log has entries of 3.5", i)
		}
	}
	return ""
}

// judgeCompact wants history to be dropped only where that frees space that is
// needed, and after a backup that has it.
func judgeCompact(w *world, s sight) string {
	b := w.record.backup
	switch laden := s.second.anyLaden() || s.first.anyLaden(); {
	case !s.second.alarm || !laden:
		return "I25: drops history although nobody needs the room"
	case w.ask.skip:
		return ""
	case !b.there || b.foreign || word(b.purpose) != "compaction" || w.clock-b.at > 900:
		return "I11: drops history without a backup that has it"
	}
	return ""
}

// anyLaden reports whether a database needs its room for what it holds.
func (w *world) anyLaden() bool {
	for i := range w.claims {
		if w.claims[i].laden {
			return true
		}
	}
	return false
}
