package schema

import (
	"cmp"
	"slices"
	"time"
)

// StatusAPIVersion is the group and version of statuses. It is not that of the
// files: a status that is copied among them is ignored.
const StatusAPIVersion = "status." + APIVersion

// Status is what quorate knows of one object after a pass. Nothing in it
// ticks: two passes between which nothing has happened give the same Status. It
// holds no secret.
type Status struct {
	APIVersion string `json:"apiVersion"`
	// Kind is the kind of the object.
	Kind     string         `json:"kind"`
	Metadata StatusMetadata `json:"metadata"`
	Status   ObjectStatus   `json:"status"`
	// Observed is the newest commit that the object was reconciled with. It is not
	// shown: a commit that changes other objects is no news of this one.
	Observed string `json:"-"`
}

// NewStatus is the status of an object that is in a phase for a reason.
func NewStatus(kind, namespace, name string, phase Phase, reason, message string) Status {
	return Status{
		APIVersion: StatusAPIVersion, Kind: kind, Metadata: StatusMetadata{Name: name, Namespace: namespace},
		Status: ObjectStatus{Conditions: ConditionsOf(phase, reason, message)},
	}
}

// TimeText is a time of a status: RFC 3339 in UTC, "" for none.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// StatusMetadata names the object.
type StatusMetadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// ObjectStatus is how an object is. Of Cluster, Backup, Schedule and Restore one at
// most is set, by the kind.
type ObjectStatus struct {
	// Commit is the Git commit that declares what the object is, or will become;
	// empty where it is unknown.
	Commit string `json:"commit,omitempty"`
	// Accepted is why that commit was let in; left out where nothing was asked of it. Like
	// Commit it stays as it is while other commits leave the object alone.
	Accepted Acceptance `json:"accepted,omitzero"`
	// Conditions are Ready, Reconciling and Stalled, in this order.
	Conditions []Condition      `json:"conditions"`
	Cluster    *ClusterStatus   `json:"cluster,omitempty"`
	Backup     *BackupRunStatus `json:"backup,omitempty"`
	Schedule   *ScheduleStatus  `json:"schedule,omitempty"`
	Restore    *RestoreStatus   `json:"restore,omitempty"`
}

// Acceptance is why a commit was let in: whose signatures were verified, and which approval
// of a person it took.
type Acceptance struct {
	// Signer is the key that its signature was verified with, and whose that is by
	// allowed_signers; empty where no signature was wanted.
	Signer string `json:"signer,omitempty"`
	// Tag is the tag that named the commit, and TagSigner whose signature of that was
	// verified; empty where a branch or a commit is followed, or no signature was wanted.
	Tag       string `json:"tag,omitempty"`
	TagSigner string `json:"tagSigner,omitempty"`
	// Approval is the transition, FROM..TO, that a person approved to have it accepted, and
	// ApprovedBy how and when; empty where none was needed.
	Approval   string `json:"approval,omitempty"`
	ApprovedBy string `json:"approvedBy,omitempty"`
}

// The types of conditions, which are kstatus's. Ready means that the object is what
// Git says, Reconciling that quorate or something that it awaits is getting
// there, and Stalled that there is no progress until a person or another program acts.
const (
	ConditionReady       = string(PhaseReady)
	ConditionReconciling = string(PhaseReconciling)
	ConditionStalled     = string(PhaseStalled)
)

// The states of a condition, which are Kubernetes'.
const (
	ConditionTrue    = "True"
	ConditionFalse   = "False"
	ConditionUnknown = "Unknown"
)

// Condition is one thing that holds of an object, or does not.
type Condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	// Reason is one word in CamelCase, Message one sentence for people.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// LastTransitionTime is when Status became what it is, in UTC. Only what is written
	// beside the object in Kubernetes has it: a pass knows nothing of the one before.
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}

// Phase is an object's state in one word.
type Phase string

// The phases, in the order of how soon they want a person.
const (
	PhaseStalled     Phase = "Stalled"
	PhaseUnknown     Phase = "Unknown"
	PhaseReconciling Phase = "Reconciling"
	PhaseReady       Phase = "Ready"
)

// Phases are all phases, in the order of how soon they want a person.
func Phases() []Phase { return []Phase{PhaseStalled, PhaseUnknown, PhaseReconciling, PhaseReady} }

