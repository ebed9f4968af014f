package plan

import "fmt"

// StartRoll gives the StatefulSet the new template with its partition above
// every pod, so that it touches none.
type StartRoll struct {
	SetUID string
	// Template is the hash to go to.
	Template string
	// Partition above every pod; 0 only for a cluster that has never formed.
	Partition int32
	From, To  string
}

func (StartRoll) isAction() {}

// String implements Action.
func (a StartRoll) String() string { return "start the roll " + change(a.From, a.To) }

// Disruptive implements Action: no member stops.
func (StartRoll) Disruptive() bool { return false }

// after implements Action.
func (a StartRoll) after(s *situation) {
	s.o.Set.Template, s.o.Set.Version, s.o.Set.Partition = a.Template, a.To, a.Partition
}

// undo implements Action.
func (StartRoll) undo(*situation) string { return anytime }

// MoveLeader moves the leadership away from a member that is about to stop.
type MoveLeader struct {
	From, FromID string
	To, ToID     string
}

func (MoveLeader) isAction() {}

// String implements Action.
func (a MoveLeader) String() string { return fmt.Sprintf("move the leader %s → %s", a.From, a.To) }

// Disruptive implements Action: no member stops.
func (MoveLeader) Disruptive() bool { return false }

// after implements Action.
func (a MoveLeader) after(s *situation) { s.lead(a.ToID) }

// undo implements Action.
func (MoveLeader) undo(*situation) string { return harmless + ": the next roll moves the leader again" }

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

// String implements Action.
func (a RestartMember) String() string {
	return fmt.Sprintf("restart %s %s", a.Member, change(a.From, a.To))
}

// Disruptive implements Action: a restarted member stops serving for a moment.
func (RestartMember) Disruptive() bool { return true }

// after implements Action.
func (a RestartMember) after(s *situation) {
	s.o.Set.Partition = a.Partition
	s.replacePod(a.Ordinal)
	s.settle()
}

// undo implements Action.
func (a RestartMember) undo(s *situation) string { return s.undoRestart(a) }

// EndRoll puts the partition back above every pod when all have the template.
type EndRoll struct {
	SetUID   string
	Template string
	Replicas int32
}

func (EndRoll) isAction() {}

// String implements Action.
func (EndRoll) String() string { return "end the roll" }

// Disruptive implements Action: no member stops.
func (EndRoll) Disruptive() bool { return false }

// after implements Action.
func (a EndRoll) after(s *situation) { s.o.Set.Partition = a.Replicas }

// undo implements Action.
func (EndRoll) undo(*situation) string { return onlyNotes }
