package situation

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/state"
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

// DefragmentReason is why the member needs defragmentation, none where it must
// not be: then a warning tells it, and nothing else waits for it.
func (s *Situation) DefragmentReason(m state.Member) Remark {
	if why, _ := s.UnsafeToDefragment(m); why != "" {
		return Remark{}
	}
	return s.defragmentReason(m)
}

// defragmentReason is why the member needs defragmentation.
func (s *Situation) defragmentReason(m state.Member) Remark {
	spec := s.Desired.Spec.Defragmentation
	if spec.Mode == schema.DefragmentationNever || m.Problem != "" || m.DBSize <= 0 {
		return Remark{}
	}
	last := s.Observed.Record.Defragmented[m.Name]
	if scheduled := s.scheduledAt(spec); last.Before(scheduled) {
		return Remark{Text: "by spec.defragmentation.schedule: " + scheduled.Format(OpeningLayout)}
	}
	if !s.WindowOpen() || s.Now.Sub(last) < defragmentRest {
		return Remark{}
	}
	free := m.DBSize - m.DBInUse
	switch {
	case m.DBInUse <= 0:
		return Remark{} // unknown
	case free > muchFree:
		return Remark{Text: "much of its file is free", Detail: state.SizeText(free) + " of " + state.SizeText(m.DBSize)}
	case s.NearQuota(m) && WorthDefragmenting(m):
		return s.Reclaimable(m)
	}
	return Remark{}
}

// scheduledAt is the last time of the schedule that is not too long ago, in its zone,
// or the zero time.
func (s *Situation) scheduledAt(spec schema.DefragmentationSpec) time.Time {
	schedule, err := schema.ParseSchedule(spec.Schedule, spec.TimeZone)
	zone, errZone := time.LoadLocation(spec.TimeZone)
	if err != nil || errZone != nil {
		return time.Time{} // there is none, or validation reports what is wrong with it
	}
	var last time.Time
	for next := schedule.Next(s.Now.Add(-defragmentLate)); !next.IsZero() && !next.After(s.Now); next = schedule.Next(next) {
		last = next.In(zone)
	}
	return last
}

// NotDefragmented warns of members that a defragmentation is due for and that must
// not have one.
func (s *Situation) NotDefragmented() []Remark {
	if !s.Formed() || s.Observed.Round() == nil {
		return nil
	}
	var warnings []Remark
	for _, m := range s.Observed.Round().Members {
		reason := s.defragmentReason(m)
		if unsafe, do := s.UnsafeToDefragment(m); unsafe != "" && m.Version != "" && !reason.None() {
			text := fmt.Sprintf("%s is not defragmented, although %s: %s", m.Name, reason.Text, unsafe)
			if do != upgradeFirst {
				text += "; " + do
			}
			warnings = append(warnings, Remark{Member: m.Name, Text: text, Detail: reason.Detail})
		}
	}
	return warnings
}
