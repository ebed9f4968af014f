package situation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/state"
)

// ComebackTime is how long a restarted member may take before the roll counts as
// stopped. Nothing else is touched before or after; only the words change.
const ComebackTime = 5 * time.Minute

// TroubleGrace is how long Kubernetes may report a problem of a restarted pod before
// the roll counts as stopped.
const TroubleGrace = 30 * time.Second

// AskController is how a person finds out why a StatefulSet makes no progress.
func (s *Situation) AskController() string {
	return fmt.Sprintf("find out why: `kubectl -n %s describe statefulset %s`; check as well that kube-controller-manager runs", s.Desired.Namespace, s.Desired.Name)
}

// Unblock tells what keeps the StatefulSet from replacing a pod: it goes down from
// the highest ordinal, and waits for each pod to be ready.
func (s *Situation) Unblock(next state.Pod) string {
	for _, p := range s.Observed.Pods {
		if p.Ordinal > next.Ordinal && !p.Ready {
			return fmt.Sprintf("find out why the pod of %s is not ready: the StatefulSet waits for it first", p.Name)
		}
	}
	return s.AskController()
}

// OtherDown is a member that is not well, beside those that the StatefulSet is
// about to replace: it lets no second one go before that one is ready, and quorate
// does not count on it. Empty for none.
func (s *Situation) OtherDown(loose []state.Pod) string {
	for _, p := range s.Observed.Pods {
		replaced := slices.ContainsFunc(loose, func(l state.Pod) bool { return l.Name == p.Name })
		if s.IsMember(p.Name) && !replaced && (!p.Ready || p.Terminating) {
			return p.Name
		}
	}
	return ""
}

// ControllerCloses reports whether the roll before the desired one has reached every pod,
// and only the StatefulSet controller's own book-keeping is missing. Until then
// CurrentTemplate names a template that no pod has any more. A last one that is
// still in progress counts, too: another roll that began now would let every pod
// that restarts on its own come back as what CurrentTemplate says, which a cluster
// of the next minor no longer takes. One that has trouble keeps no roll from being
// given up. Nor does the controller close it while the pod of a place without a member
// is not ready: that place is filled first, or those above it leave.
func (s *Situation) ControllerCloses() bool {
	if s.Started() || s.Observed.Set.CurrentTemplate == s.Observed.Set.Template || s.Observed.Record.Joining != nil || s.Vacant(s.Observed.Set.Replicas) != "" {
		return false
	}
	for _, p := range s.Observed.Pods {
		stuck := !s.HealthyNow(p) && !s.Starting(p)
		if s.IsMember(p.Name) && (s.Observed.Set.Replaces(p) || stuck) {
			return false
		}
	}
	return true
}

// LeftOpen reports whether the roll before the desired one is over, but for its
// partition: what comes next may have to wait for long. The last member that it
// restarted soaks like any.
func (s *Situation) LeftOpen() bool {
	set := s.Observed.Set
	if s.Started() || set.CurrentTemplate != set.Template || set.Partition == set.Replicas {
		return false
	}
	return !slices.ContainsFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Template != set.Template })
}

// CauseOf is why a pod is not well, in one clause.
func (s *Situation) CauseOf(p state.Pod) Remark {
	r := s.Observed.Round()
	switch m := r.Member(p.Name); {
	case p.Trouble != "":
		return Remark{Member: p.Name, Text: p.Trouble}
	case p.Terminating:
		return Remark{Member: p.Name, Text: "its pod is shutting down"}
	case p.NodeGone:
		return Remark{Member: p.Name, Text: "its node does not report"}
	case !p.Ready:
		return Remark{Member: p.Name, Text: cmp.Or(beside(p), "its pod is not ready yet")}
	case r != nil && r.Problem != "":
		return Remark{Member: p.Name, Text: "the members cannot be listed", Detail: r.Problem}
	case m == nil:
		return Remark{Member: p.Name, Text: "it is not in the member list"}
	default:
		return Remark{Member: p.Name, Text: "it does not answer", Detail: m.Problem}
	}
}

// beside tells what keeps a pod from being ready that is not etcd's, "" for nothing.
func beside(p state.Pod) string {
	if p.Beside == "" {
		return ""
	}
	return "a container beside etcd has trouble (" + p.Beside + ")"
}

// Unfinished reports whether the spec, or the template that it renders to, has not
// been applied completely.
func (s *Situation) Unfinished() bool {
	if !s.Formed() {
		return false
	}
	a := s.Observed.Record.Applied
	return s.Rolling() || !s.Complete() || s.Observed.Set.CurrentTemplate != s.Desired.Template || s.Observed.Set.Partition != s.Observed.Set.Replicas ||
		a == nil || a.SpecHash != s.Desired.SpecHash
}
