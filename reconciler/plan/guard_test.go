package plan

import "github.com/quorate/quorate/reconciler/state"

// guardSays is what the guard in a pod decides before etcd starts.
type guardSays int8

const (
	guardStarts guardSays = iota
	guardEmpty
	guardForeign
	guardOutdated
	guardOlder
	guardStranger
)

// guard decides whether the member of a pod may start on the volume that it has,
// by the record: a formed cluster's member on its own log only, and a learner
// that has been added on an empty volume.
func (w *world) guard(i int8) guardSays {
	c, r := &w.claims[i], &w.record
	joins := r.joining.there && r.joining.i == i && r.joining.id != 0
	switch {
	case !r.formed, w.unguarded:
		return guardStarts
	case c.data == strangers:
		return guardForeign
	case c.data != 0 && c.data == r.members[i] && c.older && !w.unnoted:
		return guardOlder
	case c.data != 0:
		if c.data == r.members[i] || (joins && c.data == r.joining.id) {
			return guardStarts
		}
		return guardOutdated
	case r.members[i] != 0 || (joins && r.joining.promoting):
		return guardEmpty
	case joins && w.listIsKnown():
		return guardStarts
	}
	return guardStranger
}

// listIsKnown reports whether the record lists exactly the members that etcd does:
// one that starts with another list is refused by etcd itself.
func (w *world) listIsKnown() bool {
	for i := range w.seats {
		want := w.record.members[i]
		if j := &w.record.joining; j.there && int(j.i) == i {
			want = j.id
		}
		if w.seats[i].id != want {
			return false
		}
	}
	return true
}

// lost reports whether a member's data is gone permanently.
func (w *world) lost(i int8) bool {
	c := &w.claims[i]
	return w.seats[i].id != 0 && !w.seats[i].learner && (c.data != w.seats[i].id || c.corrupt || c.older || c.pinned)
}

// losses counts the voters whose data is gone permanently.
func (w *world) losses() int8 {
	n := int8(0)
	for i := range int8(most) {
		if w.lost(i) {
			n++
		}
	}
	return n
}

// startable reports whether the etcd of a pod can start.
func (w *world) startable(i int8) bool {
	c, v := &w.claims[i], &variants[w.pods[i].template]
	return c.there && !c.pending && !c.terminating && !c.pinned && !c.shut && !c.corrupt && !v.unpulled && w.guard(i) == guardStarts && !w.stranded(i) && !w.foundApart(i)
}

// foundApart reports whether etcd ends as it starts, because its data differs from that of
// a peer: its own check, from 3.6 on.
func (w *world) foundApart(i int8) bool {
	for j := range int8(most) {
		if w.corrupt && w.version >= 6 && variants[w.pods[i].template].minor >= 6 && w.seats[i].id != 0 && w.claims[i].data == w.seats[i].id && j != i && w.runs(j) && (i == 0) != (j == 0) {
			return true
		}
	}
	return false
}

// stranded reports whether the controller has made a pod from a template that is
// older than the cluster version has become: etcd refuses to
// start then.
func (w *world) stranded(i int8) bool {
	t := w.pods[i].template
	// Deleted with its volumes in the midst of a roll, and taken back. Or all members
	// went the way that nobody has recorded, see goneWay.
	// Let loose for a downgrade that was cancelled then.
	cancelled := t == w.set.template && w.downgrading == 0
	return (!w.record.formed || w.ask.wipe || cancelled || w.tampered) && variants[t].minor < w.version
}

// lookAtTrouble is what Kubernetes says of a pod that does not run.
func (w *world) lookAtTrouble(i int8, out *state.Pod) {
	p, c := &w.pods[i], &w.claims[i]
	if c.pinned || c.unheard {
		out.NodeGone, out.NodeGoneSince, out.NodeStopped = true, noonPlus(c.since), c.pinned
	}
	if c.unheard {
		out.SilentNode = "n1"
	}
	if c.shut && w.ready(i) {
		out.Shut, out.ShutBy = "n1", "is cordoned"
	}
	if c.shut && i == 0 && w.surges() {
		out.Drained, out.DrainedBy = "n1", "is cordoned"
	}
	switch {
	case p.state == podDown && variants[p.template].dies:
		out.Trouble = "Error, exit code 2"
		if i%2 == 0 { // on some volumes what it says last sounds like damage
			out.Damage, out.Trouble = state.DamageCorrupt, "etcd panics"
		}
	case p.state == podDown && c.data != w.seats[i].id:
		out.Trouble = "CrashLoopBackOff"
	case p.state == podStopping && !p.served && w.guard(i) == guardForeign:
		out.Damage, out.Found = state.DamageForeign, "the volume holds what is not this member's"
		out.Trouble = "guard: " + out.Found
	case p.state != podStarting:
	case c.pending:
		out.Trouble = "not scheduled: unbound PersistentVolumeClaims"
	case c.pinned:
		out.Trouble = "not scheduled: the node is gone"
	case c.shut:
		out.Trouble = "not scheduled: the node is cordoned"
	case c.terminating:
		out.Trouble = "not scheduled: the claim is being deleted"
	case w.guard(i) == guardEmpty:
		out.Damage, out.Trouble = state.DamageEmpty, "guard: the volume is empty although this member had joined"
	case w.guard(i) == guardForeign:
		out.Damage, out.Found = state.DamageForeign, "the volume holds what is not this member's"
		out.Trouble = "guard: " + out.Found
	case w.guard(i) == guardOutdated:
		out.Damage, out.Trouble = state.DamageOutdated, "guard: the volume holds what an earlier member has left"
	case w.guard(i) == guardOlder:
		out.Damage, out.Trouble = state.DamageOlder, "guard: the volume is older than what this member had written"
	case w.guard(i) == guardStranger:
		out.Trouble = "guard: not a member"
	case variants[p.template].unpulled:
		out.Trouble, out.Unpulled = "ImagePullBackOff", true
	case c.corrupt:
		out.Damage, out.Trouble, out.Ran = state.DamageCorrupt, "etcd panics", true
	case w.stranded(i):
		out.Trouble, out.Ran = "the cluster is newer than this etcd", true
	}
	out.Barred = p.state == podStarting && out.Damage == "" && (out.Unpulled || c.pending || c.pinned || c.shut || c.terminating)
	out.Reported = !out.Ready
	if out.Damage != "" {
		out.DamageSince = noonPlus(c.since)
	}
}
