package volumes

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Places wants each of the members that are about to be restarted to have a node to come back
// to: one whose volume is on a node alone that takes no new pod would stay down. That is read
// then, and at no other time.
func Places(s *situation.Situation, restarts ...state.Pod) verdict.Verdict {
	for _, p := range restarts {
		switch {
		case !p.Ready: // it has nothing to lose
		case s.Observed.PlacesUnread:
			v := verdict.ConfirmIn(verdict.Instantly, "whether the nodes take their members back has not been read yet")
			v.Hold.Places = true
			return v
		case p.Shut != "":
			return verdict.Unhealthy(
				fmt.Sprintf("%s could not come back: its volume is on node %s alone, which %s; it is not restarted", p.Name, p.Shut, p.ShutBy),
				letIn(s, p)).At(p.Name)
		}
	}
	return verdict.Pass()
}

// letIn is how a person gives a member a node to come back to.
func letIn(s *situation.Situation, p state.Pod) string {
	way := fmt.Sprintf("let pods come to node %s (`kubectl uncordon %s` where it is cordoned), or revert the commit", p.Shut, p.Shut)
	if s.Small() { // no quorum without it
		return way
	}
	return way + fmt.Sprintf("; where that node is to go for good, take a backup, then delete volume claim %s and the pod of %s: its data goes, and a new member with the data of the others starts elsewhere", s.Claim(p.Name), p.Name)
}
