package action

import (
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// MakeAuthorities makes the authorities that are to take the place of the present ones. It
// changes none that is there.
type MakeAuthorities struct{ Secrets []string }

func (MakeAuthorities) isAction() {}

// Kind implements Action.
func (MakeAuthorities) Kind() string { return "MakeAuthorities" }

// String implements Action.
func (MakeAuthorities) String() string { return "make the next authorities" }

// Disruptive implements Action: no member stops, and nothing trusts them yet.
func (MakeAuthorities) Disruptive() bool { return false }

// After implements Action.
func (a MakeAuthorities) After(s *situation.Situation) {
	r := s.Observed.Certificates.Rotation
	r.Next, r.Absent, r.NextWord = slices.Concat(r.Next, a.Secrets), nil, s.Git.Spec.TLS.Rotate
	r.Both, r.New = "(both authorities)", "(the next authorities)"
	for i := range r.Leaves {
		r.Leaves[i].By = state.ByPresent
	}
}

// Undo implements Action.
func (MakeAuthorities) Undo(*situation.Situation) Undo {
	return anytime("nothing trusts them yet; the word of spec.tls.rotate from before has them deleted again")
}

// PublishTrust makes the Secret with what members trust, and has the Secrets of certificates say
// what their holders are to trust.
type PublishTrust struct {
	// Secret is named by its content.
	Secret string
	// Bundle is what holders of certificates are to trust; "" leaves that as it is.
	Bundle state.Bundle
}

func (PublishTrust) isAction() {}

// Kind implements Action.
func (PublishTrust) Kind() string { return "PublishTrust" }

// String implements Action.
func (a PublishTrust) String() string {
	switch a.Bundle {
	case state.BundleBoth:
		return "publish both authorities"
	case state.BundleIssuers:
		return "publish the authorities of both issuers"
	case state.BundleOld, state.BundleNew, state.BundleOther:
	}
	return "publish " + a.Secret
}

// Disruptive implements Action: no member stops, and each reads what it trusts when it starts.
func (PublishTrust) Disruptive() bool { return false }

// After implements Action.
func (a PublishTrust) After(s *situation.Situation) {
	r := s.Observed.Certificates.Rotation
	if i := s.Observed.Certificates.Issuers; i != nil {
		i.Publish(a.Secret)
		i.Told = i.Told || a.Bundle == state.BundleIssuers
	}
	if r == nil || a.Bundle == state.BundleIssuers {
		return
	}
	r.Trusts[a.Secret] = s.Now
	for i := range r.Leaves {
		if a.Bundle != "" {
			r.Leaves[i].Bundle = a.Bundle
		}
	}
}

// Undo implements Action.
func (PublishTrust) Undo(*situation.Situation) Undo {
	return anytime("who trusts both authorities trusts those from before")
}

// SwitchCertificates issues each certificate anew by the authorities that stay.
type SwitchCertificates struct {
	By state.Signer
	// Against is the Secret with what members trust that is of no use from then on, and goes
	// first: when it is made again, that says since when all are issued by the others.
	Against string
}

func (SwitchCertificates) isAction() {}

// Kind implements Action.
func (SwitchCertificates) Kind() string { return "SwitchCertificates" }

// String implements Action.
func (a SwitchCertificates) String() string {
	if a.By == state.ByPresent {
		return "issue all certificates by the authorities from before again"
	}
	return "issue all certificates by the next authorities"
}

// Disruptive implements Action: no member stops, for a certificate is loaded at each handshake.
func (SwitchCertificates) Disruptive() bool { return false }

// After implements Action.
func (a SwitchCertificates) After(s *situation.Situation) {
	r := s.Observed.Certificates.Rotation
	delete(r.Trusts, a.Against)
	for i := range r.Leaves {
		r.Leaves[i].By = a.By
	}
}

// Undo implements Action.
func (SwitchCertificates) Undo(*situation.Situation) Undo {
	return anytime("the word of spec.tls.rotate from before has all issued by those from before, until members trust the next authorities alone")
}

// RetireAuthorities ends a change of the authorities: what stays takes the place of the present
// ones, and the keys and certificates of the others are deleted.
type RetireAuthorities struct {
	// Keep are the authorities that stay: ByOther for none of quorate's, where another program
	// issues all certificates, and ByBoth for those of quorate's alone after such a time.
	Keep state.Signer
	// Trust is the Secret with what members trust that they mount, "" for none.
	Trust string
}

func (RetireAuthorities) isAction() {}

// Kind implements Action.
func (RetireAuthorities) Kind() string { return "RetireAuthorities" }

// String implements Action.
func (a RetireAuthorities) String() string {
	switch a.Keep {
	case state.ByPresent:
		return "delete the next authorities"
	case state.ByOther:
		return "delete the authorities and certificates that quorate has made"
	case state.ByBoth:
		return "delete what the other program's certificates were trusted by"
	case state.ByNext:
	}
	return "delete the authorities from before"
}

// Disruptive implements Action: no member stops.
func (RetireAuthorities) Disruptive() bool { return false }

// After implements Action.
func (a RetireAuthorities) After(s *situation.Situation) {
	r := s.Observed.Certificates.Rotation
	s.Observed.Certificates.Issuers = nil
	if a.Keep == state.ByOther || r == nil {
		return
	}
	if a.Keep == state.ByNext {
		r.Word, r.Lost, r.Made, r.Ends = r.NextWord, nil, s.Now, s.Now.Add(s.Git.Spec.TLS.AuthorityLife())
		r.Old = r.New
	}
	r.Next, r.Absent, r.NextWord = nil, slices.Clone(r.Next), ""
	r.Both, r.New = r.Old, r.Old
	for name := range r.Trusts {
		if name != a.Trust {
			delete(r.Trusts, name)
		}
	}
	for i := range r.Leaves {
		r.Leaves[i].By, r.Leaves[i].Bundle = state.ByBoth, state.BundleOld
	}
}

// Undo implements Action.
func (a RetireAuthorities) Undo(*situation.Situation) Undo {
	switch a.Keep {
	case state.ByPresent, state.ByBoth:
		return harmless("nothing trusts the authorities that go")
	case state.ByOther:
		return final("the keys are deleted; spec.tls.mode Managed makes others, and changes back in the same steps")
	case state.ByNext:
	}
	return final("the keys are deleted; a new word of spec.tls.rotate makes others")
}
