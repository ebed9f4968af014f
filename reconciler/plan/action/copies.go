package action

import (
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// CopyCertificate makes the Secret of an application in another namespace what it is in the
// cluster's. It writes over no Secret that quorate has not made for that.
type CopyCertificate struct{ Secret, Namespace string }

func (CopyCertificate) isAction() {}

// Kind implements Action.
func (CopyCertificate) Kind() string { return "CopyCertificate" }

// String implements Action.
func (a CopyCertificate) String() string { return "copy " + a.Secret + " to namespace " + a.Namespace }

// Disruptive implements Action: no member stops, and no member reads it.
func (CopyCertificate) Disruptive() bool { return false }

// After implements Action.
func (a CopyCertificate) After(s *situation.Situation) { dropCopy(s, a.Secret, a.Namespace) }

// Undo implements Action.
func (CopyCertificate) Undo(*situation.Situation) Undo {
	return anytime("the copy is deleted again")
}

// DeleteCopy deletes such a Secret that is no longer wanted, and that quorate has made.
type DeleteCopy struct{ Secret, Namespace string }

func (DeleteCopy) isAction() {}

// Kind implements Action.
func (DeleteCopy) Kind() string { return "DeleteCopy" }

// String implements Action.
func (a DeleteCopy) String() string {
	return "delete the copy of " + a.Secret + " in namespace " + a.Namespace
}

// Disruptive implements Action: no member stops, and no member reads it.
func (DeleteCopy) Disruptive() bool { return false }

// After implements Action.
func (a DeleteCopy) After(s *situation.Situation) { dropCopy(s, a.Secret, a.Namespace) }

// Undo implements Action.
func (DeleteCopy) Undo(*situation.Situation) Undo { return anytime("the copy is made again") }

// dropCopy has a copy be as Git says.
func dropCopy(s *situation.Situation, secret, namespace string) {
	s.Observed.Certificates.Copies = slices.DeleteFunc(slices.Clone(s.Observed.Certificates.Copies), func(c state.ClientCopy) bool {
		return c.Secret == secret && c.Namespace == namespace
	})
}
