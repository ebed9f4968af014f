package plan

import "fmt"

// Action is one thing to do. Each kind carries its own precondition, which the
// executor checks again, uncached, just before it acts.
//
//sumtype:decl
type Action interface {
	// String names the action and its object in a few words.
	String() string
	// Disruptive says whether a member stops serving for a moment.
	Disruptive() bool
	isAction()
}

// CreateRecord writes the cluster's record with a fresh token. It never
// overwrites a record.
type CreateRecord struct{}

// IssueCertificates makes the Secrets that are missing. It changes none.
type IssueCertificates struct{ Secrets []string }

// ApplyObject makes one Kubernetes object what quorate wants.
type ApplyObject struct{ Kind, Name string }

// CreateSet creates the StatefulSet, and with it the members' pods.
type CreateSet struct{ Replicas int32 }

// RecordFormed writes down the IDs of a cluster that has just formed.
type RecordFormed struct {
	ClusterID string
	Members   map[string]string
}

// TakeBackup stores and verifies a snapshot of the cluster.
type TakeBackup struct {
	// Member to read from, and its ID.
	Member, MemberID string
	ClusterID        string
	From, Target     string
}

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

// MoveLeader moves the leadership away from a member that is about to stop.
type MoveLeader struct {
	From, FromID string
	To, ToID     string
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

// EndRoll puts the partition back above every pod when all have the template.
type EndRoll struct {
	SetUID   string
	Template string
	Replicas int32
}

// RecordApplied writes down that the spec has been carried out to its end.
type RecordApplied struct {
	SpecHash, Version, Commit string
}

func (CreateRecord) isAction()      {}
func (IssueCertificates) isAction() {}
func (ApplyObject) isAction()       {}
func (CreateSet) isAction()         {}
func (RecordFormed) isAction()      {}
func (TakeBackup) isAction()        {}
func (StartRoll) isAction()         {}
func (MoveLeader) isAction()        {}
func (RestartMember) isAction()     {}
func (EndRoll) isAction()           {}
func (RecordApplied) isAction()     {}

// Disruptive implements Action: no member stops.
func (CreateRecord) Disruptive() bool { return false }

// Disruptive implements Action: no member stops.
func (IssueCertificates) Disruptive() bool { return false }

// Disruptive implements Action: no member stops.
func (ApplyObject) Disruptive() bool { return false }

// Disruptive implements Action: no member stops.
func (CreateSet) Disruptive() bool { return false }

// Disruptive implements Action: no member stops.
func (RecordFormed) Disruptive() bool { return false }

// Disruptive implements Action: no member stops.
func (TakeBackup) Disruptive() bool { return false }

// Disruptive implements Action: no member stops.
func (StartRoll) Disruptive() bool { return false }

// Disruptive implements Action: no member stops.
func (MoveLeader) Disruptive() bool { return false }

// Disruptive implements Action: a restarted member stops serving for a moment.
func (RestartMember) Disruptive() bool { return true }

// Disruptive implements Action: no member stops.
func (EndRoll) Disruptive() bool { return false }

// Disruptive implements Action: no member stops.
func (RecordApplied) Disruptive() bool { return false }

// String implements Action.
func (CreateRecord) String() string { return "create the record" }

// String implements Action.
func (a IssueCertificates) String() string { return "issue certificates" }

// String implements Action.
func (a ApplyObject) String() string { return fmt.Sprintf("apply %s %s", a.Kind, a.Name) }

// String implements Action.
func (a CreateSet) String() string { return fmt.Sprintf("create %s", members(int(a.Replicas))) }

// String implements Action.
func (a RecordFormed) String() string { return "record cluster " + a.ClusterID }

// String implements Action.
func (a TakeBackup) String() string { return "back up through " + a.Member }

// String implements Action.
func (a StartRoll) String() string { return "start the roll " + change(a.From, a.To) }

// String implements Action.
func (a MoveLeader) String() string { return fmt.Sprintf("move the leader %s → %s", a.From, a.To) }

// String implements Action.
func (a RestartMember) String() string {
	return fmt.Sprintf("restart %s %s", a.Member, change(a.From, a.To))
}

// String implements Action.
func (EndRoll) String() string { return "end the roll" }

// String implements Action.
func (a RecordApplied) String() string { return "record that " + a.Version + " is applied" }

// change names a change of version, or the version when only settings change.
func change(from, to string) string {
	if from == to {
		return "on " + to
	}
	return from + " → " + to
}

// members is "1 member", "3 members".
func members(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// podName is the name that a StatefulSet gives the pod of an ordinal.
func podName(cluster string, ordinal int32) string { return fmt.Sprintf("%s-%d", cluster, ordinal) }
