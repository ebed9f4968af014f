// Package issuers says whose certificates the members of a cluster are to show now, and whose they are
// to trust, while spec.tls.mode changes between Managed and Secrets. It is pure, and derives all of
// that from what is there: what the pods mount, and the Secrets.
package issuers

import (
	"time"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Phase is how far a change is.
type Phase int

// The phases, in their order. Each begins when what the one before it waits for is so.
const (
	// None: no change is under way, and none is asked for.
	None Phase = iota
	// Later: another change of the certificates ends first.
	Later
	// Check: certificates of the issuer that Git wants are not good.
	Check
	// Issue: certificates that quorate issues are missing, or grow old.
	Issue
	// Publish: Secrets do not say yet that both issuers are trusted.
	Publish
	// Arrive: what the Secrets have reaches the pods.
	Arrive
	// TrustBoth: members restart, and trust both.
	TrustBoth
	// Overlap: clients take up that both are trusted.
	Overlap
	// Switch: members restart, and show certificates of the issuer that Git wants.
	Switch
	// Mark: what will be trusted in the end is written down.
	Mark
	// Settle: clients take up certificates of that issuer.
	Settle
	// Drop: members restart, and trust that issuer alone.
	Drop
	// Retire: what quorate has issued is deleted.
	Retire
)

// String is the phase in a few words.
func (p Phase) String() string {
	return [...]string{
		"no change of the issuer", "another change ends first", "the certificates are not good", "issue the certificates",
		"publish both issuers", "the Secrets reach the pods", "members trust both issuers", "clients take up both issuers",
		"members show certificates of the other issuer", "note what will be trusted", "clients take up certificates of the other issuer",
		"members trust one issuer alone", "delete what quorate has issued",
	}[p]
}

// Aim is what a change of the issuer is at.
type Aim struct {
	Phase Phase
	// Wants is the mode that the change leads to.
	Wants schema.TLSMode
	// Changing says that one is under way, or asked for: then Trust is the Secret with what the
	// members are to trust, "" for what is in the Secret of each certificate, and Mixed says that
	// this is both issuers.
	Changing, Mixed bool
	Trust           string
	// Leaves are the certificates that members are to show.
	Leaves state.Transport
	// Since is when what is waited for began, and Until when it ends.
	Since, Until time.Time
}

// Of is what a change of the issuer is at, for a cluster as Git wants it.
//
//	template shows  trusts     Git wants  the next step
//	L               L          G          certificates of G are checked, or issued; both are published; a roll to L, L and G
//	L               L and G    G          the overlap; a roll to G, L and G
//	G               L and G    G          the overlap; a roll to G, G
//	G               G          G          what is left of L is deleted, where it is quorate's
//
// Taken back, L and G change places: so the change is the same in each direction, and at each point of
// it. At any time each member trusts whatever another one, or a client, may show.
func Of(tls schema.TLSSpec, o state.Observed, now time.Time) Aim {
	i, is := o.Certificates.Issuers, o.Transport
	a := Aim{Leaves: is, Wants: tls.Mode}
	if i == nil || o.Set == nil || !o.Record.Formed() || is.Own == "" {
		return a
	}
	a.Trust, a.Mixed = i.Mounted, i.Mixed
	speaks := is.Own != schema.TLSDisabled && is.Also == "" && tls.Mode != schema.TLSDisabled
	arrived := state.SameIssuer(is.Secured(), tls.Mode)
	switch r := o.Certificates.Rotation; {
	case !speaks:
		// Plain text and TLS change first; whom members trust stays meanwhile.
		a.Changing = i.Mixed
		if !arrived && tls.Mode != schema.TLSDisabled {
			a.Phase = Later
		}
	case arrived && !i.Mixed:
		if is.Own == schema.TLSSecrets && len(i.Left) > 0 && !o.Rolling() {
			a.Phase = Retire
		}
	case r != nil && (len(r.Next) > 0 || r.Over != ""):
		a.Phase = Later
	case arrived:
		a.Changing = true
		a.drop(tls, o, now)
	default:
		a.Changing = true
		a.change(tls, o, now)
	}
	return a
}

// change leads to certificates of the issuer that Git wants.
func (a *Aim) change(tls schema.TLSSpec, o state.Observed, now time.Time) {
	i, is := o.Certificates.Issuers, o.Transport
	switch {
	case len(i.Problems) > 0:
		a.Phase = Check
	case len(i.Missing)+len(i.MissingSANs)+len(i.Due)+len(i.Clients) > 0 || i.Both == "":
		a.Phase = Issue
	case is.Own == schema.TLSSecrets && i.Mounted == "" && len(o.Certificates.Trust.Kept) == 0:
		a.Phase = Later // what members trust is not known before rule bundle has kept it
	case !i.Told || !i.Has(i.Both):
		a.Phase = Publish
	case now.Before(i.SettlesAt()):
		a.Phase, a.Since, a.Until = Arrive, i.NamedAt, i.SettlesAt()
	case i.Mounted != i.Both || o.Rolling() && !i.Halfway:
		a.Phase, a.Trust, a.Mixed = TrustBoth, i.Both, true
	default:
		if a.wait(Overlap, tls, o); i.Halfway || !now.Before(a.Until) {
			a.Phase, a.Leaves = Switch, leavesOf(tls)
		}
	}
}

// drop leads to members that trust alone the issuer whose certificates they show.
func (a *Aim) drop(tls schema.TLSSpec, o state.Observed, now time.Time) {
	i := o.Certificates.Issuers
	switch {
	case o.Rolling():
		a.Phase = Switch
	case !i.Has(i.Alone):
		a.Phase = Mark
	default:
		if a.wait(Settle, tls, o); a.Until.Before(i.SettlesAt()) {
			a.Until = i.SettlesAt()
		}
		if !now.Before(a.Until) {
			a.Phase, a.Trust, a.Mixed = Drop, i.Alone, false
		}
	}
}

// wait is for clients, from the end of the roll on: the StatefulSet was changed by that. Where nothing
// says when, it is since the last pod was made, which is a little before.
func (a *Aim) wait(phase Phase, tls schema.TLSSpec, o state.Observed) {
	a.Phase, a.Since = phase, o.Set.ChangedAt
	if a.Since.IsZero() {
		for _, p := range o.Pods {
			if p.Created.After(a.Since) {
				a.Since = p.Created
			}
		}
	}
	a.Until = a.Since.Add(tls.OverlapTime())
}

// leavesOf are the certificates of the mode that Git wants.
func leavesOf(tls schema.TLSSpec) state.Transport {
	if tls.Mode == schema.TLSSecrets {
		return state.Transport{Own: schema.TLSSecrets, Server: tls.Secrets.Server, Peer: tls.Secrets.Peer}
	}
	return state.Transport{Own: schema.TLSManaged}
}
