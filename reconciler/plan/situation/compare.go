package situation

import (
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// ComparedLately reports whether the data was compared within the last hour for this roll,
// by a member that it restarted, as it started, with all others. The comparison before its backup does not
// count: a backup may take long, and what differs since would meet the first restart.
func (s *Situation) ComparedLately() bool {
	restarted := func(p state.Pod) bool {
		return s.IsMember(p.Name) && p.Template == s.Desired.Template && s.Now.Sub(p.Created).Abs() < time.Hour && !joined(s.Observed.Volume(p.Name), p) && s.allServed(p)
	}
	old, err := release.Parse(s.ClusterVersion())
	checks := func(v release.Version) bool { return release.ComparesAtStart(v, s.Desired.Spec.Etcd.Options) }
	return err == nil && checks(old) && checks(s.WantedVersion()) && slices.ContainsFunc(s.Observed.Pods, restarted)
}

// allServed reports whether all other members served as the etcd of a pod started, and have
// since: etcd passes over a peer that does not answer its check, and starts all the same.
func (s *Situation) allServed(started state.Pod) bool {
	return !slices.ContainsFunc(s.ByOrdinal(), func(name string) bool {
		p := s.Observed.Pod(name)
		return name != started.Name && (p == nil || !p.Ready || p.ReadySince.After(started.RunsSince))
	})
}

// joined reports whether a pod may be the first on its volume: a member that begins with
// nothing has nothing to compare, and etcd does not. The claim of a learner is
// not older than its join may take.
func joined(v *state.Volume, p state.Pod) bool {
	return v != nil && p.Created.Sub(v.Created) < joinTime
}
