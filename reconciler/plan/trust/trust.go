// Package trust says which authorities the members of a cluster are to trust now, and how far
// a change of them is. It is pure, and derives all of that from what is there: the certificates,
// what they are trusted by, and what the pods mount.
package trust

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Phase is how far a change of the authorities is.
type Phase int

// The phases, in their order. Each begins when what the one before it waits for is so.
const (
	// None: no change is under way, and none is asked for.
	None Phase = iota
	// Make: the authorities that are to take the place of the present ones are missing.
	Make
	// Publish: Secrets do not say yet that both are trusted.
	Publish
	// TrustBoth: members restart, and trust both.
	TrustBoth
	// Overlap: clients take up that both are trusted.
	Overlap
	// Issue: certificates are issued by those that stay.
	Issue
	// Mark: all are, and what will be trusted in the end is written down, which says since when.
	Mark
	// Settle: clients take up their certificates.
	Settle
	// Drop: members restart, and trust those alone that stay.
	Drop
	// Retire: the others are deleted.
	Retire
)

// String is the phase in a few words.
func (p Phase) String() string {
	return [...]string{
		"no change of the authorities", "make the next authorities", "publish both authorities", "members trust both authorities",
		"clients take up both authorities", "issue the certificates", "note that all are issued", "clients take up their certificates",
		"members trust one authority alone", "retire the other authorities",
	}[p]
}

// Aim is what a change of the authorities is at.
type Aim struct {
	Phase Phase
	// Why the authorities change, in a clause, "" where they do not.
	Why string
	// Keep are the authorities that stay in the end: ByNext, or ByPresent where the change is
	// taken back.
	Keep state.Signer
	// Trust is the Secret with what the members are to trust now, "" for what is in the Secret
	// of each certificate; Secret is the one that the phase makes.
	Trust, Secret string
	// Since is when what is waited for began, and Until when it ends.
	Since, Until time.Time
	// Unproven is what a member has not shown in a handshake, "" for nothing.
	Unproven string
	// Later is what Git asks for that waits for the end of this change, "" for nothing.
	Later string
}

// Of is what a change of the authorities is at.
func Of(tls schema.TLSSpec, o state.Observed, now time.Time) Aim {
	r := o.Certificates.Rotation
	if r == nil {
		return Aim{}
	}
	switch {
	case r.Over != "":
		return over(r, o)
	case len(r.Next) == 0 && issuers.Of(tls, o, now).Changing:
		return Aim{Keep: state.ByNext, Trust: r.Set} // what Git asks for besides begins when that is over
	case len(r.Next) == 0:
		return steady(tls, r, now)
	}
	a := Aim{Keep: state.ByNext, Trust: r.Set, Why: because(tls, r, now)}
	single := r.New
	switch {
	case r.Set == r.New: // members begin to trust the next ones alone: there is no way back
		a.Later = later(tls, r)
	case goesBack(tls, r, now):
		a.Keep, single = state.ByPresent, r.Old
		a.Why = "Git takes the change back, with spec.tls.rotate " + quoted(tls.Rotate)
	default:
		a.Later = later(tls, r)
	}
	if a.Later == "" && issuers.Of(tls, o, now).Phase == issuers.Later {
		a.Later = "spec.tls.mode " + string(tls.Mode) + " asks for another issuer, which takes over when this is over"
	}
	a.walk(tls.OverlapTime(), r, o, single, now)
	return a
}

// steady is a cluster whose authorities do not change: they are asked for by Git, by a key that
// is lost, or by their age. Once they have changed, members mount what they trust.
func steady(tls schema.TLSSpec, r *state.Rotation, now time.Time) Aim {
	a := Aim{Keep: state.ByNext, Trust: r.Set}
	if r.Set != "" && r.Set != r.Old {
		// What is mounted is not what there is: so it is in no change that quorate makes.
		if a.Secret = r.Old; !made(r, r.Old) {
			a.Phase, a.Why = Publish, "members mount another trust than that of the authorities"
			a.Keep = state.ByPresent
			return a
		}
		a.Trust = r.Old
	}
	if a.Why = Asked(tls, r, now); a.Why != "" {
		a.Phase = Make
	}
	return a
}

// over is a cluster whose authorities have expired: nobody trusts anybody, so that there is no
// overlap, and nothing to lose by trusting the next ones alone.
func over(r *state.Rotation, o state.Observed) Aim {
	a := Aim{Keep: state.ByNext, Why: r.Over, Trust: r.Set, Phase: Retire}
	switch {
	case r.Set == r.New && len(r.Next) > 0 && all(r, state.ByNext):
		if o.Rolling() {
			a.Phase = Drop
		}
	case len(r.Absent) > 0:
		a.Phase = Make
	case !told(r) || !made(r, r.New):
		a.Phase, a.Secret = Publish, r.New
	case !all(r, state.ByNext):
		a.Phase = Issue
	default:
		a.Phase, a.Trust = Drop, r.New
	}
	return a
}

// Asked is why new authorities are wanted, "" where they are not.
func Asked(tls schema.TLSSpec, r *state.Rotation, now time.Time) string {
	switch {
	case len(r.Lost) > 0:
		return strings.Join(r.Lost, "; ")
	case tls.Rotate != "" && tls.Rotate != r.Word && !r.Made.IsZero():
		return "Git asks for new authorities with spec.tls.rotate " + quoted(tls.Rotate)
	case aged(r, now):
		return fmt.Sprintf("two thirds of the life of the authorities are over, which end on %s", r.Ends.UTC().Format(time.DateOnly))
	}
	return ""
}

