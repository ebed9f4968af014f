// Package logs has the rule about what members' logs hold.
package logs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// SnapshotTime is how long a member has to save its state before more is added to
// the log.
const SnapshotTime = 5 * time.Second

// Flush sees to it, at a stop that is there for that, that every member saves its
// state beside its log: what the log holds from before is then never read again.
// Saved counts what a member reports about itself, after entries that came when every
// member ran the release of the stop with the flag for it.
func Flush(s *situation.Situation) verdict.Verdict {
	if v := contradicted(s); !v.Silent() {
		return v
	}
	if !s.Formed() || !s.Waypoint().Flush || s.Rolling() || s.Observed.Set.CurrentTemplate != s.Desired.Template {
		return verdict.Pass()
	}
	n := s.Observed.Record.Forced
	if n == nil || n.Template != s.Desired.Template {
		return forceSnapshot(s, "every member runs with snapshot-count=1; a few entries that touch no key have each of them save its state beside its log")
	}
	waiting := unsaved(s, n)
	switch {
	case waiting == "":
		return verdict.Do(action.RecordFlushed{Members: maps.Clone(s.Observed.Record.Members), BornOn: s.Observed.Record.BornOn},
			"every member has saved its state beside its log since; what 3.5 may have written there is never read again")
	case s.Now.Sub(n.Time) >= SnapshotTime:
		return forceSnapshot(s, waiting+" has not saved its state beside its log since the last entries; a few more are added")
	}
	return verdict.Wait(s, waiting+" saves its state beside its log, which takes a moment", n.Since,
		"check the log of "+waiting+": it does not save snapshots; nothing goes to the next minor before that").At(waiting)
}

// contradicted corrects a record that was restored from before the cluster went down to a minor
// whose entries a later one cannot read. It is seen only while a member runs that minor.
func contradicted(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Round() == nil {
		return verdict.Pass()
	}
	r := s.Observed.Record
	m := s.FindMember(func(m state.Member) bool {
		v, err := release.Parse(m.Version)
		return err == nil && release.WritesOld(v) && (len(r.Flushed) > 0 || state.Older(v.Line(), r.BornOn))
	})
	if m == nil {
		return verdict.Pass()
	}
	a := action.RecordFlushed{BornOn: state.Minor(m.Version)}
	if state.Older(r.BornOn, a.BornOn) {
		a.BornOn = r.BornOn
	}
	return verdict.Do(a, fmt.Sprintf("%s runs etcd %s, and by the record no log can hold what that writes: the record is older than the cluster", m.Name, m.Version))
}

// forceSnapshot adds entries to the log.
func forceSnapshot(s *situation.Situation, reason string) verdict.Verdict {
	l := s.Observed.Round().Leader()
	if l == nil {
		return verdict.Unhealthy("there is no leader to add entries to the log", "")
	}
	return verdict.Do(action.ForceSnapshot{Member: l.Name, MemberID: l.ID, Template: s.Desired.Template}, reason)
}

// unsaved is the first member that has not saved its state since entries were last added
// to the log, or "". One that has restarted counts from zero, and more are added.
func unsaved(s *situation.Situation, n *state.ForcedSnapshot) string {
	for _, name := range slices.Sorted(maps.Keys(s.Observed.Record.Members)) {
		m := s.Observed.Round().Member(name)
		before, known := n.Before[name]
		if m == nil || m.Problem != "" || !known || m.Snapshots <= before {
			return name
		}
	}
	return ""
}

// Reason is why a roll that changes no version is needed before the next minor.
func Reason(s *situation.Situation) string {
	return fmt.Sprintf("before %s: the logs may hold entries of 3.5, at which 3.7 panics, so each member first saves its state beside its log (snapshot-count=1)",
		s.Waypoints[1].Version)
}
