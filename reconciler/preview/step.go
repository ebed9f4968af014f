package preview

import (
	"fmt"
	"reflect"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
)

// StepReport is a Step: in words for people, and in types for programs. The words may
// change; kind, reversibility and the names of members do not.
type StepReport struct {
	Action     string `json:"action"`
	Reason     string `json:"reason"`
	Disruptive bool   `json:"disruptive"`
	// Undo says until when the step can be taken back, and how.
	Undo string `json:"undo"`
	// Kind of the action, as Events and metrics have it, such as RestartMember.
	Kind string `json:"kind"`
	// Member that the step is about; absent where it is about none, or several.
	Member string `json:"member,omitempty"`
	// From and To are versions, members of MoveLeader, numbers of pods of ResizeSet,
	// bytes of GrowVolume, owners of ClaimCluster; absent where nothing changes like that.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Reversibility is Undo in one word.
	Reversibility Reversibility `json:"reversibility"`

	undo action.UndoKind
}

// Reversibility is how far a step can be taken back by reverting its commit.
type Reversibility string

// The reversibilities.
const (
	// ReversibleUnknown is for a step of which it is not known.
	ReversibleUnknown Reversibility = "unknown"
	// ReversibleNothing leaves nothing to take back.
	ReversibleNothing Reversibility = "nothing"
	// ReversibleAnytime can be taken back soon or late.
	ReversibleAnytime Reversibility = "anytime"
	// ReversibleUntil can be taken back until the last member runs the new version.
	ReversibleUntil Reversibility = "until-last-member"
	// ReversibleByDowngrade can be taken back at any time, by etcd's downgrade API.
	ReversibleByDowngrade Reversibility = "by-downgrade"
	// ReversibleNever has no way back through Git.
	ReversibleNever Reversibility = "never"
)

func reversibility(kind action.UndoKind) Reversibility {
	switch kind {
	case action.UndoNothing:
		return ReversibleNothing
	case action.UndoAnytime:
		return ReversibleAnytime
	case action.UndoUntil:
		return ReversibleUntil
	case action.UndoByDowngrade:
		return ReversibleByDowngrade
	case action.UndoFinal:
		return ReversibleNever
	case action.UndoUnknown:
	}
	return ReversibleUnknown
}

// newStepReport describes a step.
func newStepReport(s decision.Step, d state.Desired) StepReport {
	return StepReport{
		Action: s.Action.String(), Reason: reasonFor(s, d), Disruptive: s.Action.Disruptive(), Undo: s.Undo.Text,
		Kind: s.Action.Kind(), Member: field(s.Action, "Member"), From: field(s.Action, "From"), To: field(s.Action, "To"),
		Reversibility: reversibility(s.Undo.Kind), undo: s.Undo.Kind,
	}
}

// field is a field of an action, which all kinds call by the same name; "" where it has none.
func field(a action.Action, name string) string {
	value := reflect.ValueOf(a).FieldByName(name)
	if !value.IsValid() {
		return ""
	}
	return fmt.Sprint(value)
}
