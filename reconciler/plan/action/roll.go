package action

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/transport"
)

// StartRoll gives the StatefulSet the new template with its partition above
// every pod, so that it touches none.
type StartRoll struct {
	SetUID string
	// Template is the hash to go to.
	Template string
	// Partition above every pod; lower only for a cluster that has never formed.
	Partition int32
	From, To  string
}

func (StartRoll) isAction() {}

// Kind implements Action.
func (StartRoll) Kind() string { return "StartRoll" }

// String implements Action.
func (a StartRoll) String() string { return "start the roll " + Change(a.From, a.To) }

// Disruptive implements Action: no member stops.
func (StartRoll) Disruptive() bool { return false }

// After implements Action.
func (a StartRoll) After(s *situation.Situation) {
	next := transport.Of(s.Git, s.Observed, s.Now).Template
	s.Observed.Set.Template, s.Observed.Set.Version, s.Observed.Set.Partition = a.Template, a.To, a.Partition
	s.Observed.Set.ChangedAt = s.Now
	outlook.SwitchIssuer(s, next)
	s.Observed.Transport = next
	if r := s.Observed.Certificates.Rotation; r != nil {
		r.Set = s.Desired.Trust
	} else if t := &s.Observed.Certificates.Trust; s.Desired.Trust != t.Mounted {
		t.Mounted, t.Running = s.Desired.Trust, []string{s.Desired.Trust} // when all goes well
	}
}

// Undo implements Action.
func (StartRoll) Undo(s *situation.Situation) Undo {
	if r := s.Observed.Certificates.Rotation; r != nil && len(r.Next) > 0 && s.Desired.Trust == r.New {
		return final("members trust the next authorities alone from then on; a new word of spec.tls.rotate makes others")
	}
	return anytime("")
}

// MoveLeader moves the leadership away from a member that is about to stop.
type MoveLeader struct {
	From, FromID string
	To, ToID     string
}

func (MoveLeader) isAction() {}

// Kind implements Action.
func (MoveLeader) Kind() string { return "MoveLeader" }

// String implements Action.
func (a MoveLeader) String() string { return fmt.Sprintf("move the leader %s → %s", a.From, a.To) }

// Disruptive implements Action: no member stops.
func (MoveLeader) Disruptive() bool { return false }

// After implements Action.
func (a MoveLeader) After(s *situation.Situation) { outlook.LeadBy(s, a.ToID) }

// Undo implements Action.
func (MoveLeader) Undo(*situation.Situation) Undo {
	return harmless("the next roll moves the leader again")
}

// RestartMember stops one member, which comes back with another template.
type RestartMember struct {
	SetUID  string
	Member  string
	Ordinal int32
	// PodUID of the pod that is to go.
	PodUID string
	// MemberID of the member that is to stop; empty when it never ran.
	MemberID string
	// Partition to lower the StatefulSet's to. When ByDeletion is set the
	// partition stays and the pod is deleted: it comes back with the template
	// of the last roll that ended.
	Partition  int32
	ByDeletion bool
	From, To   string
}

func (RestartMember) isAction() {}

// Kind implements Action.
func (RestartMember) Kind() string { return "RestartMember" }

// String implements Action.
func (a RestartMember) String() string {
	return fmt.Sprintf("restart %s %s", a.Member, Change(a.From, a.To))
}

// Disruptive implements Action: a restarted member stops serving for a moment.
func (RestartMember) Disruptive() bool { return true }

// After implements Action.
func (a RestartMember) After(s *situation.Situation) {
	s.Observed.Set.Partition = a.Partition
	outlook.ReplacePod(s, a.Ordinal)
	outlook.Settle(s)
}

// Undo implements Action.
func (a RestartMember) Undo(s *situation.Situation) Undo { return undoRestart(s, a) }

// EndRoll puts the partition back above every pod when all have the template.
type EndRoll struct {
	SetUID   string
	Template string
	Replicas int32
}

func (EndRoll) isAction() {}

// Kind implements Action.
func (EndRoll) Kind() string { return "EndRoll" }

// String implements Action.
func (EndRoll) String() string { return "end the roll" }

// Disruptive implements Action: no member stops.
func (EndRoll) Disruptive() bool { return false }

// After implements Action.
func (a EndRoll) After(s *situation.Situation) {
	s.Observed.Set.Partition, s.Observed.Set.ChangedAt = a.Replicas, s.Now
}

// Undo implements Action.
func (EndRoll) Undo(*situation.Situation) Undo { return onlyNotes() }
