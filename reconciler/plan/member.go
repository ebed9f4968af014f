package plan

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// settled waits until the StatefulSet controller has caught up with what it was
// reported, and stops a roll that was started from outside.
func settled(s *situation.Situation) verdict.Verdict {
	if !s.Formed() {
		return verdict.Pass()
	}
	if !s.Observed.Set.Settled {
		if v := takenBack(s); !v.Silent() {
			return v
		}
		return stalled.Controller(s, "the StatefulSet controller has not seen the last change yet")
	}
	if m := situation.MissingOf(s); len(m.Names) > 0 {
		return recallMissing(s, m.Names) // a rule below tells: what heals must not wait for it
	}
	if s.ControllerCloses() {
		return verdict.Wait(s, "every pod has the last template; the StatefulSet controller closes that roll first", s.NewestPod(), s.AskController())
	}
	if s.LeftOpen() {
		if v := soaking(s, s.Observed.Set.Template); !v.Silent() {
			return v
		}
		return verdict.Do(action.EndRoll{SetUID: s.Observed.Set.UID, Template: s.Observed.Set.Template, Replicas: s.Observed.Set.Replicas},
			"every pod has the last template; the partition goes back above them all before the next rollout, so that no manual edit restarts one")
	}
	if !s.Started() {
		return recall(s)
	}
	loose := toGo(s)
	// A cluster of one or two has no quorum while the broken one is down, and a
	// member that waits for a quorum is not well either.
	down := s.OtherDown(loose)
	if s.Small() {
		down = ""
	}
	switch {
	case len(loose) == 0:
		return verdict.Pass()
	case len(loose) == 1 && down == "":
		return replaced(s, &loose[0])
	case len(loose) == 1:
		back := action.NewStartRoll(s)
		back.Partition = loose[0].Ordinal + 1 // how far the roll came is not forgotten
		return verdict.Do(back, fmt.Sprintf("the partition is %d and would let %s go while %s is not well; it goes back above that", s.Observed.Set.Partition, loose[0].Name, down))
	}
	return verdict.Do(action.NewStartRoll(s),
		fmt.Sprintf("the partition is %d and would let %d members go at once; it goes back above all of them",
			s.Observed.Set.Partition, len(loose)))
}

// toGo are the members that the StatefulSet controller is to replace, or replaces.
func toGo(s *situation.Situation) []state.Pod {
	return slices.DeleteFunc(s.Outdated(), func(p state.Pod) bool { return p.Ordinal < s.Observed.Set.Partition })
}

// takenBack takes back that a member may go, when another one is lost before the StatefulSet controller has
// seen it: a controller that comes back after a while waits for nobody, and what it knows of pods may be as old.
func takenBack(s *situation.Situation) verdict.Verdict {
	loose := toGo(s)
	if !s.Started() || s.Small() || len(loose) == 0 {
		return verdict.Pass()
	}
	down := s.OtherDown(loose)
	if r := s.Observed.Round(); down == "" && r != nil {
		for _, m := range r.Members {
			if m.Problem != "" && m.Name != loose[0].Name && s.IsMember(m.Name) {
				down = m.Name
			}
		}
	}
	if down == "" {
		return verdict.Pass()
	}
	return verdict.Do(action.NewStartRoll(s),
		fmt.Sprintf("the StatefulSet controller has not let %s go yet, and %s is not well; the partition goes back above all of them", loose[0].Name, down))
}

// replaced waits for a pod that the StatefulSet has been told to replace.
func replaced(s *situation.Situation, p *state.Pod) verdict.Verdict {
	message := fmt.Sprintf("the StatefulSet replaces %s", p.Name)
	if p.Terminating {
		return stalled.Gone(s, p, message)
	}
	return verdict.Wait(s, message, s.Observed.Set.ChangedAt, s.Unblock(*p)).At(p.Name)
}

// recall stops the StatefulSet from giving a pod the template that Git no longer
// wants: it was let go for that, and is not replaced yet.
func recall(s *situation.Situation) verdict.Verdict {
	for _, p := range s.Observed.Pods {
		if p.Ordinal >= s.Observed.Set.Partition && s.Observed.Set.Replaces(p) && s.IsMember(p.Name) && s.Observed.Set.Partition < s.Observed.Set.Replicas {
			return verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: s.Observed.Set.Replicas, To: s.Observed.Set.Replicas, Partition: s.Observed.Set.Replicas},
				fmt.Sprintf("Git no longer wants what %s was let go for; the partition goes back above all members", p.Name))
		}
	}
	return verdict.Pass()
}

// member waits for a restarted member, and stops the roll at one that does not
// come back: the others are left alone.
func member(s *situation.Situation) verdict.Verdict {
	if !s.Unfinished() {
		return verdict.Pass()
	}
	for i := range s.Observed.Pods {
		if p := &s.Observed.Pods[i]; p.Terminating {
			return stalled.Gone(s, p, p.Name+" is shutting down")
		}
	}
	if s.Alone() {
		return verdict.Pass() // the other one waits for a quorum, which only the broken one brings back
	}
	for _, p := range s.Observed.Pods {
		if s.IsMember(p.Name) && !s.HealthyNow(p) && (p.Template == s.Desired.Template || abandoned(s, p)) {
			return comingBack(s, p)
		}
	}
	return verdict.Pass()
}

// abandoned reports whether a pod only starts with what a roll has given it that Git no longer
// wants: whether that broke it is not known yet.
func abandoned(s *situation.Situation, p state.Pod) bool {
	return p.Template != s.Observed.Set.CurrentTemplate && p.UnreadySince.IsZero() && s.Starting(p)
}

// comingBack waits for one pod, and tells how long it has been.
func comingBack(s *situation.Situation, p state.Pod) verdict.Verdict {
	age := s.Now.Sub(p.Created)
	cause := s.CauseOf(p)
	if age < situation.TroubleGrace || (age < situation.ComebackTime && p.Trouble == "") {
		return verdict.WaitUntil(fmt.Sprintf("%s starts with etcd %s: %s", p.Name, p.Version, cause.Text), p.Created).About(cause)
	}
	do := "revert the commit to go back, or fix the cause in a new one"
	switch {
	case situation.Unproven(s, p):
		do = "revert the commit to go back: it is replaced only if its data is found damaged with what it ran before, too"
	case p.NodeGone:
		do = "bring the node of " + p.Name + " back: no commit reaches what runs on it"
	}
	return verdict.Verdict{Hold: &decision.Hold{
		Kind:    decision.Stopped,
		Message: fmt.Sprintf("the roll stopped at %s, which does not come back with etcd %s: %s; the other members are left alone", p.Name, p.Version, cause.Text),
		Member:  p.Name,
		Detail:  cause.Detail,
		Do:      do,
		Since:   p.Created,
		Again:   verdict.Soon,
	}}
}

// soak lets a restarted member prove itself before the next one is touched.
func soak(s *situation.Situation) verdict.Verdict {
	if !s.Rolling() {
		return verdict.Pass()
	}
	return soaking(s, s.Desired.Template)
}

// soaking waits for the pods of a template that have not been ready for long.
func soaking(s *situation.Situation, template string) verdict.Verdict {
	for _, p := range s.Observed.Pods {
		long, back := s.SoakTime(p), "back"
		if p.Crashed {
			back = "back after a crash"
		}
		if left := long - s.Now.Sub(p.ReadySince); p.Template == template && left > 0 {
			return verdict.WaitUntil(fmt.Sprintf("%s is %s and soaks for %s", p.Name, back, long), p.ReadySince).At(p.Name).Again(left)
		}
	}
	return verdict.Pass()
}
