package volumes

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Claims keeps every member running whose volume would go with its pod: a claim that
// somebody has deleted stays for as long as its pod runs, and no longer. Nothing that
// stops a member begins before the claim of each one stays. It is told at rest, too: a
// drained node or an eviction does what quorate does not.
//
// What only adds a member is not stopped by it, because that is a way out; nor is the
// removal of the very member whose claim goes.
func Claims(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Set == nil {
		return verdict.Pass()
	}
	leaves := ""
	switch awake := s.Desired.Spec.State != schema.StateHibernated; {
	case awake && s.TooMany() && s.MendedByRoll() == nil: // it leaves before any other one restarts
		names := s.ByOrdinal()
		leaves = names[len(names)-1]
	case awake && !s.Rolling() && !s.Complete():
		return verdict.Pass()
	}
	return Stay(s, leaves)
}

// Stay wants the claim of each member but one to be there to stay.
func Stay(s *situation.Situation, but string) verdict.Verdict {
	var going []string
	first := situation.Remark{}
	for _, name := range s.ByOrdinal() {
		if why := goes(s, name); why != "" && name != but {
			going = append(going, name)
			if first.None() {
				first = situation.Remark{Member: name, Text: why}
			}
		}
	}
	if len(going) == 0 {
		return verdict.Pass()
	}
	text := first.Text
	if n := len(going) - 1; n > 0 {
		text += fmt.Sprintf(", and %s more", state.Plural(n, "member"))
	}
	return verdict.Unhealthy(text+"; nothing that stops a member is begun", wayOut(s, going)).About(first)
}

// goes tells why the data of a member goes when its pod stops, or "". A member that has
// no pod, or none that runs, has nothing more to lose by being stopped: others tell of it.
func goes(s *situation.Situation, member string) string {
	p, v := s.Observed.Pod(member), s.Observed.Volume(member)
	switch {
	case p == nil || !p.Ran:
		return ""
	case v != nil && v.Terminating:
		return fmt.Sprintf("volume claim %s is being deleted: the data of %s goes with its pod", v.Claim, member)
	case v != nil && !v.Bound && v.Trouble != "":
		return fmt.Sprintf("volume claim %s has lost its volume (%s): the data of %s goes with its pod", v.Claim, v.Trouble, member)
	case v == nil && p.Unclaimed:
		return fmt.Sprintf("volume claim %s does not exist any more: the data of %s goes with its pod", s.Claim(member), member)
	}
	return ""
}

// wayOut is how a person gets a claim that stays: Kubernetes takes no deletion back.
func wayOut(s *situation.Situation, going []string) string {
	if s.Small() { // without one of them there is no quorum that could replace it
		return fmt.Sprintf("take a backup now; then commit spec.replicas: 3, which copies the data to new members, and delete the pod of %s when they have joined: it comes back as a new member", going[0])
	}
	if down := needed(s, going[0]); down != "" {
		return fmt.Sprintf("keep that pod, and bring %s back first: without %s there is no quorum but with the data of %s", down, down, going[0])
	}
	way := fmt.Sprintf("take a backup now; then delete the pod of %s: its data goes, and a new member takes its place with the data of the others", going[0])
	if len(going) > 1 {
		way += "; go on with the next one only when all members are healthy again"
	}
	return way
}

// needed is a member that is down, without which the others have no quorum when another one
// goes; "" where they have one.
func needed(s *situation.Situation, goes string) (down string) {
	well := 0
	for _, name := range s.ByOrdinal() {
		p := s.Observed.Pod(name)
		switch {
		case name == goes:
		case p != nil && s.HealthyNow(*p):
			well++
		default:
			down = name
		}
	}
	if well >= state.Quorum(s.MemberCount()) {
		return ""
	}
	return down
}