// ConditionsOf are the conditions of an object in a phase, with the reason, one word
// in CamelCase, and a sentence for people.
func ConditionsOf(phase Phase, reason, message string) []Condition {
	list := []Condition{{Type: ConditionReady}, {Type: ConditionReconciling}, {Type: ConditionStalled}}
	for i := range list {
		c := &list[i]
		c.Status, c.Reason = ConditionFalse, reason
		if c.Type == string(phase) {
			c.Status = ConditionTrue
		}
		if c.Type == ConditionReady && phase == PhaseUnknown {
			c.Status = ConditionUnknown
		}
		if c.Status != ConditionFalse || c.Type == ConditionReady {
			c.Message = message
		}
	}
	return list
}

// Phase sums the conditions up, and gives the one that says why.
func (s Status) Phase() (Phase, Condition) {
	for _, phase := range []Phase{PhaseStalled, PhaseReconciling, PhaseReady} {
		if c := s.Condition(string(phase)); c.Status == ConditionTrue {
			return phase, c
		}
	}
	return PhaseUnknown, s.Condition(ConditionReady)
}

// Condition is the condition of a type; the zero Condition for none.
func (s Status) Condition(of string) Condition {
	for _, c := range s.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return Condition{}
}

// ClusterStatus is how a cluster is.
type ClusterStatus struct {
	// Version of etcd.
	Version VersionStatus `json:"version"`
	// Replicas count its members.
	Replicas ReplicasStatus `json:"replicas"`
	// Rollout is how far the restart of all members onto what Git says is; nil where none
	// is under way or due.
	Rollout *RolloutStatus `json:"rollout,omitempty"`
	// Members in the order of their ordinals.
	Members []MemberStatus `json:"members,omitempty"`
	// Drift are the objects that are not what quorate wants of them.
	Drift []DriftStatus `json:"drift,omitempty"`
	// Hold is why nothing is done now; nil when something may be.
	Hold *HoldStatus `json:"hold,omitempty"`
	// Plan are the steps between the cluster and what Git says. Behind a hold, and
	// behind the first step, it is a forecast.
	Plan []StepStatus `json:"plan,omitempty"`
	// Warnings are sentences about what is applied all the same.
	Warnings []string `json:"warnings,omitempty"`
	// Backups are the last good ones, each with what it was taken for.
	Backups []BackupStatus `json:"backups,omitempty"`
	// Maintenance are the windows in which members may be restarted, such as "0 2 * * 6
	// for 3h0m0s, Europe/Berlin"; none where every time is good.
	Maintenance []string `json:"maintenance,omitempty"`
}

// VersionStatus is which version is wanted, and which the members report.
type VersionStatus struct {
	Wanted string `json:"wanted,omitempty"`
	// Lowest and Highest are what the members report; empty while none does.
	Lowest  string `json:"lowest,omitempty"`
	Highest string `json:"highest,omitempty"`
}

// ReplicasStatus counts members.
type ReplicasStatus struct {
	// Wanted is how many there should be, Members how many voters etcd has, and
	// Healthy how many members of any role answer.
	Wanted  int32 `json:"wanted"`
	Members int32 `json:"members"`
	Healthy int32 `json:"healthy"`
}

// RolloutStatus is how far a rollout is.
type RolloutStatus struct {
	// Done counts the members whose pod is made from what Git says, of all Members that
	// have a pod.
	Done    int32 `json:"done"`
	Members int32 `json:"members"`
}

// The roles of a member.
const (
	RoleVoter   = "voter"
	RoleLearner = "learner"
)

// The health of a member.
const (
	// HealthHealthy is a member that answers and complains of nothing.
	HealthHealthy = "Healthy"
	// HealthUnhealthy is one that does not.
	HealthUnhealthy = "Unhealthy"
	// HealthUnknown is one that cannot be determined.
	HealthUnknown = "Unknown"
)

// MemberStatus is one member.
type MemberStatus struct {
	Name string `json:"name,omitempty"`
	// ID in hexadecimal.
	ID string `json:"id,omitempty"`
	// Version that it reports.
	Version string `json:"version,omitempty"`
	Role    string `json:"role,omitempty"`
	Leader  bool   `json:"leader,omitempty"`
	Health  string `json:"health"`
}

// DriftStatus is one object that is not what quorate wants of it.
type DriftStatus struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// State is drifted, missing or foreign.
	State string `json:"state"`
	// Fields that differ, and who has changed them, as far as known.
	Fields  []string `json:"fields,omitempty"`
	Manager string   `json:"manager,omitempty"`
	// Changes are how these fields differ.
	Changes []FieldDrift `json:"changes,omitempty"`
	// Since is when it was changed last, in UTC; empty where that is unknown, and in a
	// fight, which changes it again and again.
	Since string `json:"since,omitempty"`
	// Correction says whether and when quorate puts it back, or why not.
	Correction string `json:"correction,omitempty"`
	// Fight names who changes it again each time that it is put back, and what; empty where
	// there is none.
	Fight string `json:"fight,omitempty"`
}

