// Package transport says over what the members of a cluster are to be reached now, and how far a
// change of spec.tls.mode between plain text and TLS is. It is pure, and derives all of that from what
// is there: what the pods listen to, and where etcd's member list has the members.
package transport

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Phase is how far a change is.
type Phase int

// The phases, in their order. Each begins when what the one before it waits for is so.
const (
	// None: no change is under way, and none is asked for.
	None Phase = iota
	// Open: members restart, and listen to plain text and to TLS.
	Open
	// Move: etcd has each member where it can be reached before and after the next roll.
	Move
	// Overlap: clients move over.
	Overlap
	// Close: members restart, and listen to one of the two alone.
	Close
	// Settle: etcd has each member on its usual port alone.
	Settle
)

// String is the phase in a few words.
func (p Phase) String() string {
	return [...]string{
		"no change of the mode", "members listen to plain text and TLS", "members are moved in the member list", "clients move over",
		"members listen to one of the two alone", "members are moved to their usual port",
	}[p]
}

// Aim is what a change of the mode is at.
type Aim struct {
	Phase Phase
	// Template is over what members are to be reached that are made from now on.
	Template state.Transport
	// Back says that Git takes a change back that has begun.
	Back bool
	// Member is the one that etcd's list is to have at URLs next, "" for none.
	Member string
	URLs   []string
	// Since is when clients could begin to move over, and Until how long they have.
	Since, Until time.Time
}

// Of is what a change of the mode is at, for a cluster as Git wants it.
//
//	template is        Git wants  the next step                                     then
//	plain              TLS        a roll to both, plain on the usual ports          move
//	both, plain first  TLS        TLS on both ports in the list, one by one         overlap, a roll to TLS
//	both, plain first  plain      plain on the usual port in the list, one by one   a roll to plain
//	TLS                TLS        TLS on the usual port in the list, after the roll
//
// The way from TLS to plain is the same with the two exchanged. Whatever the template and the list
// are, each member listens at all times where the list has it, and the others speak that.
func Of(d state.Desired, o state.Observed, now time.Time) Aim {
	is, wants := o.Transport, d.Spec.TLS.Mode
	switch {
	case is.Own == "":
		return Aim{Template: standing(d, o)}
	case o.Set == nil || !o.Record.Formed():
		return Aim{Template: is}
	}
	a := Aim{Template: is}
	switch {
	case is.Also == "" && is.Own.Encrypts() == wants.Encrypts():
		a.Template = issuers.Of(d.Spec.TLS, o, now).Leaves
		own := urls(d, o, is.Own, naming.PeerPort)
		if a.Member = elsewhere(d, o, own); a.Member != "" && len(o.Record.PeerURLs) > 0 && !o.Rolling() {
			a.Phase, a.URLs = Settle, own[a.Member]
		}
	case is.Also == "":
		a.Phase, a.Template.Also = Open, wants
	case is.Own.Encrypts() == wants.Encrypts():
		a.Back = true
		// Where the list has other URLs than those of the usual mode, every pod listens to both.
		if strange := spoken(o, is.Also); len(strange) > 0 {
			a.Phase, a.Member = Move, strange[0]
			a.URLs = urls(d, o, is.Own, naming.PeerPort)[a.Member]
		} else if a.overlap(d, o, now) {
			a.Phase, a.Template.Also = Close, ""
		}
	case o.Rolling():
		a.Phase = Open
	default:
		a.over(d, o, now)
	}
	return a
}

// over is what is left when every member listens to both.
func (a *Aim) over(d state.Desired, o state.Observed, now time.Time) {
	is := o.Transport
	both := urls(d, o, is.Also, naming.PeerPort, naming.SecondPeerPort)
	if a.Member = elsewhere(d, o, both); a.Member != "" {
		a.Phase, a.URLs = Move, both[a.Member]
		return
	}
	if a.overlap(d, o, now) {
		a.Phase, a.Template.Own, a.Template.Also = Close, is.Also, ""
	}
}

