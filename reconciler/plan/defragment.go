package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/schema"
)

const (
	// muchFree is how much of its file a database may not need before the file is
	// made smaller, in bytes.
	muchFree = 200 << 20
	// defragmentRest is the least time between two defragmentations of one member
	// because of a threshold: what fills up again at once is not helped by more.
	defragmentRest = time.Hour
	// defragmentLate is how long after its time a scheduled defragmentation may
	// begin: one that was missed in the night is not made good by day.
	defragmentLate = time.Hour
)

// defragment makes files smaller before they are a trouble: by thresholds inside
// the maintenance windows, and on the schedule of the file. It comes last, when
// nothing else is to be done, and asks for the gate twice before each member.
// When a member's last time was is in the record.
func defragment(s *situation) verdict {
	if !s.formed() || s.o.Set == nil || s.rolling() || s.o.round() == nil {
		return pass()
	}
	if s.find(func(m Member) bool { return s.dueSafely(m) != "" }) == nil {
		return pass()
	}
	if v := s.twice(); !v.silent() {
		return v
	}
	return s.defragmentOne(s.dueSafely)
}

// dueSafely is why the member is to be defragmented, "" where its release must
// not be: then a warning says so, and nothing else waits for it.
func (s *situation) dueSafely(m Member) string {
	if s.unsafe(m) != "" {
		return ""
	}
	return s.due(m)
}

// due is why the member is to be defragmented, or "".
func (s *situation) due(m Member) string {
	spec := s.d.Spec.Defragmentation
	if spec.Mode == schema.DefragmentationNever || m.Problem != "" || m.DBSize <= 0 {
		return ""
	}
	last := s.o.Record.Defragmented[m.Name]
	if strike := s.strike(spec); last.Before(strike) {
		return "spec.defragmentation.schedule says so: " + strike.Format(openingLayout)
	}
	if !s.windowOpen() || s.now.Sub(last) < defragmentRest {
		return ""
	}
	free := m.DBSize - m.DBInUse
	switch {
	case m.DBInUse <= 0:
		return "" // nobody knows
	case free > muchFree:
		return fmt.Sprintf("%s of its file of %s are free", sizeText(free), sizeText(m.DBSize))
	case s.tight(m) && spare(m):
		return fmt.Sprintf("its file has %s of a quota of %s, and %s of that can be given back", sizeText(m.DBSize), sizeText(s.quotaOf(m)), sizeText(free))
	}
	return ""
}

// strike is the last time of the schedule that is not too long ago, in its zone,
// or the zero time.
func (s *situation) strike(spec schema.DefragmentationSpec) time.Time {
	schedule, err := schema.ParseSchedule(spec.Schedule, spec.TimeZone)
	zone, errZone := time.LoadLocation(spec.TimeZone)
	if err != nil || errZone != nil {
		return time.Time{} // there is none, or validation says what is wrong with it
	}
	var last time.Time
	for next := schedule.Next(s.now.Add(-defragmentLate)); !next.IsZero() && !next.After(s.now); next = schedule.Next(next) {
		last = next.In(zone)
	}
	return last
}

// notDefragmented warns of members that a defragmentation is due for and that must
// not have one.
func (s *situation) notDefragmented() []string {
	if !s.formed() || s.o.round() == nil {
		return nil
	}
	var texts []string
	for _, m := range s.o.round().Members {
		if unsafe := s.unsafe(m); unsafe != "" && m.Version != "" && s.due(m) != "" {
			texts = append(texts, fmt.Sprintf("%s is not defragmented (%s): %s", m.Name, s.due(m), unsafe))
		}
	}
	return texts
}
