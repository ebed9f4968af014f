package action

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// MoveMember has etcd's member list say where the others reach a member, while spec.tls.mode changes.
type MoveMember struct {
	Member, MemberID string
	URLs             []string
}

func (MoveMember) isAction() {}

// Kind implements Action.
func (MoveMember) Kind() string { return "MoveMember" }

// String implements Action.
func (a MoveMember) String() string {
	return "move " + a.Member + " in the member list to " + strings.Join(a.URLs, " and ")
}

// Disruptive implements Action: no member stops, and it listens there already.
func (MoveMember) Disruptive() bool { return false }

// After implements Action.
func (a MoveMember) After(s *situation.Situation) {
	moved := maps.Clone(s.Observed.Record.PeerURLs)
	if moved == nil {
		moved = map[string][]string{}
	}
	moved[a.MemberID] = slices.Clone(a.URLs)
	s.Observed.Record.PeerURLs, s.Observed.Record.MovedAt = moved, s.Now
	outlook.EachMember(s, func(m *state.Member) {
		if m.ID == a.MemberID {
			m.PeerURLs = a.URLs
		}
	})
}

// Undo implements Action.
func (MoveMember) Undo(*situation.Situation) Undo {
	return anytime("the mode from before in spec.tls.mode moves it back")
}