// aged reports whether two thirds of an authority's life are over.
func aged(r *state.Rotation, now time.Time) bool {
	return !r.Ends.IsZero() && !now.Before(r.Made.Add(r.Ends.Sub(r.Made)*2/3))
}

// because is why a change is under way that has begun.
func because(tls schema.TLSSpec, r *state.Rotation, now time.Time) string {
	if why := Asked(tls, r, now); why != "" && (len(r.Lost) > 0 || tls.Rotate == r.NextWord) {
		return why
	}
	return "a change of the authorities has begun"
}

// goesBack reports whether Git takes a change back: with the word of the present authorities, or
// without one. Authorities that cannot sign, or grow old, are not gone back to.
func goesBack(tls schema.TLSSpec, r *state.Rotation, now time.Time) bool {
	return len(r.Lost) == 0 && !aged(r, now) && tls.Rotate != r.NextWord && (tls.Rotate == "" || tls.Rotate == r.Word)
}

// later is what Git asks for beside the change that is under way, "" for nothing.
func later(tls schema.TLSSpec, r *state.Rotation) string {
	if tls.Rotate == "" || tls.Rotate == r.NextWord {
		return ""
	}
	return "spec.tls.rotate " + quoted(tls.Rotate) + " asks for another change, which begins when this one, to " + quoted(r.NextWord) + ", is over"
}

// quoted is a word in quotes, or that there is none.
func quoted(word string) string {
	if word == "" {
		return "left out"
	}
	return `"` + word + `"`
}

// made reports whether there is a Secret with what members trust.
func made(r *state.Rotation, name string) bool {
	_, ok := r.Trusts[name]
	return ok
}

// walk finds the phase of a change under way, to the authorities that stay, which alone are
// in single.
func (a *Aim) walk(overlap time.Duration, r *state.Rotation, o state.Observed, single string, now time.Time) {
	issued := all(r, a.Keep)
	switch {
	case a.Keep == state.ByPresent && issued && r.Set != r.Both:
		// Members trust the present ones alone, or again.
		if a.Trust = r.Set; r.Set != "" {
			a.Trust = single
		}
		a.Phase = Retire
		if o.Rolling() {
			a.Phase = Drop
		}
		if a.Trust != "" && !made(r, a.Trust) {
			a.Phase, a.Secret, a.Trust = Mark, a.Trust, r.Set
		}
	case a.Keep == state.ByNext && r.Set == single:
		switch a.Phase = Retire; {
		case !issued:
			a.Phase = Issue
		case o.Rolling():
			a.Phase = Drop
		}
	case len(r.Absent) > 0:
		a.Phase = Make
	case !published(r):
		a.Phase, a.Secret = Publish, r.Both
	case r.Set != r.Both || o.Rolling():
		a.Phase, a.Trust = TrustBoth, r.Both
	case !issued:
		a.Since = r.Trusts[r.Both]
		a.Phase, a.Until, a.Unproven = Overlap, a.Since.Add(overlap), unproven(r, "")
		if !now.Before(a.Until) && a.Unproven == "" {
			a.Phase = Issue
		}
	case !made(r, single):
		a.Phase, a.Secret = Mark, single
	default:
		a.Since = r.Trusts[single]
		a.Phase, a.Until, a.Unproven = Settle, a.Since.Add(overlap), unproven(r, a.Keep)
		if !now.Before(a.Until) && a.Unproven == "" {
			a.Phase, a.Trust = Drop, single
		}
	}
}

// all reports whether every certificate is signed by the authorities that stay.
func all(r *state.Rotation, by state.Signer) bool {
	return !slices.ContainsFunc(r.Leaves, func(l state.IssuedLeaf) bool { return !l.By.Is(by) })
}

// published reports whether every Secret says that both authorities are trusted.
func published(r *state.Rotation) bool {
	return made(r, r.Both) && told(r)
}

// told reports whether the Secret of every certificate says that both authorities are trusted.
func told(r *state.Rotation) bool {
	return !slices.ContainsFunc(r.Leaves, func(l state.IssuedLeaf) bool { return l.Bundle != state.BundleBoth })
}

// unproven is what the first member has not shown that has not shown all: on both ports that it
// trusts both authorities and, where by is one, that what it shows itself is signed by that.
func unproven(r *state.Rotation, by state.Signer) string {
	if len(r.Shown) == 0 {
		return "no member was asked yet whom it trusts"
	}
	for _, h := range r.Shown {
		at := h.Member + ", on its " + h.Port + " port, "
		for _, signer := range []state.Signer{state.ByPresent, state.ByNext} {
			if why := h.Refuses[signer]; why != "" {
				return at + "refuses the " + string(signer) + " authority: " + why
			}
		}
		switch {
		case h.Problem != "":
			return at + "could not be asked whom it trusts: " + h.Problem
		case by != "" && !h.By.Is(by):
			return at + "still shows a certificate of the other authority: the kubelet brings the new one into its pod within about two minutes"
		}
	}
	return ""
}
