// Package surge says when the only member of a cluster is replaced by way of a second one, so
// that one serves at any time, and how far that is. It is pure, derives all of that from what is
// there, and decides nothing.
//
// The names of a StatefulSet's pods begin at 0, so that the data is copied twice: to member 1,
// and from it to the next member 0. The other way, .spec.ordinals.start, copies once and leaves
// the cluster with another first ordinal each time; all that counts members from 0, the budget,
// the certificates of others and the guards in pods that run among it, would have to know that.
// This way is made of the steps that replace and scale any cluster.
//
//	members   member 0         member 1                 then
//	0         stays            –                        nothing
//	0         goes, see Goes   –                        member 1 joins, as Git wants it
//	0 1       goes             is as Git wants it       member 0 leaves, and its volume with it;
//	                                                    a drain of its node may take its pod
//	0 1       goes             is as nobody wants it,   member 1 leaves; it begins again
//	                           or its claim goes
//	1         –                any                      member 0 joins again, as Git wants it
//	0 1       stays            any                      member 1 leaves
//
// While there are two voters each of them is needed: that lasts from the promotion of the one to
// the removal of the other, and the learner has run for spec.upgrade.soak before it begins. A
// commit that is taken back leads to the last row from any other.
package surge

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// Members is how many members there are while one is replaced by way of another.
const Members = 2

// LeaveTime is how long clients may take to be led to the member that stays, after it was
// recorded that the other one leaves: kube-proxy writes its rules at most once a second.
// Connections that last are cut by the removal, and come back to a member that leads already.
const LeaveTime = 3 * time.Second

// Wanted reports whether a file asks for it.
func Wanted(spec schema.ClusterSpec) bool {
	return spec.Replicas == 1 && spec.Upgrade.MaxSurge > 0 && (spec.State == "" || spec.State == schema.StateRunning)
}

// Begun reports whether a file asks for it, and there is more than the member that stays.
func Begun(spec schema.ClusterSpec, r *state.Record) bool {
	return Wanted(spec) && r.Formed() && len(r.Members) == Members
}

// Due reports whether a cluster is to have the second member now, for the stop that is due of
// what Git wants.
func Due(d state.Desired, stop state.Waypoint, o state.Observed) bool {
	r := o.Record
	if !Wanted(d.Spec) || !r.Formed() || o.Set == nil || r.Recovering != nil || r.Hibernated || r.Deleted || len(r.Members) > Members {
		return false
	}
	first, second := naming.Member(d.Name, 0), naming.Member(d.Name, 1)
	switch {
	case r.Members[first] == "":
		return r.Members[second] != ""
	case Goes(d, o) == "" || InPlace(d, stop, o) != "":
		return false
	case r.Members[second] != "":
		return !unwanted(d, o, second)
	case r.Joining != nil && r.Joining.Member == second:
		return true
	}
	return serves(o, first)
}

// serves reports whether a member whose pod is there does by its pod and its own word: one that
// does not has nothing to lose, and a restart may be what it needs.
func serves(o state.Observed, member string) bool {
	p, m := o.Pod(member), o.Round().Member(member)
	return p.Ready && !p.Terminating && m != nil && m.Problem == ""
}

// Goes is why member 0 does not stay as it is, in a clause, or "".
func Goes(d state.Desired, o state.Observed) string {
	p := o.Pod(naming.Member(d.Name, 0))
	switch {
	case p == nil || o.Set == nil:
		return ""
	case outdated(d, o, *p) && p.Version != d.Spec.Version:
		return fmt.Sprintf("%s gets etcd %s", p.Name, d.Spec.Version)
	case outdated(d, o, *p):
		return p.Name + " gets another template"
	case p.Drained != "":
		return fmt.Sprintf("%s is to leave node %s, which %s", p.Name, p.Drained, p.DrainedBy)
	case misplaced(d, o, p.Name):
		return fmt.Sprintf("%s is to have a volume of class %s", p.Name, o.Set.ClaimClass)
	}
	return ""
}

// DrainAsks is how long the pod of a member that has left is kept for a drain of its node: twice
// the time between two requests of kubectl drain. That asks by name, and goes on with the pod that
// comes next, on another node, where it never sees the pod go.
const DrainAsks = 10 * time.Second

