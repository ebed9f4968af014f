package record

import (
	"maps"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
)

// BeginJoin notes that a member joins. It reports whether the record is about that.
func (r *Record) BeginJoin(a action.BeginJoin, now time.Time) bool {
	switch {
	case r.Joining != nil:
		return r.Joining.Member == a.Member
	case r.Leaving != nil, r.Members[a.Member] != "":
		return false
	}
	r.Joining = &Joining{Member: a.Member, Replace: a.Replace, Since: now.UTC()}
	if r.Replacing == a.Member {
		r.Replacing = ""
	}
	return true
}

// LearnerIs notes the ID that etcd gave the member that is joining.
func (r *Record) LearnerIs(member, id string) bool {
	if r.Joining == nil || r.Joining.Member != member || (r.Joining.ID != "" && r.Joining.ID != id) {
		return false
	}
	j := *r.Joining
	j.ID, r.Joining = id, &j
	return true
}

// Promoting notes that the learner may be a voter.
func (r *Record) Promoting(a action.PromoteMember) bool {
	if r.Joining == nil || r.Joining.Member != a.Member || r.Joining.ID != a.ID {
		return false
	}
	j := *r.Joining
	j.Promoting, r.Joining = true, &j
	return true
}

// EndJoin notes that a member has joined. It reports whether the record is about that.
func (r *Record) EndJoin(a action.EndJoin) bool {
	if r.Members[a.Member] == a.ID && r.Joining == nil {
		return true
	}
	if r.Joining == nil || r.Joining.Member != a.Member || r.Joining.ID != a.ID {
		return false
	}
	r.Members, r.Retired = maps.Clone(r.Members), maps.Clone(r.Retired)
	delete(r.Retired, a.Member)
	r.Members[a.Member], r.Joining, r.FailedJoin = a.ID, nil, nil
	return true
}

// DropLearner notes that a learner was dropped. It reports whether the record is about that.
func (r *Record) DropLearner(a action.DropLearner, now time.Time) bool {
	if r.Joining == nil {
		return true
	}
	if r.Joining.Member != a.Member || r.Joining.ID != a.ID {
		return false
	}
	r.Joining = nil
	if a.Failed {
		times := 1
		if r.FailedJoin != nil && r.FailedJoin.Member == a.Member {
			times += r.FailedJoin.Times
		}
		r.FailedJoin = &FailedJoin{Member: a.Member, At: now.UTC(), Times: times}
	}
	if a.Retire && a.ID != "" {
		r.retire(a.Member, a.ID)
	}
	if a.Replace {
		r.Replacing = a.Member
	}
	return true
}

// BeginLeave notes that a member leaves. It reports whether the record is about that.
func (r *Record) BeginLeave(a action.BeginLeave, now time.Time) bool {
	switch l := r.Leaving; {
	case l != nil:
		return l.Member == a.Member && l.ID == a.ID
	case r.Joining != nil, r.Members[a.Member] != a.ID:
		return false
	}
	r.Leaving = &Leaving{Member: a.Member, ID: a.ID, Why: a.Why, Replace: a.Replace, Serving: a.Serving, Asked: a.Asked, Since: now.UTC()}
	return true
}

// CancelLeave notes that a member stays after all. It reports whether the record is about that.
func (r *Record) CancelLeave(a action.CancelLeave) bool {
	if l := r.Leaving; l != nil && (l.Member != a.Member || l.ID != a.ID) {
		return false
	}
	r.Leaving = nil
	return true
}

// EndLeave notes that a member has left. It reports whether the record is about that.
func (r *Record) EndLeave(a action.EndLeave) bool {
	switch l := r.Leaving; {
	case l == nil:
		return r.Members[a.Member] == "" && r.Retired[a.Member] == a.ID
	case l.Member != a.Member || l.ID != a.ID:
		return false
	}
	r.Members, r.Leaving = maps.Clone(r.Members), nil
	delete(r.Members, a.Member)
	r.retire(a.Member, a.ID)
	if a.Replace {
		r.Replacing = a.Member
	}
	return true
}

// EndReplace notes that a replaced member is back. It reports whether the record is about that.
func (r *Record) EndReplace(a action.EndReplace) bool {
	if r.Replacing != "" && r.Replacing != a.Member {
		return false
	}
	r.Replacing = ""
	return true
}

// retire notes whose data is on the volume that a member leaves behind.
func (r *Record) retire(member, id string) {
	r.Retired = maps.Clone(r.Retired)
	if r.Retired == nil {
		r.Retired = map[string]string{}
	}
	r.Retired[member] = id
}
