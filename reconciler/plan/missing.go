package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
)

// missing waits for a pod that does not exist: the StatefulSet creates it, unless
// Kubernetes refuses it. It stands below what heals, which needs no such pod, and above
// all that restarts a member.
//
//	the pod that would come   Git                    then
//	is refused                asks for another one   it is what Git asks for, where no pod stops for that
//	is refused                asks for it            a hold with the API server's words
//	is not created            –                      a hold after a while: nobody creates pods
func missing(s *situation.Situation) verdict.Verdict {
	if !s.Formed() {
		return verdict.Pass()
	}
	names := situation.MissingPods(s)
	if len(names) == 0 {
		return verdict.Pass()
	}
	if v := createAsWanted(s, names); !v.Silent() {
		return v
	}
	return uncreated(s, names[0])
}

// uncreated tells of a pod that does not exist, and why.
func uncreated(s *situation.Situation, name string) verdict.Verdict {
	since, refusal := s.Observed.Set.StatusAt, situation.RefusalOf(s)
	if since.IsZero() && refusal != nil {
		since = refusal.Since
	}
	late := !since.IsZero() && s.Now.Sub(since) >= situation.TroubleGrace
	if refusal == nil || !late {
		v := verdict.Wait(fmt.Sprintf("the pod of %s does not exist; the StatefulSet creates it", name), since).At(name).Advise(s.AskController())
		if !since.IsZero() && s.Now.Sub(since) >= situation.ComebackTime {
			v.Hold.Kind = decision.Unhealthy
			v.Hold.Message = fmt.Sprintf("the pod of %s does not exist, and the StatefulSet controller does not create it", name)
			v.Hold.Do = s.AskController() + "; check as well that kube-controller-manager runs"
		}
		return v
	}
	h := &decision.Hold{Kind: decision.Unhealthy, Member: name, Since: refusal.Since, Again: verdict.Soon}
	h.Message = fmt.Sprintf("the pod of %s cannot be created: %s", name, refusal.Why)
	if r := s.Observed.Round(); r != nil && len(r.Alarms) > 0 {
		h.Message += "; meanwhile it has the alarm " + situation.AlarmList(r.Alarms) + ", which is dealt with when all members are well"
	}
	h.Do = "let Kubernetes admit it (quota, Pod Security, policies, priority class), or commit what it admits"
	switch before := situation.Displaced(s, naming.Ordinal(name)); {
	case s.RollOpen() && naming.Ordinal(name) >= s.Observed.Set.Partition:
		h.Kind = decision.Stopped
		h.Message = fmt.Sprintf("the roll stopped at %s: %s", name, h.Message)
		h.Do = "revert the commit to go back, or " + h.Do
	case s.Rolling() && before != "":
		h.Do = fmt.Sprintf("let Kubernetes admit it as it was (quota, Pod Security, policies, priority class): what Git asks for would reach %s first, which serves", before)
	}
	return verdict.Verdict{Hold: h}
}

// createAsWanted gives a missing pod the template that Git asks for, where it is another
// than the one that it would be created with, and where no other pod stops for that: a
// pod that does not exist has no order to keep.
func createAsWanted(s *situation.Situation, names []string) verdict.Verdict {
	name := names[len(names)-1]
	ordinal := naming.Ordinal(name)
	if situation.RefusalOf(s) == nil || !s.Rolling() || s.Versioned() || s.Observed.Set.CurrentVersion != s.Desired.Spec.Version || len(names) > 1 || situation.Displaced(s, ordinal) != "" || !situation.OthersServe(s, name) {
		return verdict.Pass()
	}
	if !s.Started() {
		return verdict.Do(action.NewStartRoll(s), fmt.Sprintf("%s cannot be created as it was, and Git asks for something else; the partition is above every pod, so none restarts yet", name))
	}
	if s.Observed.Set.Partition > ordinal {
		return verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: s.Observed.Set.Replicas, To: s.Observed.Set.Replicas, Partition: ordinal},
			fmt.Sprintf("the pod of %s does not exist, so it is created as Git asks for, and no other one restarts", name))
	}
	return verdict.Pass()
}

// recallMissing takes back what a missing pod was let go for, where Git no longer wants
// that: it comes back as what it was. Nothing that only waits stands above it.
func recallMissing(s *situation.Situation) verdict.Verdict {
	set := s.Observed.Set
	if s.Started() || set.Partition >= set.Replicas || set.CurrentTemplate == "" || !situation.Unwanted(s) {
		return verdict.Pass()
	}
	for _, name := range situation.MissingPods(s) {
		if naming.Ordinal(name) < set.Partition || !s.IsMember(name) || !situation.MayReturn(s) {
			continue
		}
		return verdict.Do(action.ResizeSet{SetUID: set.UID, From: set.Replicas, To: set.Replicas, Partition: set.Replicas},
			fmt.Sprintf("Git no longer wants what %s was let go for, and its pod does not exist; the partition goes back above all members", name))
	}
	return verdict.Pass()
}
