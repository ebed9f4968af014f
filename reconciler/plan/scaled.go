package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// fromNothing decides as what the members come back when another writer has scaled them all
// away. With no pods the StatefulSet controller calls an open roll complete, so that all
// start at once with a template that may be proven by none, and no member is there to tell
// how far that roll came. The record knows what was before it.
//
//	Git says                       the StatefulSet has       then
//	the release of before, where   another template          it gets what Git says first
//	a member still has it, or its
//	own with other settings
//	anything                       that minor, or one hop    they come back
//	                               up from it
//	anything                       that of a downgrade       they come back: it got it when every
//	                               that has begun            storage was there; until then
//	                                                         they are all at the newer one
//	anything                       another release           held
func fromNothing(s *situation.Situation) verdict.Verdict {
	set, was := s.Observed.Set, s.Observed.Record.Applied
	if set.Replicas > 0 || s.PodCount() == 0 || len(s.Observed.Pods) > 0 || was == nil {
		return verdict.Pass()
	}
	starts := startsAfter(s, was.Version)
	midway := s.Observed.Midway()
	back := s.Desired.Spec.Version == was.Version && (midway || state.Minor(set.Version) == state.Minor(was.Version))
	switch {
	case !s.Started() && s.Desired.Template != "" && (back || starts && s.Desired.Spec.Version == set.Version):
		return verdict.Do(action.NewStartRoll(s), "no member runs, and Git no longer wants what they would all come back with")
	case starts:
		return verdict.Pass()
	}
	way := "find out what each of them ran; "
	if midway {
		way = fmt.Sprintf("set spec.version back to %s, so that they come back as what they were; or, ", was.Version)
	}
	return verdict.Refuse(
		fmt.Sprintf("the StatefulSet was scaled to 0 in the midst of a change of version: its members ran etcd %s before, and may not all start with the %s that it has now",
			was.Version, set.Version),
		way+fmt.Sprintf("where each of them ran %s or the minor below, `kubectl -n %s scale statefulset %s --replicas=%d`", set.Version, s.Desired.Namespace, s.Desired.Name, s.PodCount()))
}

// startsAfter reports whether members that ran a release can all start with the
// StatefulSet's, wherever a roll to it has been interrupted.
func startsAfter(s *situation.Situation, was string) bool {
	set, down := s.Observed.Set, s.Observed.Record.Downgrade
	from, _ := release.Parse(was)
	to, _ := release.Parse(set.Version) // of a release that is unknown no hop is
	if down != nil && from.Line() != down.Minor && from.Line() != to.Line() {
		return to.Line() == down.Minor
	}
	return situation.Climbs(from, to)
}
