package recovery

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// Remedy brings back a cluster that no quorum serves, where the data of a quorum is whole
// and what keeps members from running is their template: too little memory, an image that
// cannot be had, a node selector, a pod that Kubernetes refuses. A commit of settings goes
// to what is down, one member after the other, without the health that a roll wants, as
// there is none to lose. It goes no further than the first member that does not start with
// it, and ends as soon as there is a quorum: the rest is an ordinary roll.
//
//	the members that are down          then
//	have what Git asks for             a hold with the cause: a commit mends it, and no recovery
//	one was given it, does not start   a hold: the next commit, or a revert, goes the same way
//	ran another version                refused: nothing is upgraded blindly, and no older binary starts
//	above one that may serve           a hold: no member that may serve is stopped
//	else                               template, partition, pod
func Remedy(s *situation.Situation) verdict.Verdict {
	if !s.Observed.Set.Settled || s.Alone() {
		return verdict.Pass()
	}
	if asked := s.RequestedRecovery(); asked != "" && asked != s.Observed.Record.RefusedRecovery {
		return verdict.Pass() // a person has decided
	}
	o := situation.OutageOf(s)
	if o == nil {
		return verdict.Pass()
	}
	if v := oneByOne(s); !v.Silent() {
		return v
	}
	next := nextOf(s, o)
	if v := untried(s, o, next); !v.Silent() {
		return v
	}
	if v := mayRemedy(s, next); !v.Silent() {
		return v
	}
	if together(s, o, next) {
		return verdict.Pass()
	}
	return remedy(s, o, next)
}

// nextOf is the member that gets what Git asks for next: the highest, or, where that has no
// pod, the lowest of those without one. The StatefulSet controller creates pods from the lowest
// up, and goes no further than the first that is refused.
func nextOf(s *situation.Situation, o *situation.Outage) situation.Down {
	next := o.Down[0]
	for _, d := range o.Down {
		if d.Pod != nil {
			break
		}
		if d.Template != s.Desired.Template {
			next = d
		}
	}
	return next
}

// untried waits for pods that are only about to be created, and holds where what does not start
// has what Git asks for.
func untried(s *situation.Situation, o *situation.Outage, next situation.Down) verdict.Verdict {
	for _, d := range o.Down {
		if d.Pod == nil && situation.MissingOf(s).Comes(d.Member) {
			return stalled.Creation(s, d.Member)
		}
	}
	if next.Template == s.Desired.Template {
		return untold(s, o, next)
	}
	return verdict.Pass()
}

// together reports whether a member above one that neither answers nor runs, since its data is
// lost, would be let go with it.
func together(s *situation.Situation, o *situation.Outage, next situation.Down) bool {
	return slices.ContainsFunc(s.Remnants(), func(m situation.Remnant) bool {
		p := s.Observed.Pod(m.Name)
		down := slices.ContainsFunc(o.Down, func(d situation.Down) bool { return d.Member == m.Name })
		return naming.Ordinal(m.Name) > naming.Ordinal(next.Member) && !down && m.Member == nil && (p == nil || p.Template != s.Desired.Template && !situation.Runs(*p))
	})
}

// steadily is how long an etcd has run that does not end as it starts. Nothing depends on it
// but how many members get what Git asks for before the first of them has proven it.
const steadily = 15 * time.Second

// oneByOne waits for a member that stops, and for one that was given what Git asks for: etcd
// must run with it before another one gets it. It cannot be asked to answer before a quorum
// runs: until it has found a leader, an etcd that has started serves nobody.
func oneByOne(s *situation.Situation) verdict.Verdict {
	for _, m := range s.Remnants() {
		p := s.Observed.Pod(m.Name)
		switch {
		case p == nil || m.Member != nil || p.Ready:
		case p.Terminating:
			return stalled.Gone(s, p, p.Name+" is shutting down")
		case p.Template != s.Desired.Template || !s.Rolling() || p.Trouble != "":
		case situation.Runs(*p) && s.Now.Sub(p.RunsSince) >= steadily:
		case s.Now.Sub(p.Created) < situation.ComebackTime:
			return verdict.WaitUntil(fmt.Sprintf("%s starts with etcd %s: %s", p.Name, p.Version, s.CauseOf(*p).Text), p.Created).At(p.Name)
		default:
			v := verdict.Unhealthy(fmt.Sprintf("there is no quorum, and %s, which has what Git asks for, does not start", p.Name), "check "+p.Name+"; the others are restarted when it runs, or when a new commit asks for something else").At(p.Name)
			v.Hold.Since = p.Created
			return v
		}
	}
	return verdict.Pass()
}

