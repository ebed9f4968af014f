package clock

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/state"
)

// Stamp is one time that lies ahead of the clock.
type Stamp struct {
	// What has the time, in a few words such as "pod orders-1 (ready since)".
	What string
	// At is the time as it stands there.
	At time.Time
	// Noted says that the record knows since when quorate sees it, or that nothing
	// waits for it.
	Noted bool
}

// worth is what a time that lies ahead of the clock counts as.
type worth int

const (
	// asSeen counts it as the time when quorate saw it first: what waits since then
	// waits once, as long as it is to wait.
	asSeen worth = iota
	// asOld counts it as long ago: what it vouches for may be of any age.
	asOld
	// asNow is for what is told and never waited for.
	asNow
)

// Settle replaces each time that lies ahead of the clock by one that can be counted on, and
// returns these times as they stand. What it does not replace is shared with o.
func Settle(o state.Observed, now time.Time) (state.Observed, []Stamp) {
	var ahead []Stamp
	visit(&o, func(kind, name, what string, at *time.Time, as worth) {
		if Ahead(*at, now) {
			s := Stamp{What: describe(kind, name, what), At: *at}
			s.Noted = as != asSeen || o.Record == nil || !seen(o.Record.Seen, s, now).IsZero()
			ahead = append(ahead, s)
		}
	})
	if len(ahead) == 0 {
		return o, nil
	}
	o = clone(o)
	visit(&o, func(kind, name, what string, at *time.Time, as worth) {
		if Ahead(*at, now) {
			*at = instead(o.Record, Stamp{What: describe(kind, name, what), At: *at}, as, now)
		}
	})
	return o, ahead
}

// instead is what a time that lies ahead of the clock is replaced by.
func instead(r *state.Record, s Stamp, as worth, now time.Time) time.Time {
	if as == asOld {
		return time.Time{}
	}
	if r != nil && as == asSeen {
		if first := seen(r.Seen, s, now); !first.IsZero() {
			return first
		}
	}
	return now
}

// seen is when quorate saw a time first, by its own clock; zero where that is not
// noted, or was noted by a clock that was ahead itself.
func seen(noted []state.Seen, s Stamp, now time.Time) time.Time {
	for _, n := range noted {
		if n.What == s.What && n.Stamp.Equal(s.At) && !Ahead(n.At, now) {
			return n.At
		}
	}
	return time.Time{}
}

// visit calls each with every time in o that a machine has noted as its "now".
func visit(o *state.Observed, each func(kind, name, what string, at *time.Time, as worth)) {
	for i := range o.Pods {
		p := &o.Pods[i]
		each("pod", p.Name, "created", &p.Created, asSeen)
		each("pod", p.Name, "ready since", &p.ReadySince, asSeen)
		each("pod", p.Name, "runs since", &p.RunsSince, asSeen)
		each("pod", p.Name, "not ready since", &p.UnreadySince, asSeen)
		each("pod", p.Name, "damaged since", &p.DamageSince, asSeen)
		each("pod", p.Name, "down since", &p.DownSince, asSeen)
		each("pod", p.Name, "deleted", &p.GoingSince, asSeen)
		each("the node of pod", p.Name, "gone since", &p.NodeGoneSince, asSeen)
	}
	for i := range o.Volumes {
		v := &o.Volumes[i]
		each("volume claim", v.Claim, "created", &v.Created, asSeen)
		each("volume claim", v.Claim, "grows since", &v.GrowingSince, asSeen)
		each("volume claim", v.Claim, "deleted", &v.GoingSince, asSeen)
	}
	for i := range o.Objects {
		each(o.Objects[i].Kind, o.Objects[i].Name, "changed", &o.Objects[i].ChangedAt, asNow)
	}
	for i := range o.Leftovers {
		each(o.Leftovers[i].Kind, o.Leftovers[i].Name, "changed", &o.Leftovers[i].ChangedAt, asNow)
	}
	if i := o.Certificates.Issuers; i != nil {
		each("the Secrets of spec.tls.secrets", "", "changed", &i.NamedAt, asSeen)
	}
	if o.Set != nil {
		each("StatefulSet", "", "created", &o.Set.Created, asSeen)
		each("StatefulSet", "", "scaled", &o.Set.ScaledAt, asNow)
		each("StatefulSet", "", "changed", &o.Set.ChangedAt, asSeen)
		each("StatefulSet", "", "status written", &o.Set.StatusAt, asSeen)
		each("StatefulSet", "", "deleted", &o.Set.GoingSince, asSeen)
		if o.Set.Refusal != nil {
			each("StatefulSet", "", "pod refused since", &o.Set.Refusal.Since, asSeen)
			each("StatefulSet", "", "pod refused last", &o.Set.Refusal.At, asSeen)
		}
	}
	for _, others := range [][]state.Neighbour{o.Fleet.Disrupted, o.Fleet.Unfinished} {
		for i := range others {
			each("cluster", others[i].Name, "changed", &others[i].Since, asNow)
		}
	}
	for i := range o.Fleet.Checks {
		c := &o.Fleet.Checks[i]
		each("check "+c.Name+" of", c.Cluster, "answers so since", &c.Since, asNow)
	}
	each("Job", o.Restore.Job, "begun", &o.Restore.Since, asSeen)
	each("Job", o.Trial.Job, "begun", &o.Trial.Since, asSeen)
	each("the Secrets", "of another issuer", "changed", &o.Certificates.Trust.ChangedAt, asSeen)
	if r := o.Certificates.Rotation; r != nil {
		for _, name := range slices.Sorted(maps.Keys(r.Trusts)) {
			at := r.Trusts[name]
			each("Secret", name, "created", &at, asSeen)
			if !at.Equal(r.Trusts[name]) {
				r.Trusts[name] = at
			}
		}
	}
	if o.Record != nil {
		visitRecord(o.Record, func(what string, at *time.Time, as worth) { each("the record", "", what, at, as) })
	}
}

