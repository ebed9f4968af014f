package plan

import (
	"fmt"
	"slices"
	"time"
)

// comeback is how long a restarted member may take before the roll counts as
// stopped. Nothing else is touched before or after; only the words change.
const comeback = 5 * time.Minute

// trouble is how long Kubernetes may report a problem of a restarted pod before
// the roll counts as stopped.
const trouble = 30 * time.Second

// settled waits until the StatefulSet controller has caught up with what it was
// told, and stops a roll that somebody else has let loose.
func settled(s *situation) verdict {
	if !s.formed() {
		return pass()
	}
	if !s.o.Set.Settled {
		return wait("the StatefulSet controller has not seen the last change yet", time.Time{})
	}
	if len(s.o.Pods)+s.unborn() < int(s.o.Set.Replicas) {
		return s.uncreated(fmt.Sprintf("%d of %d pods exist; the StatefulSet creates the rest", len(s.o.Pods), s.o.Set.Replicas))
	}
	if name := s.podless(); name != "" {
		return s.uncreated(fmt.Sprintf("the pod of %s does not exist; the StatefulSet creates it", name))
	}
	if s.closing() {
		v := wait("every pod has the last template; the StatefulSet controller closes that roll first", s.newestPod())
		v.hold.Do = s.askController()
		return v
	}
	if s.leftOpen() {
		if v := s.soaking(s.o.Set.Template); !v.silent() {
			return v
		}
		return do(EndRoll{SetUID: s.o.Set.UID, Template: s.o.Set.Template, Replicas: s.o.Set.Replicas},
			"every pod has the last template; the partition goes back above them all before the next roll, so that no edit by hand restarts one")
	}
	if !s.started() {
		return s.recall()
	}
	loose := slices.DeleteFunc(s.outdated(), func(p Pod) bool { return p.Ordinal < s.o.Set.Partition })
	// A cluster of one or two has no quorum while its victim is down, and whoever
	// waits for one is not well either.
	down := s.otherDown(loose)
	if s.small() {
		down = ""
	}
	switch {
	case len(loose) == 0:
		return pass()
	case len(loose) == 1 && down == "":
		v := wait(fmt.Sprintf("the StatefulSet replaces %s", loose[0].Name), time.Time{})
		v.hold.Do = s.unblock(loose[0])
		return v
	case len(loose) == 1:
		return do(s.startRoll(),
			fmt.Sprintf("the partition is %d and would let %s go while %s is not well; it goes back above all of them",
				s.o.Set.Partition, loose[0].Name, down))
	}
	return do(s.startRoll(),
		fmt.Sprintf("the partition is %d and would let %d members go at once; it goes back above all of them",
			s.o.Set.Partition, len(loose)))
}

// unborn is 1 where the pod of a learner does not exist, which nobody waits for but
// the join itself: it has a deadline, and Git may change its mind.
func (s *situation) unborn() int {
	if j := s.o.Record.Joining; j != nil && j.ID != "" && s.o.Record.Members[j.Member] == "" && s.o.pod(j.Member) == nil {
		return 1
	}
	return 0
}

// uncreated waits for pods that do not exist. Nobody knows since when, so it says at
// once what to do if that lasts.
func (s *situation) uncreated(message string) verdict {
	v := wait(message, time.Time{})
	v.hold.Do = s.askController()
	return v
}

// askController is how a person finds out why a StatefulSet makes no progress.
func (s *situation) askController() string {
	return fmt.Sprintf("if that lasts, look at why: `kubectl -n %s describe statefulset %s`", s.d.Namespace, s.d.Name)
}

// unblock says what keeps the StatefulSet from replacing a pod: it goes down from
// the highest ordinal, and waits for each pod to be ready. Empty for nothing.
func (s *situation) unblock(next Pod) string {
	for _, p := range s.o.Pods {
		if p.Ordinal > next.Ordinal && !p.Ready {
			return fmt.Sprintf("it waits for the pod of %s first; if that lasts, look at why it is not ready", p.Name)
		}
	}
	return ""
}

// podless is the lowest member without a pod, or "". A pod that is nobody's makes up
// for none that is missing.
func (s *situation) podless() string {
	lowest := ""
	for name := range s.o.Record.Members {
		if s.o.pod(name) == nil && (lowest == "" || ordinalOf(name) < ordinalOf(lowest)) {
			lowest = name
		}
	}
	return lowest
}

// recall stops the StatefulSet from giving a pod the template that Git no longer
// wants: it was let go for that, and is not replaced yet.
func (s *situation) recall() verdict {
	for _, p := range s.o.Pods {
		if p.Ordinal >= s.o.Set.Partition && p.Template != s.o.Set.Template && s.isMember(p.Name) && s.o.Set.Partition < s.o.Set.Replicas {
			return do(ResizeSet{SetUID: s.o.Set.UID, From: s.o.Set.Replicas, To: s.o.Set.Replicas, Partition: s.o.Set.Replicas},
				fmt.Sprintf("Git no longer wants what %s was let go for; the partition goes back above all members", p.Name))
		}
	}
	return pass()
}