// overlap reports whether clients have had their time to move, since the list was changed last. Where
// it never was, none was told to.
func (a *Aim) overlap(d state.Desired, o state.Observed, now time.Time) bool {
	if len(o.Record.PeerURLs) == 0 {
		return true
	}
	a.Phase, a.Since = Overlap, o.Record.MovedAt
	if a.Since.IsZero() {
		a.Since = now // nothing says since when: so the time is not over
	}
	a.Until = a.Since.Add(d.Spec.TLS.OverlapTime())
	return !now.Before(a.Until)
}

// standing is what members are made with while there is neither a StatefulSet nor a pod: what listens
// where the record says that etcd has them; else what Git wants.
func standing(d state.Desired, o state.Observed) state.Transport {
	names := d.Spec.TLS.Secrets
	t := state.Transport{Own: d.Spec.TLS.Mode, Server: names.Server, Peer: names.Peer}
	if o.Record == nil {
		return t
	}
	certified := d.Spec.TLS.Mode
	if !certified.Encrypts() { // what the members had is not known beside that
		if certified = schema.TLSManaged; names.Server != "" {
			certified = schema.TLSSecrets
		}
	}
	for _, mode := range []schema.TLSMode{schema.TLSDisabled, certified} {
		at := urls(d, o, mode, naming.PeerPort, naming.SecondPeerPort)
		for name, id := range o.Record.Members {
			switch listed := o.Record.PeerURLs[id]; {
			case slices.Equal(listed, at[name]):
				// The second port is of that mode, so the usual one is of the other.
				t.Own, t.Also = certified, mode
				if mode.Encrypts() {
					t.Own = schema.TLSDisabled
				}
				return t
			case slices.Equal(listed, at[name][:1]):
				t.Own = mode
			}
		}
	}
	return t
}

// Crosses reports whether members do not speak yet, or not alone, what Git wants of plain text and TLS.
func Crosses(d state.Desired, o state.Observed) bool {
	is := o.Transport
	return is.Own != "" && (is.Also != "" || is.Own.Encrypts() != d.Spec.TLS.Mode.Encrypts())
}

// urls are the URLs of each recorded member in a mode on some ports, in the order of etcd's list.
func urls(d state.Desired, o state.Observed, mode schema.TLSMode, ports ...int) map[string][]string {
	c := schema.EtcdCluster{Metadata: schema.Metadata{Namespace: d.Namespace, Name: d.Name}}
	all := map[string][]string{}
	for name := range o.Record.Members {
		for _, port := range ports {
			all[name] = append(all[name], naming.URLOn(naming.SchemeOf(mode), naming.MemberHost(c, name), port))
		}
	}
	return all
}

// members are the recorded ones, in their order.
func members(o state.Observed) []string {
	return slices.SortedFunc(maps.Keys(o.Record.Members), naming.CompareMembers)
}

// listed is where etcd has a member, and noted where the record says so; nil for where its pod
// listens on its usual port.
func listed(o state.Observed, name string) (listed, noted []string) {
	id := o.Record.Members[name]
	if m := o.Round().ByID(id); m != nil {
		listed = m.PeerURLs
	}
	return listed, o.Record.PeerURLs[id]
}

// elsewhere is the first member that etcd has at other URLs than these, or the record; "" for none.
func elsewhere(d state.Desired, o state.Observed, want map[string][]string) string {
	own := urls(d, o, o.Transport.Own, naming.PeerPort)
	for _, name := range members(o) {
		is, noted := listed(o, name)
		if len(noted) == 0 {
			noted = own[name]
		}
		if !slices.Equal(noted, want[name]) || len(is) > 0 && !slices.Equal(is, want[name]) {
			return name
		}
	}
	return ""
}

// spoken are the members that etcd, or the record, has at URLs of a mode.
func spoken(o state.Observed, mode schema.TLSMode) []string {
	return slices.DeleteFunc(members(o), func(name string) bool {
		is, noted := listed(o, name)
		return !slices.ContainsFunc(slices.Concat(is, noted), func(url string) bool { return strings.HasPrefix(url, naming.SchemeOf(mode)+":") })
	})
}
