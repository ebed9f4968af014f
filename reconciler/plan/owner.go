package plan

import "fmt"

// Owner is who looks after a cluster: one daemon that follows one place in Git.
type Owner struct {
	// Source is what it follows: REPOSITORY@BRANCH:PATH, without credentials;
	// empty for nobody.
	Source string
	// Instance is the daemon's --instance.
	Instance string
	// Claim counts the changes of owner from 1 on; 0 is somebody who owns nothing
	// yet.
	Claim int
}

// String is the name by which spec.takeOver calls an owner.
func (o Owner) String() string {
	name := o.Source + "#" + o.Instance
	if o.Claim == 0 {
		return name
	}
	return fmt.Sprintf("%s/%d", name, o.Claim)
}

// Nobody says whether no owner is named.
func (o Owner) Nobody() bool { return o.Source == "" }

// Is says whether two are the same daemon at the same place, whatever the claim.
func (o Owner) Is(other Owner) bool { return o.Source == other.Source && o.Instance == other.Instance }

// owner lets one daemon that follows one place in Git act on a cluster. A record
// from before there were owners belongs to whoever comes first. Another owner
// gives way to the word of a person only, which names it by its claim: the next
// claim has another number, so the word works once.
func owner(s *situation) verdict {
	if s.d.Owner.Nobody() || s.o.Record == nil {
		return pass() // nobody will act on this plan, or there is nothing to own yet
	}
	was := s.o.Record.Owner
	switch {
	case was == nil:
		return do(ClaimCluster{To: s.claimant()}, "its record names no owner yet, and from now on only one may act")
	case was.Is(s.d.Owner):
		return pass()
	case s.d.Spec.TakeOver == was.String():
		return do(ClaimCluster{From: *was, To: s.claimant()}, "spec.takeOver names its owner, so it changes hands")
	}
	return refuse(s.notOurs(*was), fmt.Sprintf(
		"remove the file here; or let go of the cluster there with mode: Observe, and write spec.takeOver: %q here", was))
}

// claimant is the owner that the next claim makes.
func (s *situation) claimant() Owner {
	to := s.d.Owner
	if to.Nobody() {
		return Owner{}
	}
	to.Claim = 1
	if s.o.Record != nil && s.o.Record.Owner != nil {
		to.Claim = s.o.Record.Owner.Claim + 1
	}
	return to
}

// notOurs names both owners.
func (s *situation) notOurs(was Owner) string {
	text := fmt.Sprintf("the cluster belongs to %s, and this is %s", was, s.d.Owner)
	if named := s.d.Spec.TakeOver; named != "" {
		text += fmt.Sprintf(" (spec.takeOver names %s, who does not own it)", named)
	}
	return text
}
