package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/stalled"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
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
	m := situation.MissingOf(s)
	switch {
	case len(m.Names) == 0:
		return verdict.Pass()
	case m.Refusal == nil:
		return stalled.Creation(s, m.Names[0])
	}
	if v := createAsWanted(s, m.Refused[len(m.Refused)-1]); !v.Silent() {
		return v
	}
	return refusedPod(s, m.Refused[0], *m.Refusal)
}

// refusedPod tells of a pod that Kubernetes refuses, in its words. One that has only just
// gone is not in them yet.
func refusedPod(s *situation.Situation, name string, refusal state.PodRefusal) verdict.Verdict {
	if s.Now.Sub(s.Observed.Set.StatusAt) < situation.TroubleGrace {
		return stalled.Creation(s, name)
	}
	h := &decision.Hold{Kind: decision.Unhealthy, Member: name, Since: refusal.Since, Again: verdict.Soon}
	h.Message = fmt.Sprintf("the pod of %s cannot be created: %s", name, refusal.Why)
	if r := s.Observed.Round(); r != nil && len(r.Alarms) > 0 {
		h.Message += "; meanwhile it has the alarm " + situation.AlarmList(r.Alarms) + ", which is dealt with when all members are well"
	}
	h.Do = "let Kubernetes admit it (quota, Pod Security, policies, priority class), or commit what it admits"
	switch ordinal := naming.Ordinal(name); {
	case s.RollOpen() && ordinal >= s.Observed.Set.Partition:
		h.Kind = decision.Stopped
		h.Message = fmt.Sprintf("the roll stopped at %s: %s", name, h.Message)
		h.Do = "revert the commit to go back, or " + h.Do
	case !s.OthersHave(ordinal, s.Desired.Template):
		h.Do = fmt.Sprintf("let Kubernetes admit it as it was (quota, Pod Security, policies, priority class): what Git asks for would reach %s first, which serves", s.Outdated()[0].Name)
	}
	return verdict.Verdict{Hold: h}
}

// createAsWanted gives a refused pod the template that Git asks for, where it is another
// than the one that it would be created with, and where no other pod stops for that: a
// pod that does not exist has no order to keep.
func createAsWanted(s *situation.Situation, name string) verdict.Verdict {
	set, ordinal := s.Observed.Set, naming.Ordinal(name)
	if !s.Rolling() || s.Versioned() || set.CurrentVersion != s.Desired.Spec.Version ||
		!s.OthersHave(ordinal, s.Desired.Template) || !s.OthersHealthy([]situation.Loss{{Member: name}}).None() {
		return verdict.Pass()
	}
	if !s.Started() {
		return verdict.Do(action.NewStartRoll(s), fmt.Sprintf("%s does not run as it was, and Git asks for something else; the partition is above every pod, so none restarts yet", name))
	}
	if set.Partition > ordinal {
		return verdict.Do(action.ResizeSet{SetUID: set.UID, From: set.Replicas, To: set.Replicas, Partition: ordinal},
			fmt.Sprintf("%s does not run, so its pod is created as Git asks for, and no other one restarts", name))
	}
	return verdict.Pass()
}

// recallMissing takes back what a missing pod was let go for, where Git no longer wants
// that: it comes back as what it was. Nothing that only waits stands above it.
func recallMissing(s *situation.Situation, names []string) verdict.Verdict {
	set := s.Observed.Set
	if !unwanted(s) || !mayReturn(s) {
		return verdict.Pass()
	}
	for _, name := range names {
		if naming.Ordinal(name) >= set.Partition {
			return verdict.Do(action.ResizeSet{SetUID: set.UID, From: set.Replicas, To: set.Replicas, Partition: set.Replicas},
				fmt.Sprintf("Git no longer wants what %s was let go for, and its pod does not exist; the partition goes back above all members", name))
		}
	}
	return verdict.Pass()
}

// unwanted reports whether Git certainly does not want the template of the StatefulSet any
// more, also while pods are missing: which waypoint is due is known by the members only.
func unwanted(s *situation.Situation) bool {
	set := s.Observed.Set
	return s.Git.Template != set.Template && (s.Git.Template == set.CurrentTemplate || state.Minor(s.Git.Spec.Version) == state.Minor(set.Version))
}

// mayReturn reports whether a member whose pod does not exist may come back as what it was
// before the roll under way: a binary of the same minor, or one that etcd still takes
// back, because another member that answers runs that minor.
func mayReturn(s *situation.Situation) bool {
	was := state.Minor(s.Observed.Set.CurrentVersion)
	return was != "" && (was == state.Minor(s.Observed.Set.Version) || was == state.Minor(s.ClusterVersion()) && s.Reports(was))
}