// untold tells why no quorum runs, and that a commit would do. That spec.recovery could
// be needed is said only where what is on a volume may be the cause.
func untold(s *situation.Situation, o *situation.Outage, tried situation.Down) verdict.Verdict {
	do := "commit what lets them start, such as a larger memory limit, an image that can be had, a node that fits, a pod that Kubernetes admits; " +
		"it goes to the members that are down without waiting for a quorum. Their data is whole: neither delete nor recover anything"
	if !o.Barred() {
		do += "; only if their data is what keeps etcd from starting, " + situation.Recoveries(s)
	}
	v := verdict.Unhealthy(fmt.Sprintf("there is no quorum: it takes %d members, and these do not run, with their volumes whole: %s", o.Quorum, o.Causes()), do).At(tried.Member)
	if s.Rolling() {
		v.Hold.Kind = decision.Stopped
		v.Hold.Message = fmt.Sprintf("%s does not start with what Git asks for, and the others are left alone; %s", tried.Member, v.Hold.Message)
		v.Hold.Do = "revert the commit, or " + do
	}
	v.Hold.Since = tried.Since
	return v
}

// mayRemedy keeps what a restart could harm: another member that may serve, data that
// goes with its pod, and data that the new binary is not made for.
func mayRemedy(s *situation.Situation, next situation.Down) verdict.Verdict {
	ran := []string{}
	for _, p := range s.Outdated() {
		if p.Ordinal < naming.Ordinal(next.Member) {
			continue
		}
		if why := mayRun(s, p); why != "" {
			return verdict.Unhealthy(fmt.Sprintf("there is no quorum, and what Git asks for may bring members back; it is not applied, because it would restart %s, which may serve: %s", p.Name, why),
				"check "+p.Name+" and its node; what is certain not to run is restarted").At(p.Name)
		}
		ran = append(ran, mayHaveRun(s, p))
	}
	if next.Pod == nil {
		ran = append(ran, s.Observed.Set.Version, s.Observed.Set.CurrentVersion)
	}
	if why := swappable(s, ran); why != "" {
		do := fmt.Sprintf("set spec.version to what the members run (%s), and change only what keeps them from starting; their data is whole: neither delete nor recover anything", newest(ran, s.Observed.Set.Version))
		if refusal := situation.MissingOf(s).Refusal; refusal != nil {
			do = fmt.Sprintf("let Kubernetes admit its pod as it is (%s); or ", refusal.Why) + do
		}
		return verdict.Refuse(fmt.Sprintf("there is no quorum, and %s cannot come back with etcd %s, because nothing can be asked of it: %s", next.Member, s.Desired.Spec.Version, why), do).At(next.Member)
	}
	return volumes.Stay(s, "")
}

// mayRun tells why a member's pod may still run, or "": the word of a kubelet that does not
// report is not counted, and one that answers runs.
func mayRun(s *situation.Situation, p state.Pod) string {
	m := s.Observed.Round().Member(p.Name)
	switch {
	case p.Ready:
		return p.Name + " is ready"
	case m != nil && m.Leader != "":
		return p.Name + " follows a leader"
	case m != nil && m.ID != "":
		return "" // it serves nobody: it follows no leader, and its kubelet does not call it ready
	case situation.Runs(p) && p.Reported:
		return "" // its kubelet does not call it ready: it waits for a quorum
	case p.Trouble == "":
		return "the pod of " + p.Name + " has no trouble"
	case !p.Reported:
		return "the node of " + p.Name + " does not report, or quorate may not list nodes"
	}
	return ""
}