// otherDown is a member that is not well, beside those that the StatefulSet is
// about to replace: it lets no second one go before that one is ready, and quorate
// does not count on it. Empty for none.
func (s *situation) otherDown(loose []Pod) string {
	for _, p := range s.o.Pods {
		replaced := slices.ContainsFunc(loose, func(l Pod) bool { return l.Name == p.Name })
		if s.isMember(p.Name) && !replaced && (!p.Ready || p.Terminating) {
			return p.Name
		}
	}
	return ""
}

// closing says whether the roll before the desired one has reached every pod,
// and only the StatefulSet controller's own book-keeping is missing. Until then
// CurrentTemplate names a template that no pod has any more. A last one that is
// still on its way counts, too: another roll that began now would let every pod
// that restarts by itself come back as what CurrentTemplate says, which a cluster
// of the next minor no longer takes. One that has trouble keeps no roll from being
// given up. Nor does the controller close it while the pod of a place that is to
// be filled is not ready: that comes first.
func (s *situation) closing() bool {
	if s.started() || s.o.Set.CurrentTemplate == s.o.Set.Template || s.o.Record.Joining != nil || s.vacant(s.d.Spec.Replicas) != "" {
		return false
	}
	for _, p := range s.o.Pods {
		stuck := !s.wellNow(p) && (p.Trouble != "" || s.now.Sub(p.Created) > comeback)
		if s.isMember(p.Name) && (p.Template != s.o.Set.Template || stuck) {
			return false
		}
	}
	return true
}

// leftOpen says whether the roll before the desired one is over, but for its
// partition: what comes next may have to wait for long. The last member that it
// restarted soaks like any.
func (s *situation) leftOpen() bool {
	set := s.o.Set
	if s.started() || set.CurrentTemplate != set.Template || set.Partition == set.Replicas {
		return false
	}
	return !slices.ContainsFunc(s.o.Pods, func(p Pod) bool { return p.Template != set.Template })
}

// member waits for a restarted member, and stops the roll at one that does not
// come back: the others are left alone.
func member(s *situation) verdict {
	if !s.unfinished() {
		return pass()
	}
	for _, p := range s.o.Pods {
		if p.Terminating {
			return wait(p.Name+" is shutting down", time.Time{})
		}
	}
	for _, p := range s.o.Pods {
		if s.isMember(p.Name) && p.Template == s.d.Template && !s.wellNow(p) {
			return s.comingBack(p)
		}
	}
	return pass()
}

// comingBack waits for one pod, in words that tell how long it has been.
func (s *situation) comingBack(p Pod) verdict {
	age := s.now.Sub(p.Created)
	cause := s.cause(p)
	if age < trouble || (age < comeback && p.Trouble == "") {
		return wait(fmt.Sprintf("%s starts with etcd %s: %s", p.Name, p.Version, cause), p.Created)
	}
	return verdict{hold: &Hold{
		Kind:    HoldStopped,
		Message: fmt.Sprintf("the roll stopped at %s, which does not come back with etcd %s: %s; the other members are left alone", p.Name, p.Version, cause),
		Do:      "revert the commit to go back, or mend the cause in a new one",
		Since:   p.Created,
		Again:   soon,
	}}
}

// cause says why a pod is not well, in one clause.
func (s *situation) cause(p Pod) string {
	r := s.o.round()
	switch m := r.member(p.Name); {
	case p.Trouble != "":
		return p.Trouble
	case !p.Ready:
		return "its pod is not ready yet"
	case r != nil && r.Problem != "":
		return "the members cannot be listed: " + r.Problem
	case m == nil:
		return "it is not in the member list"
	default:
		return m.Problem
	}
}

// unfinished says whether the spec, or the template that it renders to, has not
// been carried out to its end.
func (s *situation) unfinished() bool {
	if !s.formed() {
		return false
	}
	a := s.o.Record.Applied
	return s.rolling() || !s.complete() || s.o.Set.CurrentTemplate != s.d.Template || s.o.Set.Partition != s.o.Set.Replicas ||
		a == nil || a.SpecHash != s.d.SpecHash
}

// soak lets a restarted member prove itself before the next one is touched.
func soak(s *situation) verdict {
	if !s.rolling() {
		return pass()
	}
	return s.soaking(s.d.Template)
}

// soaking waits for the pods of a template that have not been ready for long.
func (s *situation) soaking(template string) verdict {
	for _, p := range s.o.Pods {
		long, back := s.soakTime(p), "back"
		if p.Crashed {
			back = "back after a crash"
		}
		if left := long - s.now.Sub(p.ReadySince); p.Template == template && left > 0 {
			v := wait(fmt.Sprintf("%s is %s and soaks for %s", p.Name, back, long), p.ReadySince)
			v.hold.Again = left
			return v
		}
	}
	return pass()
}
