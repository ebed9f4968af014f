package situation

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// Loss is a member that does not come back on its own.
type Loss struct {
	Member string
	// Why is what a later pass would say, too, and Detail what this one has
	// measured.
	Why, Detail string
	// since is when it was lost; zero for a loss that cannot pass: one
	// that Git itself has asked for, or that was seen twice.
	Since time.Time
	// asked: nothing is lost, and Git asks for another member.
	Asked bool
	// NodeSilent says that its node may be back, and the data with it: nodes restart.
	NodeSilent bool
	// Serving says that the member serves, and is replaced all the same: Git asks for
	// that, or it holds other data than the others.
	Serving bool
}

// LossOf returns why the data of a pod is lost permanently, or nil.
func (s *Situation) LossOf(p state.Pod) *Loss {
	switch {
	case Unproven(s, p):
		return nil
	case p.Damage == state.DamageEmpty:
		return &Loss{Member: p.Name, Since: p.DamageSince, Why: p.Name + " has lost its data: its volume is empty"}
	case p.Damage == state.DamageOutdated:
		return &Loss{Member: p.Name, Since: p.DamageSince, Why: "the volume of " + p.Name + " holds what an earlier member of that name has left"}
	case p.Damage == state.DamageOlder:
		return &Loss{Member: p.Name, Since: p.DamageSince, Why: "the volume of " + p.Name + " is older than what it had written, as if a snapshot was put back"}
	case p.Damage == state.DamageCorrupt:
		return &Loss{Member: p.Name, Since: p.DamageSince, Why: "the data of " + p.Name + " is corrupt"}
	case p.Damage == state.DamageLost:
		return &Loss{Member: p.Name, Since: p.DamageSince, Why: "the volume behind the claim of " + p.Name + " does not exist any more"}
	case s.Formed() && !p.Ran && s.Observed.Volume(p.Name).Anew(): // it has run, so that the claim before had a volume
		v := s.Observed.Volume(p.Name)
		return &Loss{Member: p.Name, Since: v.Created, Why: fmt.Sprintf("volume claim %s was made anew and has no volume: "+
			"the data of %s is gone with the one before", v.Claim, p.Name)}
	case p.NodeStopped:
		return &Loss{Member: p.Name, Since: p.NodeGoneSince, Why: "the node that has the volume of " + p.Name + " is gone"}
	case p.NodeGone:
		return &Loss{Member: p.Name, Since: p.NodeGoneSince, NodeSilent: true, Why: "the node that has the volume of " + p.Name + " does not report"}
	}
	return nil
}

// Unproven reports whether a member only sounds as if its data was damaged: etcd says so, and
// not the guard, with another template than that of the last roll that ended. That it ran
// with, and may still start with: a revert tells whether it is the data.
func Unproven(s *Situation, p state.Pod) bool {
	if p.Damage != state.DamageCorrupt || p.Found != "" || s.Observed.Set == nil {
		return false
	}
	before := s.Observed.Set.CurrentTemplate
	return before != "" && p.Template != before && !state.Older(state.Minor(s.Observed.Set.CurrentVersion), state.Minor(s.ClusterVersion()))
}

// OthersHealthy is about a member that is not lost and not healthy either.
func (s *Situation) OthersHealthy(lost []Loss) Remark {
	for _, name := range s.ByOrdinal() {
		p := s.Observed.Pod(name)
		switch {
		case ContainsLoss(lost, name):
		case p == nil:
			return Remark{Member: name, Text: "the pod of " + name + " does not exist"}
		case !s.HealthyNow(*p):
			cause := s.CauseOf(*p)
			return Remark{name, name + ": " + cause.Text, cause.Detail}
		}
	}
	return Remark{}
}

// ContainsLoss reports whether a member is among the lost.
func ContainsLoss(lost []Loss, member string) bool {
	return slices.ContainsFunc(lost, func(l Loss) bool { return l.Member == member })
}

// Vacant is the lowest place below an ordinal that has a pod and no member: nothing
// makes that pod ready. Empty for none.
func (s *Situation) Vacant(below int32) string {
	for ordinal := range below {
		name := naming.Member(s.Desired.Name, ordinal)
		if p := s.Observed.Pod(name); !s.IsMember(name) && p != nil && !p.Ready {
			return name
		}
	}
	return ""
}

// OthersHave reports whether no pod of a member would be replaced if everything from
// the ordinal on got the template.
func (s *Situation) OthersHave(ordinal int32, template string) bool {
	for _, p := range s.Observed.Pods {
		if s.IsMember(p.Name) && p.Ordinal >= ordinal && p.Template != template {
			return false
		}
	}
	return true
}
