package record

import (
	"cmp"
	"time"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Membership is the part of a record about members that come and go. An
// intent stands here before etcd is asked, so that what a crash or a lost answer
// leaves behind can be distinguished from what was not wanted.
type Membership struct {
	// Founders is how many members the cluster begins with: a commit that comes
	// while it forms must not change that. 0 in records that do not say.
	Founders int32 `json:"founders,omitempty"`
	// Joining is the member that is being added, nil when there is none.
	Joining *Joining `json:"joining,omitempty"`
	// Leaving is the member that is being removed, nil when there is none.
	Leaving *Leaving `json:"leaving,omitempty"`
	// Replacing is the name of a member that was removed and whose place another
	// one is to take.
	Replacing string `json:"replacing,omitempty"`
	// Retired are the last IDs in hex of members that were removed, and whose
	// volume may still exist, by name.
	Retired map[string]string `json:"retired,omitempty"`
	// FailedJoin is the last learner that did not become a voter, until one does.
	FailedJoin *FailedJoin `json:"failedJoin,omitempty"`
	// Hibernated says that the members sleep: their volumes are all there is.
	Hibernated bool `json:"hibernated,omitempty"`
	// Deleted says that everything but the volumes is gone or going.
	Deleted bool `json:"deleted,omitempty"`
}

// Joining is a member that joins.
type Joining struct {
	// Member is its name.
	Member string `json:"member"`
	// ID of the learner in hex; empty until etcd has added it. Only with an ID
	// may the member start on an empty volume.
	ID string `json:"id"`
	// Since is when it was decided.
	Since time.Time `json:"since"`
	// Promoting says that etcd may have made it a voter already: from then on an
	// empty volume is a loss.
	Promoting bool `json:"promoting,omitempty"`
	// Replace says that it takes the place of a member that was removed.
	Replace bool `json:"replace,omitempty"`
}

// Leaving is a member that leaves.
type Leaving struct {
	// Member is its name, and ID its ID in hex.
	Member string `json:"member"`
	ID     string `json:"id"`
	// Why says in a clause what it is removed for.
	Why string `json:"why"`
	// Replace says that another one is to take its place.
	Replace bool `json:"replace,omitempty"`
	// Serving says that it served when that was decided: that it answers is no reason to
	// keep it.
	Serving bool `json:"serving,omitempty"`
	// Asked says that nothing is wrong with it, and Git asks for another one. An older quorate
	// does not note it.
	Asked bool `json:"asked,omitempty"`
	// Since is when it was decided.
	Since time.Time `json:"since"`
}

// FailedJoin is a learner that did not become a voter.
type FailedJoin struct {
	Member string    `json:"member"`
	At     time.Time `json:"at"`
	// Times is how often in a row.
	Times int `json:"times"`
}

// FoundersOf is how many members the cluster begins with.
func (r Membership) FoundersOf(c schema.EtcdCluster) int {
	return int(cmp.Or(r.Founders, c.Spec.Replicas))
}

// addTo adds the part to the record in the planner's words.
func (r Membership) addTo(p *state.Record) {
	p.Founders, p.Replacing, p.Retired, p.Hibernated, p.Deleted = r.Founders, r.Replacing, r.Retired, r.Hibernated, r.Deleted
	if j := r.Joining; j != nil {
		p.Joining = &state.Joining{Member: j.Member, ID: j.ID, Since: j.Since, Promoting: j.Promoting, Replace: j.Replace}
	}
	if l := r.Leaving; l != nil {
		p.Leaving = &state.Leaving{Member: l.Member, ID: l.ID, Why: l.Why, Replace: l.Replace, Serving: l.Serving, Asked: l.Asked, Since: l.Since}
	}
	if f := r.FailedJoin; f != nil {
		p.FailedJoin = &state.FailedJoin{Member: f.Member, At: f.At, Times: f.Times}
	}
}
