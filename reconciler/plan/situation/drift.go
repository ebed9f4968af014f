package situation

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/state"
)

// Outgrown tells why members could not start with the version that Git asks for, or
// "": a roll that is not recorded as applied has brought a newer minor,
// and the StatefulSet that knew how far it came is gone.
func (s *Situation) Outgrown() string {
	old, version := s.WantedVersion().Line(), state.Minor(s.ClusterVersion())
	switch {
	case state.Older(old, version):
		return fmt.Sprintf("the cluster version is %s, which etcd %s does not start in", version, s.WantedVersion())
	case s.Observed.Record.Downgrade != nil && len(s.Observed.Pods) == 0:
		return fmt.Sprintf("etcd is being downgraded to %s, and no member is there to report how far it has come", s.Observed.Record.Downgrade.Minor)
	case s.NewerThan(old, s.Versions()) && (version == "" || !s.Reports(old)):
		return fmt.Sprintf("members run a newer minor than %s, and none reports that one, so they may not start with it", old)
	}
	return ""
}

// VolumesLeft counts the recorded members whose volume is there to stay.
func (s *Situation) VolumesLeft() int {
	left := 0
	for member := range s.Observed.Record.Members {
		if v := s.Observed.Volume(member); v != nil && !v.Terminating {
			left++
		}
	}
	return left
}

// Adoptable reports whether every pod that is left has the desired template, so that
// a StatefulSet with that template restarts none of them.
func (s *Situation) Adoptable() bool {
	return len(s.Observed.Pods) > 0 && !slices.ContainsFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Template != s.Desired.Template })
}

// SameSettings reports whether the members would come back as what was applied. Of a
// cluster that sleeps the record may know no settings, and a release that is not that
// of the spec.
func (s *Situation) SameSettings(applied *state.Applied) bool {
	if applied.Settings == "" {
		return applied.SpecHash == s.Desired.SpecHash && applied.Version == s.Desired.Spec.Version
	}
	return applied.Settings == s.Settings()
}