// visitRecord is the part of visit about what quorate itself has noted, maybe on another
// node.
func visitRecord(r *state.Record, each func(what string, at *time.Time, as worth)) {
	if r.Joining != nil {
		each("joins since", &r.Joining.Since, asSeen)
	}
	if r.Leaving != nil {
		each("leaves since", &r.Leaving.Since, asSeen)
	}
	if r.FailedJoin != nil {
		each("last join failed", &r.FailedJoin.At, asSeen)
	}
	if r.Recovering != nil {
		each("recovers since", &r.Recovering.Since, asSeen)
	}
	for i := range r.Recovered {
		// A claim from before now may keep what that has put aside.
		each("recovered", &r.Recovered[i].At, asNow)
	}
	if r.Backup != nil {
		each("backup taken", &r.Backup.Time, asOld)
	}
	if r.RollBackup != nil {
		each("backup of the roll taken", &r.RollBackup.Time, asOld)
	}
	if r.Compacted != nil {
		each("history compacted", &r.Compacted.At, asSeen)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Defragmented)) {
		at := r.Defragmented[name]
		each(name+" defragmented", &at, asSeen)
		if !at.Equal(r.Defragmented[name]) {
			r.Defragmented[name] = at
		}
	}
	if r.Forced != nil {
		each("entries added since", &r.Forced.Since, asSeen)
		each("entries added last", &r.Forced.Time, asSeen)
	}
	if r.Downgrade != nil {
		each("downgrades since", &r.Downgrade.Since, asSeen)
	}
	each("members moved in the list", &r.MovedAt, asSeen)
}

func describe(kind, name, what string) string {
	if name != "" {
		kind += " " + name
	}
	return fmt.Sprintf("%s (%s)", kind, what)
}

// clone copies what visit reaches.
func clone(o state.Observed) state.Observed {
	o.Pods, o.Volumes = slices.Clone(o.Pods), slices.Clone(o.Volumes)
	o.Objects, o.Leftovers = slices.Clone(o.Objects), slices.Clone(o.Leftovers)
	o.Fleet.Disrupted, o.Fleet.Unfinished = slices.Clone(o.Fleet.Disrupted), slices.Clone(o.Fleet.Unfinished)
	o.Fleet.Checks = slices.Clone(o.Fleet.Checks)
	if o.Set = pointer(o.Set); o.Set != nil {
		o.Set.Refusal = pointer(o.Set.Refusal)
	}
	if o.Certificates.Rotation = pointer(o.Certificates.Rotation); o.Certificates.Rotation != nil {
		o.Certificates.Rotation.Trusts = maps.Clone(o.Certificates.Rotation.Trusts)
	}
	o.Certificates.Issuers = pointer(o.Certificates.Issuers)
	if o.Record = pointer(o.Record); o.Record == nil {
		return o
	}
	r := o.Record
	r.Joining, r.Leaving, r.FailedJoin = pointer(r.Joining), pointer(r.Leaving), pointer(r.FailedJoin)
	r.Recovering, r.Compacted = pointer(r.Recovering), pointer(r.Compacted)
	r.Backup, r.RollBackup = pointer(r.Backup), pointer(r.RollBackup)
	r.Forced, r.Downgrade = pointer(r.Forced), pointer(r.Downgrade)
	r.Defragmented, r.Recovered = maps.Clone(r.Defragmented), slices.Clone(r.Recovered)
	return o
}

// pointer is a pointer to a copy, nil for nil.
func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Warning tells of times that lie ahead of the clock, "" where there is none. It names the
// one that lies furthest ahead.
func Warning(ahead []Stamp) string {
	if len(ahead) == 0 {
		return ""
	}
	furthest := slices.MaxFunc(ahead, func(a, b Stamp) int { return a.At.Compare(b.At) })
	more := ""
	if n := len(ahead) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Sprintf("ahead of quorate's clock is the time of %s, %s%s: set the clock of the machine that wrote it, or that of quorate's node",
		furthest.What, furthest.At.UTC().Format(time.RFC3339), more)
}
