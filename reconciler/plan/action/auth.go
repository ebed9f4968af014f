package action

import (
	"github.com/quorate/quorate/reconciler/grants"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// ChangeAuth is one change of users, roles or authentication.
type ChangeAuth struct{ state.AuthChange }

func (ChangeAuth) isAction() {}

// Kind implements Action.
func (ChangeAuth) Kind() string { return "ChangeAuth" }

// String implements Action.
func (a ChangeAuth) String() string { return a.AuthChange.String() }

// Disruptive implements Action: no member stops.
func (ChangeAuth) Disruptive() bool { return false }

// After implements Action.
func (a ChangeAuth) After(s *situation.Situation) {
	if s.Observed.Auth != nil {
		s.Observed.Auth = grants.After(s.Observed.Auth, a.AuthChange)
	}
}

// Undo implements Action.
func (a ChangeAuth) Undo(*situation.Situation) Undo {
	switch a.Op {
	case state.SetPassword:
		return undo(UndoAnytime, "by the old password in the Secret")
	case state.EnableAuth:
		return undo(UndoAnytime, "by enabled: false; taking spec.auth out of the file leaves authentication on")
	case state.DisableAuth:
		return undo(UndoAnytime, "")
	case state.DeleteUser, state.DeleteRole, state.RevokePermission, state.RevokeRole:
		return undo(UndoAnytime, "by listing it in the file")
	}
	return harmless("what was added stays until the file, with prune, or a person takes it away")
}