// Differences are the fields that differ, each with its values where these are known.
func (d DriftStatus) Differences() []FieldDrift {
	if len(d.Changes) > 0 {
		return d.Changes
	}
	list := make([]FieldDrift, len(d.Fields))
	for i, path := range d.Fields {
		list[i].Path = path
	}
	return list
}

// FieldDrift is one field that is not what quorate wants of it.
type FieldDrift struct {
	// Path of the field, such as ".spec.type".
	Path string `json:"path"`
	// Live and Wanted are its values; empty for none. One that is long, or could be secret,
	// is "(not shown)".
	Live   string `json:"live,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	// Manager has changed it, and Since is when, in UTC, as far as known.
	Manager string `json:"manager,omitempty"`
	Since   string `json:"since,omitempty"`
}

// HoldStatus is why nothing is done.
type HoldStatus struct {
	// Kind of hold, and Rule that holds.
	Kind string `json:"kind"`
	Rule string `json:"rule"`
	// Message is what is awaited, and Do what a person can do.
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

// StepStatus is one step of the plan.
type StepStatus struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
	// Undo says until when the step can be taken back, and how.
	Undo string `json:"undo,omitempty"`
}

// BackupStatus is one good backup. It never changes.
type BackupStatus struct {
	// For is what it was taken for, such as "3.6.16" or "schedule nightly".
	For string `json:"for,omitempty"`
	// URL of the object, without the query.
	URL string `json:"url"`
	// Time is when it was taken, in UTC.
	Time string `json:"time"`
	// ClusterID in hexadecimal, Member that gave it, Revision that is in it, Size in
	// bytes and SHA256 of the object, as far as they are known.
	ClusterID string `json:"clusterID,omitempty"`
	Member    string `json:"member,omitempty"`
	Revision  int64  `json:"revision,omitempty"`
	Size      int64  `json:"size,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	// Commit that asked for it.
	Commit string `json:"commit,omitempty"`
}

// LastBackup is the newest good backup of the object, as far as it is known; the zero
// value for none.
func (s Status) LastBackup() (last BackupStatus) {
	switch o := s.Status; {
	case o.Cluster != nil:
		for _, b := range o.Cluster.Backups {
			if b.Time > last.Time {
				last = b
			}
		}
	case o.Schedule != nil && o.Schedule.Last != nil:
		last = *o.Schedule.Last
	case o.Backup != nil && o.Backup.Taken != nil:
		last = *o.Backup.Taken
	}
	return last
}

// BackupRunStatus is how an EtcdBackup is.
type BackupRunStatus struct {
	// Cluster that it is of.
	Cluster string `json:"cluster"`
	// Taken is the backup; nil until it is good.
	Taken *BackupStatus `json:"taken,omitempty"`
}

// ScheduleStatus is how an EtcdBackupSchedule is.
type ScheduleStatus struct {
	// Cluster that is backed up.
	Cluster string `json:"cluster"`
	// Last is the newest good backup, and Next the time, in UTC, that the next one
	// covers.
	Last *BackupStatus `json:"last,omitempty"`
	Next string        `json:"next,omitempty"`
	// Drill is the newest restore drill that was judged.
	Drill *DrillStatus `json:"drill,omitempty"`
}

// DrillStatus is one restore drill that was judged.
type DrillStatus struct {
	// URL of the backup, without the query, and Time of the drill, in UTC.
	URL  string `json:"url"`
	Time string `json:"time"`
	// Result is "passed", or what was wrong.
	Result string `json:"result"`
}

// RestoreStatus is how an EtcdRestore is.
type RestoreStatus struct {
	// Cluster that it makes.
	Cluster string `json:"cluster"`
	// Source describes the backup, or is its URL without the query.
	Source string `json:"source"`
	// Backup is the one that the cluster begins with, in words: when it was taken, of
	// which cluster, its revision, keys, size and URL, and how many newer ones there are
	// and whose; empty while that is unknown.
	Backup string `json:"backup,omitempty"`
	// Time is when clients could come, in UTC; empty until then.
	Time string `json:"time,omitempty"`
}

// SortStatuses orders statuses by kind and name: clusters, backups, schedules,
// restores.
func SortStatuses(list []Status) {
	slices.SortStableFunc(list, CompareStatuses)
}

// CompareStatuses is the order of SortStatuses.
func CompareStatuses(a, b Status) int {
	return cmp.Or(
		cmp.Compare(slices.Index(Kinds(), a.Kind), slices.Index(Kinds(), b.Kind)),
		cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace),
		cmp.Compare(a.Metadata.Name, b.Metadata.Name),
	)
}
