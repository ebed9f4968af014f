package action

import (
	"slices"

	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/situation"
)

// KeepTrust keeps the bundle that the issuer's Secrets have now in a Secret that is named by its
// content, and deletes those that no member trusts which runs. Nothing mounts it by that alone.
type KeepTrust struct {
	Secret string
	Drop   []string
}

func (KeepTrust) isAction() {}

// Kind implements Action.
func (KeepTrust) Kind() string { return "KeepTrust" }

// String implements Action.
func (a KeepTrust) String() string { return "keep what members trust in " + a.Secret }

// Disruptive implements Action: no member stops.
func (KeepTrust) Disruptive() bool { return false }

// After implements Action. Where members trust another bundle, the template is to mount this one:
// what it would be then is not known before.
func (a KeepTrust) After(s *situation.Situation) {
	t := &s.Observed.Certificates.Trust
	t.Gone = slices.DeleteFunc(slices.Clone(t.Gone), func(name string) bool { return name == a.Secret })
	t.Kept = slices.DeleteFunc(slices.Clone(t.Kept), func(name string) bool { return name == a.Secret || slices.Contains(a.Drop, name) })
	t.Kept = append(t.Kept, a.Secret)
	if i := s.Observed.Certificates.Issuers; i != nil {
		i.Publish(a.Secret)
	}
	if target := t.Target(s.Now); target != s.Git.Trust && !issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now).Changing {
		s.Git.Trust, s.Git.Template = target, "(trusting "+target+")"
	}
}

// Undo implements Action.
func (KeepTrust) Undo(*situation.Situation) Undo { return anytime("") }