// mayHaveRun is the release that a member may have run: that of its pod. But a pod whose etcd never ran has run nothing,
// and while a roll has not let the lowest member go each one starts with what was before, too.
func mayHaveRun(s *situation.Situation, p state.Pod) string {
	if before := beforeRoll(s); !p.Ran && before != "" && s.Observed.Midway() {
		return before
	}
	return p.Version
}

// beforeRoll is the release that all members ran before the roll that the StatefulSet has, or that is being taken back;
// "" where that is unknown. The StatefulSet forgets it when it is scaled to 0: then the record says it, unless that is
// from before another roll, which nobody recorded.
func beforeRoll(s *situation.Situation) string {
	set, applied := s.Observed.Set, s.Observed.Record.Applied
	to, errTo := release.Parse(set.Version)
	current, errCurrent := release.Parse(set.CurrentVersion)
	switch {
	case errTo != nil || errCurrent != nil:
		return ""
	case release.Compare(current, to) < 0:
		return set.CurrentVersion
	case applied == nil:
		return ""
	}
	was, err := release.Parse(applied.Version)
	if err != nil || was.Major != current.Major || was.Minor > current.Minor || was.Minor < current.Minor-1 {
		return ""
	}
	return applied.Version
}

// newest is the newest release of those that are known, or another one where none is: what
// has run an older one can go there, and nothing can go back.
func newest(versions []string, otherwise string) string {
	best := release.Version{}
	for _, text := range versions {
		if v, err := release.Parse(text); err == nil && release.Compare(best, v) < 0 {
			best, otherwise = v, text
		}
	}
	return otherwise
}

// swappable tells why a member may not come back with the version that is wanted while
// nothing can be asked of it, or "". Nothing is upgraded blindly: each version that it may
// have run is the wanted one, or one from which the roll under way goes there, or a patch
// of the same minor to which that is given up: it goes both ways.
func swappable(s *situation.Situation, ran []string) string {
	want, set, was := s.WantedVersion(), s.Observed.Set, ""
	if a := s.Observed.Record.Applied; a != nil {
		was = a.Version
	}
	for _, text := range ran {
		v, err := release.Parse(text)
		switch {
		case err != nil:
			return "it is unknown which etcd it ran"
		case v == want:
		case set.Version == want.String() && situation.Climbs(v, want):
		case v.Line() == want.Line() && (set.CurrentVersion == want.String() || was == want.String()):
		default:
			return fmt.Sprintf("it may have run etcd %s", v)
		}
	}
	return ""
}

// remedy gives the next member what Git asks for: the template to the StatefulSet, the
// partition to the member, and its pod away. What has no pod has what Git asks for now.
func remedy(s *situation.Situation, o *situation.Outage, next situation.Down) verdict.Verdict {
	ordinal, set := naming.Ordinal(next.Member), s.Observed.Set
	switch {
	case !s.Started():
		a := action.NewStartRoll(s)
		if s.Observed.Midway() && ordinal >= set.Partition { // how far the roll came is not forgotten
			a.Partition = ordinal
		}
		return verdict.Do(a, "there is no quorum, and Git asks for something else than what does not start: "+o.Causes())
	case set.Partition > ordinal:
		return verdict.Do(action.ResizeSet{SetUID: set.UID, From: set.Replicas, To: set.Replicas, Partition: ordinal},
			fmt.Sprintf("%s does not run, so that it restarts with what Git asks for; no quorum is there to lose", next.Member))
	}
	return verdict.Do(action.RestartMember{
		SetUID: set.UID, Member: next.Member, Ordinal: ordinal, PodUID: next.Pod.UID, MemberID: s.Observed.Record.Members[next.Member],
		Partition: set.Partition, ByDeletion: true, From: next.Pod.Version, To: set.Version,
	}, "it does not run, and its pod makes way for one that Git asks for: "+next.Pod.Trouble)
}
