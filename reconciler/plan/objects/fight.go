package objects

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Fight reports an object that another writer changes again and again, that is refused, or that
// is left. Nothing new begins meanwhile; what has begun continues, and so does all that
// repairs. Not even that where admission changes what members start with, or where others may
// stop members beside.
func Fight(s *situation.Situation) verdict.Verdict {
	continues := s.Rolling() && !s.BeginsDisruption()
	for _, o := range s.Observed.Objects {
		switch {
		case Bearable(s, o): // a warning tells
		case continues && !misleads(s, o) && !shared(s, o):
		case s.Contested(o), refused(s, o):
			return await(s, o)
		}
	}
	return verdict.Pass()
}

// Bearable reports whether admission changes nothing of an object but what no member's data or
// quorum hangs on.
func Bearable(s *situation.Situation, o state.Object) bool {
	return s.Contested(o) && !o.Left && o.Fight.ByAdmission() && o.Weight == state.WeightLight
}

// misleads reports whether the template that members start with is not what quorate has
// applied: Drift lets through nothing else of a StatefulSet.
func misleads(s *situation.Situation, o state.Object) bool {
	return o.Kind == "StatefulSet" && s.Contested(o)
}

// shared reports whether evictions may take members beside the one that a roll stops next, because
// the budget is not as it should be. What heals waits for nothing, and a revert stops no member.
func shared(s *situation.Situation, o state.Object) bool {
	if o.Kind != state.KindBudget || o.State != state.ObjectMissing && o.Weight == state.WeightLight {
		return false
	}
	return s.Started() && situation.Exclusive(s.Desired.Spec, s.Observed, s.Now) && s.MendedByRoll() == nil && !s.EndsNoSpace()
}

// Warnings tell what admission makes of objects, where nothing waits for that.
func Warnings(s *situation.Situation) []situation.Remark {
	var told []situation.Remark
	for _, o := range s.Observed.Objects {
		if Bearable(s, o) {
			told = append(told, situation.Remark{Text: mutated(o) + "; no member's safety hangs on that, so nothing waits for it; " + exempt(o)})
		}
	}
	for _, p := range s.Observed.Pods {
		if p.Mutated != "" && s.IsMember(p.Name) {
			told = append(told, situation.Remark{Member: p.Name, Text: fmt.Sprintf("pod %s: the API server has made something else of the StatefulSet's template: %s; "+
				"exempt the pod from the policy or webhook that does it, or write into the file what it wants; a pod that exists keeps it until its member is restarted", p.Name, p.Mutated)})
		}
	}
	return told
}

// mutated is what admission makes of an object.
func mutated(o state.Object) string {
	return fmt.Sprintf("%s %s: the API server changes what quorate applies before it is stored: %s", o.Kind, o.Name, o.Fight.Fields)
}

// exempt is what a person can do about admission.
func exempt(o state.Object) string {
	return fmt.Sprintf("exempt %s %s from the policy or webhook that does it (kubectl get mutatingadmissionpolicies,mutatingwebhookconfigurations), or write into the file what it wants", o.Kind, o.Name)
}

// await is the hold until an object is put back next, by quorate or by a person.
func await(s *situation.Situation, o state.Object) verdict.Verdict {
	switch f := o.Fight; {
	case o.Left:
		v := verdict.Refuse(fmt.Sprintf("%s %s is %s: %s; spec.drift.mode is Detect, so it is left as it is", o.Kind, o.Name, o.State, o.Detail),
			"put it back by hand, write into the file what it should be, or set spec.drift.mode to Correct")
		v.Hold.Since = o.ChangedAt
		return v
	case refused(s, o):
		return Refused(s, o)
	case f.ByAdmission():
		return until(s, verdict.Refuse(mutated(o)+"; members start with that, or find each other by it, so none is restarted", exempt(o)), f.Until)
	default:
		v := verdict.WaitUntil(fmt.Sprintf("%s %s: %s was put back again and again, and changed again by %s each time", o.Kind, o.Name, f.Fields, f.Manager), o.ChangedAt).
			Measured("%d times; it is put back next at %s", f.Times, f.Until.UTC().Format(time.RFC3339))
		v.Hold.Do = "stop " + f.Manager + " from changing it, or write what it wants into the file"
		v.Hold.Again = min(f.Until.Sub(s.Now), verdict.Rarely)
		return v
	}
}

// Refused is the hold until an object that was not taken is tried again.
func Refused(s *situation.Situation, o state.Object) verdict.Verdict {
	v := until(s, verdict.Refuse(fmt.Sprintf("%s %s is not taken as quorate applies it: %s", o.Kind, o.Name, o.Refused.Problem),
		"let the policy, quota or webhook that the message names take it, or write into the file what it takes; where the object is somebody else's, rename the cluster or remove that object"), o.Refused.Until)
	v.Hold.Since = o.Refused.Since
	return v
}

// until is a hold with the time of the next try.
func until(s *situation.Situation, v verdict.Verdict, at time.Time) verdict.Verdict {
	return v.Measured("it is tried again at %s", at.UTC().Format(time.RFC3339)).Again(max(0, min(at.Sub(s.Now), verdict.Rarely)))
}

// Forming is about a cluster that is being formed: nothing of it may differ that its members start
// with, and nothing that they need may be missing because it is not taken.
func Forming(s *situation.Situation) verdict.Verdict {
	for _, o := range s.Observed.Objects {
		switch heavy := o.Weight > state.WeightLight; {
		case refused(s, o), heavy && s.Contested(o):
			return await(s, o)
		case heavy:
			return putBack(s, o)
		}
	}
	return verdict.Pass()
}