// Evictable is the pod that no disruption budget keeps, or "": that of member 0, which is no
// member any more by the record and by etcd's own list, on a node that is drained.
func Evictable(cluster string, spec schema.ClusterSpec, o state.Observed) string {
	first, round := naming.Member(cluster, 0), o.Round()
	p := o.Pod(first)
	if !Wanted(spec) || o.Record == nil || o.Record.Replacing != first || p == nil || p.Drained == "" ||
		round == nil || round.Problem != "" || round.Member(first) != nil {
		return ""
	}
	return first
}

// Drains reports whether member 0 goes for nothing but its node.
func Drains(d state.Desired, o state.Observed) bool {
	p := o.Pod(naming.Member(d.Name, 0))
	return p != nil && p.Drained != "" && !outdated(d, o, *p)
}

// outdated reports whether a pod is not as Git wants it, or as admission makes it by now in the
// midst of a roll.
func outdated(d state.Desired, o state.Observed, p state.Pod) bool {
	halfway := o.Set.CurrentTemplate != o.Set.Template || o.Set.Partition < o.Set.Replicas
	return p.Template != d.Template || p.Stale && halfway
}

// unwanted reports whether a member is as Git does not want it, or no more, or its data goes with
// its pod.
func unwanted(d state.Desired, o state.Observed, member string) bool {
	p, v := o.Pod(member), o.Volume(member)
	return p != nil && (outdated(d, o, *p) || p.Unclaimed || v != nil && v.Terminating)
}

// misplaced reports whether Git asks for a volume of another class than the member has.
func misplaced(d state.Desired, o state.Observed, member string) bool {
	wanted, v := state.StorageClass(d.Spec.Storage), o.Volume(member)
	return d.Spec.Storage.ClassChange == schema.ClassChangeReplace && o.Set.ClaimClass == wanted && v != nil && v.Bound && !v.Terminating && v.Class != wanted
}

// InPlace is why the member restarts in place all the same, in a clause, or "".
//
//	it restarts                      because
//	to an older minor                etcd goes down with the members that it has
//	to 3.7, where 3.5 has run        the leader would send a new member what 3.5 has logged, at
//	                                 which 3.7 panics; a restarted one reads what was saved since
//	while the mode of TLS changes    peers are moved one by one in the member list
func InPlace(d state.Desired, stop state.Waypoint, o state.Observed) string {
	r, round := o.Record, o.Round()
	to, _ := release.Parse(d.Spec.Version)
	oldest, limited := release.OldestLog(to)
	switch {
	case round != nil && (round.Downgrading || state.Older(to.Line(), state.Minor(round.ClusterVersion))):
		return "etcd goes down to an older minor with the members that it has"
	case stop.Flush, limited && (r.BornOn == "" || state.Older(r.BornOn, oldest)) && climbs(o, to):
		return fmt.Sprintf("the log may hold entries from before %s, at which a new member would panic", oldest)
	case changesMode(d, o):
		return "spec.tls.mode changes"
	}
	return ""
}

// climbs reports whether a member runs an older minor.
func climbs(o state.Observed, to release.Version) bool {
	return slices.ContainsFunc(o.Pods, func(p state.Pod) bool { return state.Older(state.Minor(p.Version), to.Line()) })
}

// changesMode reports whether members are moved from plain text to TLS, or back.
func changesMode(d state.Desired, o state.Observed) bool {
	is := o.Transport
	return is.Also != "" || is.Own != "" && is.Own != d.Spec.TLS.Mode || len(o.Record.PeerURLs) > 0
}

// Cancelled reports whether member 0 is to stay although it was to leave for a member that takes
// its place: the commit was taken back, its node takes pods again, or Git wants no member as the
// other one is, which would leave the cluster with another minor than the one it is to go to.
func Cancelled(d state.Desired, o state.Observed, l state.Leaving) bool {
	return d.Spec.Replicas == 1 && len(o.Record.Members) == Members && l.Replace && l.Serving &&
		l.Member == naming.Member(d.Name, 0) && (Goes(d, o) == "" || unwanted(d, o, naming.Member(d.Name, 1)))
}

// Serves is the only member to which clients are led, as a pod's name, while another one comes
// or goes; "" where they are led to all that are ready. Before a member leaves they find the one
// that stays; a learner would refuse them.
func Serves(spec schema.ClusterSpec, r *state.Record) string {
	if !Wanted(spec) || !r.Formed() || r.Joining == nil && r.Leaving == nil && r.Replacing == "" {
		return ""
	}
	var stays []string
	for name := range r.Members {
		if r.Leaving == nil || r.Leaving.Member != name {
			stays = append(stays, name)
		}
	}
	if len(stays) != 1 {
		return ""
	}
	return stays[0]
}
