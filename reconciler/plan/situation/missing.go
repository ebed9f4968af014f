package situation

import (
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// refusalCounts is how long what Kubernetes said about a pod counts as what it would say
// now: the StatefulSet controller tries again after a time that doubles up to 1000
// seconds.
const refusalCounts = 20 * time.Minute

// MissingPods are the pods that should exist and do not, by ordinal. That of a learner has a
// deadline of its own, and Git may change its mind about it. Where there are as many pods
// as should be, only a member's counts: one without a member makes up for none of those.
func MissingPods(s *Situation) []string {
	var names, members []string
	pods := len(s.Observed.Pods)
	for ordinal := range s.Observed.Set.Replicas {
		if slices.ContainsFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Ordinal == ordinal }) {
			continue
		}
		name, j := naming.Member(s.Desired.Name, ordinal), s.Observed.Record.Joining
		switch {
		case j != nil && j.ID != "" && j.Member == name && !s.IsMember(name):
			pods++
		case s.IsMember(name):
			members = append(members, name)
			names = append(names, name)
		default:
			names = append(names, name)
		}
	}
	if pods >= int(s.Observed.Set.Replicas) {
		return members
	}
	return names
}

// RefusalOf is what Kubernetes says of a pod that is missing, or nil.
func RefusalOf(s *Situation) *state.PodRefusal {
	if r := s.Observed.Set.Refusal; r != nil && s.Now.Sub(r.At) < refusalCounts {
		return r
	}
	return nil
}

// Displaced is a pod at or above an ordinal that runs and that a partition there would
// stop, as it does not have the template that Git asks for; "" for none.
func Displaced(s *Situation, ordinal int32) string {
	for _, p := range s.Observed.Pods {
		if p.Ordinal >= ordinal && p.Template != s.Desired.Template && (s.IsMember(p.Name) || !s.Formed()) {
			return p.Name
		}
	}
	return ""
}

// OthersServe reports whether each member but one is well.
func OthersServe(s *Situation, but string) bool {
	for name := range s.Observed.Record.Members {
		if p := s.Observed.Pod(name); name != but && (p == nil || !s.HealthyNow(*p)) {
			return false
		}
	}
	return true
}

// MayReturn reports whether a member whose pod does not exist may come back as what it was
// before the roll under way: a binary of the same minor, or one that etcd still takes
// back, because another member that answers runs that minor.
func MayReturn(s *Situation) bool {
	was, err1 := release.Parse(s.Observed.Set.CurrentVersion)
	is, err2 := release.Parse(s.Observed.Set.Version)
	if err1 != nil || err2 != nil {
		return false
	}
	r := s.Observed.Round()
	return was.Line() == is.Line() ||
		(r != nil && state.Minor(r.ClusterVersion) == was.Line() && s.reports(was.Line()) && state.Older(was.Line(), is.Line()))
}

// Unwanted reports whether Git certainly does not want the template of the StatefulSet any
// more, also while pods are missing: which waypoint is due is known by the members only.
func Unwanted(s *Situation) bool {
	minor := state.Minor(s.Git.Spec.Version)
	return s.Git.Template != s.Observed.Set.Template && (s.Git.Template == s.Observed.Set.CurrentTemplate || minor == state.Minor(s.Observed.Set.Version))
}
