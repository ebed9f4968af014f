package situation

import (
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// ComparedLately reports whether the data was compared within the last hour for this roll:
// before its backup, or by the member that it restarted last, as it started.
func (s *Situation) ComparedLately() bool {
	lately := func(t time.Time) bool { return s.Now.Sub(t).Abs() < time.Hour }
	restarted := slices.DeleteFunc(slices.Clone(s.Observed.Pods), func(p state.Pod) bool { return !s.IsMember(p.Name) || p.Template != s.Desired.Template })
	if len(restarted) == 0 {
		return s.NeedsBackup() && s.backedUp() && lately(s.Observed.Record.Backup.Time)
	}
	old, err := release.Parse(s.ClusterVersion())
	checks := func(v release.Version) bool { return release.ComparesAtStart(v, s.Desired.Spec.Etcd.Options) }
	return err == nil && checks(old) && checks(s.WantedVersion()) &&
		slices.ContainsFunc(restarted, func(p state.Pod) bool { return lately(p.Created) })
}
