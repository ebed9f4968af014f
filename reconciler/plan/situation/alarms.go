package situation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/capacity"
	"github.com/quorate/quorate/schema/release"
)

// Compactable reports whether there is history left to drop: by the last round that
// compared the data, and by the record. Members do not tell of a compaction that
// no write has followed: their hash at that revision is the one from before it.
func (s *Situation) Compactable() bool {
	l := s.Observed.Round().Leader()
	for i := len(s.Observed.Rounds) - 1; i >= 0; i-- {
		if r := &s.Observed.Rounds[i]; r.Deep {
			m := r.Member(l.Name)
			return m != nil && l.Revision > max(m.CompactRevision, 1)
		}
	}
	return false
}

// SizeIsOld reports whether what the member needs of its file was counted before the
// last compaction took effect: etcd counts it again with a write, and under the
// alarm there is none.
func (s *Situation) SizeIsOld(m state.Member) bool {
	c := s.Observed.Record.Compacted
	return c != nil && s.Observed.Record.Defragmented[m.Name].Before(c.At)
}

// FindMember is the first member of which something is true, or nil.
func (s *Situation) FindMember(is func(state.Member) bool) *state.Member {
	r := s.Observed.Round()
	for i := range r.Members {
		if is(r.Members[i]) {
			return &r.Members[i]
		}
	}
	return nil
}

// UnsafeToDefragment tells why the member must not be defragmented, because of its release or because its volume has no
// room for the copy, and what to do; "" where it may be.
func (s *Situation) UnsafeToDefragment(m state.Member) (why, do string) {
	v, err := release.Parse(m.Version)
	if err != nil {
		return "its release is unknown", upgradeFirst
	}
	if why := release.UnsafeDefragmentation(v); why != "" {
		return why, upgradeFirst
	}
	volume, needs := s.Observed.Volume(m.Name), capacity.Defragmentation(m.DBSize, m.DBInUse)
	if volume == nil || volume.Capacity <= 0 || volume.Capacity >= needs {
		return "", ""
	}
	return fmt.Sprintf("its volume of %s has no room for a copy beside the file and the log, and a full disk stops etcd", state.SizeText(volume.Capacity)),
		"grow spec.storage.size to " + state.SizeText(roomy(m, s.QuotaOf(m), needs))
}

// upgradeFirst is what to do about a release that must not be defragmented.
const upgradeFirst = "upgrade first; under the alarm NOSPACE raise spec.etcd.quotaBackendBytes before that, in a separate commit"

// roomy is the size to grow a volume to: that at which a database may reach its quota and be defragmented then, in whole
// steps of 256Mi.
func roomy(m state.Member, quota, needs int64) int64 {
	const step = 256 << 20
	full := capacity.Defragmentation(max(m.DBSize, quota), max(m.DBInUse, quota))
	return (max(full, needs) + step - 1) / step * step
}

// onlyOf reports whether every error that a member reports is that alarm.
func onlyOf(errors []state.MemberError, kind string) bool {
	return !slices.ContainsFunc(errors, func(e state.MemberError) bool { return e.Alarm != kind })
}

// errorTexts are errors as text.
func errorTexts(errors []state.MemberError) string {
	texts := make([]string, len(errors))
	for i, e := range errors {
		texts[i] = e.Text
	}
	return strings.Join(texts, ", ")
}

// AlarmList is the alarms as text.
func AlarmList(alarms []state.Alarm) string {
	texts := make([]string, len(alarms))
	for i, a := range alarms {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}
