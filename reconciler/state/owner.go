package state

import "fmt"

// Owner is what acts on a cluster: one daemon that follows one place in Git.
type Owner struct {
	// Source is what it follows: REPOSITORY@BRANCH:PATH, without credentials;
	// empty for none.
	Source string
	// Instance is the daemon's --instance.
	Instance string
	// Claim counts the changes of owner from 1 on; 0 is a daemon that owns nothing
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

// Nobody reports whether no owner is named.
func (o Owner) Nobody() bool { return o.Source == "" }

// Is reports whether two are the same daemon at the same place, whatever the claim.
func (o Owner) Is(other Owner) bool { return o.Source == other.Source && o.Instance == other.Instance }
