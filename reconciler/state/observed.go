// Package state has the words of the planner: what Git wants of one cluster (Desired)
// and what the cluster is (Observed), as plain values without Kubernetes or etcd types,
// so that a scenario reads like a table. Nothing in it decides.
package state

import (
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Desired is what Git says about one cluster.
type Desired struct {
	Namespace string
	Name      string
	// Commit is the Git commit that declares it.
	Commit string
	// Owner is the daemon that asks, and would act; none where it is only for a plan.
	Owner Owner
	// Spec is the defaulted spec.
	Spec schema.ClusterSpec
	// SpecHash identifies the spec.
	SpecHash string
	// Template is the hash of the pod template that the spec renders to.
	Template string
	// Trust is the Secret with what members trust that the template mounts, "" for none.
	Trust string
	// Waypoints are the rolls until there as Stops lists them, with their
	// templates; empty where there is one roll only.
	Waypoints []Waypoint
	// BackupURL is the template of the place for backups; empty where neither
	// the file nor the daemon names one.
	BackupURL string
	// Restore is what Git declares of the backup that the cluster begins with; nil for
	// one that begins empty.
	Restore *RestoreFrom
	// Problems of the file that names this cluster. With any, the rest of
	// Desired is not to be trusted and the cluster is left alone.
	Problems []string
}

// Observed is what the cluster is, as quorate's own small structs, so that a
// scenario reads like a table.
type Observed struct {
	// Record is what quorate wrote down about the cluster; nil when there is none.
	Record *Record
	// RecordProblem is why a record that exists cannot be used.
	RecordProblem string
	// PlacesUnread says that nobody has read yet whether nodes take the pods back that a
	// roll stops, see Pod.Shut.
	PlacesUnread bool
	// Certificates is the state of the Secrets with certificates.
	Certificates Certificates
	// Objects are the services, the disruption budget and, as far as it is not a
	// roll, the StatefulSet.
	Objects []Object
	// Leftovers are objects that go only with the cluster and its volumes: the
	// Secrets that quorate has made for it.
	Leftovers []Object
	// Set is the StatefulSet; nil when there is none.
	Set *Set
	// Transport is over what the members are reached that the StatefulSet's template makes; while
	// there is none, that of the pod that was made last. The zero value where neither is there.
	Transport Transport
	// Pods of the StatefulSet.
	Pods []Pod
	// Volumes are the volume claims that carry this cluster's name, by ordinal.
	Volumes []Volume
	// Restore is how far the restore of a volume is, while a recovery is under way.
	Restore Restore
	// Trial is what is known of the storage class that volumes are to change to.
	Trial Trial
	// Rounds are reports of the members' health, oldest first.
	Rounds []Round
	// Auth is what was found of users, roles and authentication; nil where nobody asked.
	Auth *Auth
	// Fleet is what the other clusters do; filled in only where Begins reports true.
	Fleet Fleet
}

// Record is what must outlive every process.
type Record struct {
	// ClusterID in hexadecimal; empty until the cluster has formed.
	ClusterID string
	// Members maps a member's name to its ID in hexadecimal.
	Members map[string]string
	// Founders is how many members the cluster begins with; 0 in a record that
	// does not say.
	Founders int32
	// Joining is the member that is being added, and Leaving the one that is being
	// removed; nil when there is none. Never both.
	Joining *Joining
	Leaving *Leaving
	// Replacing is the name of a member that was removed and whose place another
	// one is to take.
	Replacing string
	// Retired are the last IDs of members that were removed, by name, as long as
	// their volumes may exist.
	Retired map[string]string
	// FailedJoin is the last learner that did not become a voter, until one does.
	FailedJoin *FailedJoin
	// Hibernated says that the members sleep: their volumes are all there is.
	Hibernated bool
	// Deleted says that everything but the volumes is gone or going.
	Deleted bool
	// Recovering is a recovery under way; nil when there is none. Recovered are
	// those that are over, and RefusedRecovery is one that stood in Git while the
	// cluster had a quorum.
	Recovering      *Recovering
	Recovered       []Recovered
	RefusedRecovery string
	// Restored is the restore that the cluster has begun with; nil for one that
	// began empty.
	Restored *Restored
	// ClaimPrefix begins the names of the members' volume claims where these are
	// not the usual ones, because a deleted cluster of the same name has left its own.
	ClaimPrefix string
	// Kept are the members of a lost incarnation whose volumes are kept, with its
	// data aside, when a new member of their name joins.
	Kept map[string]bool
	// Backup is the last verified backup that something asked for, and RollBackup that of
	// the last roll, where a later one took its place: a roll rests on its own for as long
	// as it lasts, whatever else needs one meanwhile.
	Backup, RollBackup *Backup
	// Applied is the last spec that was applied completely.
	Applied *Applied
	// Owner is the owner of the cluster; nil in a record from before there
	// were owners.
	Owner *Owner
	// Compacted is the last compaction that quorate asked for.
	Compacted *Compacted
	// Defragmented is when each member was last defragmented, by name.
	Defragmented map[string]time.Time
	// BornOn is the lowest minor that the cluster has ever run, such as "3.5";
	// empty when unknown.
	BornOn string
	// Flushed are the members, with their IDs, whose logs hold nothing of a minor
	// before 3.6: they have saved their state beside it since.
	Flushed map[string]string
	// Forced is when entries were last added to the log so that members save
	// their state, nil when that was never needed or is over.
	Forced *ForcedSnapshot
	// Downgrade is the downgrade that quorate has enabled in etcd; nil when there is
	// none under way.
	Downgrade *Downgrade
	// PeerURLs are where etcd has members, by their IDs, whose URLs a change of spec.tls.mode has
	// moved. The others are where their pods listen on their usual port.
	PeerURLs map[string][]string
	// MovedAt is when the last of these was moved.
	MovedAt time.Time
	// Seen are the times that lay ahead of the clock when quorate saw them.
	Seen []Seen
}

// Seen is when quorate saw, by its own clock, a time that lay ahead of it.
type Seen struct {
	// What has the time, in a few words, and Stamp is the time as it stands there.
	What  string
	Stamp time.Time
	// At is when quorate saw it first.
	At time.Time
}

// Compacted is a compaction.
type Compacted struct {
	// Revision from which on history was kept.
	Revision int64
	At       time.Time
}

// Joining is a member that joins.
type Joining struct {
	Member string
	// ID of the learner; empty until etcd has added it.
	ID    string
	Since time.Time
	// Promoting says that it may be a voter already.
	Promoting bool
	// Replace says that it takes the place of a member that was removed.
	Replace bool
}

// Leaving is a member that leaves.
type Leaving struct {
	Member, ID, Why string
	// Replace says that another one is to take its place, and Serving that it serves
	// meanwhile: that it answers is no reason to keep it. Asked says that nothing is wrong
	// with it, and Git asks for another one.
	Replace, Serving, Asked bool
	Since                   time.Time
}

// FailedJoin is a learner that did not become a voter.
type FailedJoin struct {
	Member string
	At     time.Time
	// Times is how often in a row.
	Times int
}

// Recovering is a recovery under way.
type Recovering struct {
	// OneShot is what Git asked for, ClusterID the lost cluster.
	OneShot, ClusterID string
	// NewClusterID and NewMemberID are the IDs that the recovered cluster and its
	// first member have.
	NewClusterID, NewMemberID string
	// Member is the first member, ObjectURL the backup if it is one.
	Member, ObjectURL string
	// Revision that is recovered, at least, and Above the highest one that is known of
	// the clusters that had this name before; 0 where that is not above it.
	Revision, Above int64
	Since           time.Time
}

// Recovered is a recovery that is over: what Git asked for, the lost cluster, and since when.
type Recovered struct {
	OneShot, ClusterID string
	At                 time.Time
}

// RestoreState is how far the restore of a volume is.
type RestoreState string

// The states of a restore.
const (
	RestoreNone    RestoreState = ""
	RestoreRunning RestoreState = "running"
	RestoreDone    RestoreState = "done"
	RestoreFailed  RestoreState = "failed"
)

// Restore is the restore of one volume.
type Restore struct {
	State RestoreState
	// Detail is what is awaited, or what failed, and Job is the name of the Job.
	Detail, Job string
	Since       time.Time
	// Began says that a container of it has run, so that there was a volume. NoRoom says that the last try found no room
	// on it.
	Began, NoRoom bool
	// AcceptHashMismatch is the sha256 of the backup where Git says now that it is
	// restored although etcd said another hash of its keys.
	AcceptHashMismatch string
}

// Formed reports whether the cluster has ever had a quorum.
func (r *Record) Formed() bool { return r != nil && r.ClusterID != "" }

// NoteBackup records a backup that was taken.
func (r *Record) NoteBackup(b Backup) {
	switch was := r.Backup; {
	case b.For.IsRoll():
		r.RollBackup = nil
	case was != nil && was.For.IsRoll():
		r.RollBackup = was
	}
	r.Backup = &b
}

// Backup is a verified backup, bound to what it was taken for.
type Backup struct {
	ClusterID string
	For       Purpose
	URL       string
	Time      time.Time
	// Unreachable is why no restore could read it when it was taken, "" where one could.
	Unreachable string
}

// ForcedSnapshot is that entries were added to the log.
type ForcedSnapshot struct {
	// Template that every pod had.
	Template string
	// Since is when that was done first under this template, Time when last.
	Since, Time time.Time
	// Before is how often each member had saved its state just before.
	Before map[string]int64
}

// Downgrade is a downgrade through etcd's own API.
type Downgrade struct {
	// Minor is where it goes to, such as "3.6".
	Minor string
	Since time.Time
}

// DowngradeSince is when the downgrade was begun, zero when unknown.
func (r *Record) DowngradeSince() time.Time {
	if r == nil || r.Downgrade == nil {
		return time.Time{}
	}
	return r.Downgrade.Since
}

// Applied is a spec that was applied.
type Applied struct {
	SpecHash string
	// Settings is a hash of the part of the spec that makes the members what they
	// are; empty in a record that does not say.
	Settings string
	Version  string
	Commit   string
}

// ObjectState is how an object differs from what quorate wants.
type ObjectState string

// The states of an object.
const (
	ObjectMissing ObjectState = "missing"
	ObjectInSync  ObjectState = "in sync"
	ObjectDrifted ObjectState = "drifted"
	// ObjectForeign was not made by quorate and is never changed.
	ObjectForeign ObjectState = "foreign"
)

// Object is one Kubernetes object that quorate keeps for the cluster.
type Object struct {
	Kind  string
	Name  string
	State ObjectState
	// Detail is what drifted and by whom, or who owns a foreign object.
	Detail string
	// ChangedAt is when it drifted; zero when unknown.
	ChangedAt time.Time
	// Fight is set where another writer undoes each time what quorate does, and Refused
	// where the object was not taken as it was applied last.
	Fight   *Fight
	Refused *Refusal
	// Weight is what hangs on the fields that drifted.
	Weight Weight
	// Left says that it is reported and left as it is, because Git says so.
	Left bool
}

// KindBudget is the kind of the object that says how many members others may stop.
const KindBudget = "PodDisruptionBudget"

// Set is the StatefulSet.
type Set struct {
	UID string
	// Created is when it was made; zero when unknown.
	Created   time.Time
	Replicas  int32
	Partition int32
	// Template is the hash of the template that pods at or above the partition
	// get; Version is its etcd version.
	Template string
	Version  string
	// CurrentTemplate is the hash of the template that pods below the partition
	// get: the last one whose roll ended. CurrentVersion is its etcd version.
	CurrentTemplate string
	CurrentVersion  string
	// Settled says that the StatefulSet controller has seen the last change. ChangedAt is
	// when that was, and StatusAt when the controller last changed what it says of its
	// pods; zero when unknown.
	Settled             bool
	ChangedAt, StatusAt time.Time
	// Refusal is that Kubernetes refuses a pod that is missing; nil where none is, or
	// where that is not known. It is looked up only while a pod is missing.
	Refusal *PodRefusal
	// ScaledBy is the other manager that has set the number of replicas; empty for none. ScaledAt
	// is when, zero when unknown.
	ScaledBy string
	ScaledAt time.Time
	// Terminating says that it is being deleted, GoingSince since when, and Finalizers what
	// it waits for.
	Terminating bool
	GoingSince  time.Time
	Finalizers  string
	// ClaimSize in bytes and ClaimClass are what it asks for new members' volumes;
	// a class of "" is the default.
	ClaimSize  int64
	ClaimClass string
	// Immutable lists changes of the spec that a live cluster cannot take, but for those of volumes.
	Immutable []Change
}

// Replaces reports whether the StatefulSet controller would make another pod of p, did the
// partition let it.
func (s *Set) Replaces(p Pod) bool { return p.Template != s.Template || p.Stale }

// Rolling reports whether a pod has another template than the StatefulSet, or is missing, or the
// roll is not closed.
func (o *Observed) Rolling() bool {
	return o.Set == nil || !o.Set.Settled || o.Set.CurrentTemplate != o.Set.Template || slices.ContainsFunc(o.Pods, o.Set.Replaces) || len(o.Pods) < int(o.Set.Replicas)
}

// Midway reports whether the partition stands in the midst of the members: the lowest was never let go, so that the
// cluster version is that of before the roll, and each member can start with either release. Above them all it stands
// after a roll, too, be another one to join or not.
func (o *Observed) Midway() bool {
	highest := int32(-1)
	for name := range o.Record.Members {
		highest = max(highest, naming.Ordinal(name))
	}
	return o.Set.Partition > 0 && o.Set.Partition <= highest
}

// PodRefusal is that Kubernetes refuses to create a pod of a StatefulSet, or its claim.
type PodRefusal struct {
	// Pods are the missing ones that it speaks of; none where that is unknown.
	Pods []string
	// Why is what the API server said.
	Why string
	// Since is when it said so first, and At when last.
	Since, At time.Time
}

// Change is a change of one field.
type Change struct {
	// Field is one of the fields below, or another one that cannot change.
	Field string
	// Text names the field, and the values where that helps.
	Text string
}

// The fields that do not change on a live cluster.
const (
	FieldSize       = "spec.storage.size"
	FieldClass      = "spec.storage.storageClassName"
	FieldTLSSecrets = "spec.tls.secrets"
	// FieldTLSWithAuth is the mode while authentication is on.
	FieldTLSWithAuth = "tls.mode with auth.enabled"
	FieldFamily      = "spec.network.ipFamilies[0]"
	FieldDomain      = "spec.network.clusterDomain"
	// FieldDaemonDomain is the daemon's --cluster-domain, where the file names none.
	FieldDaemonDomain = "--cluster-domain"
)

// Pod is one pod of the StatefulSet.
type Pod struct {
	Name     string
	Ordinal  int32
	UID      string
	Template string
	// Stale says that the pod is of another revision of the StatefulSet than the newest although
	// the hash is the same: admission has made something else of the template since. The
	// controller replaces it like any other that the partition lets go.
	Stale bool
	// Mutated is how the pod differs from its template in what the member starts with; empty
	// for not at all, or where the StatefulSet has another template by now.
	Mutated string
	// Version of etcd in the template that the pod was made from.
	Version string
	// Ready says that all of the pod is: only then do clients reach the member and does the
	// StatefulSet controller go on, so the gate wants it. EtcdReady says that etcd is, by the
	// probe of its own container: a container beside it takes no member away from the quorum.
	Ready      bool
	EtcdReady  bool
	ReadySince time.Time
	// UnreadySince is when a pod that was ready ceased to be, without its etcd
	// having been started again; zero for any other.
	UnreadySince time.Time
	Created      time.Time
	// Terminating says that it is being deleted, GoingSince since when, and Finalizers what
	// it waits for.
	Terminating bool
	GoingSince  time.Time
	Finalizers  string
	// LostNode is the node of a pod that is being deleted and should be gone by now, where
	// that node does not report, or does not exist any more; "" where it does.
	LostNode string
	// Ran says that etcd has been started in this pod at least once.
	Ran bool
	// RunsSince is since when the etcd in it runs; zero while none does. Without a quorum one
	// that has just started runs and answers nobody: it serves when it has found a leader.
	RunsSince time.Time
	// Crashed says that etcd has ended with an error in this pod, or for an
	// unknown reason.
	Crashed bool
	// Unpulled says that the pod cannot start because an image that its template
	// names cannot be had.
	Unpulled bool
	// Quota in bytes that the pod gives its member; 0 leaves it to etcd.
	Quota int64
	// DownSince is since when a pod that is not ready has not been; zero when unknown.
	DownSince time.Time
	// Barred says that Kubernetes, and not etcd, keeps the pod from running: no node takes
	// it, its image or its configuration cannot be had, it needs more memory than it may
	// have.
	Barred bool
	// Trouble is why etcd does not run in the pod, in Kubernetes' words. Beside is what is
	// wrong with other containers, where that alone keeps the pod from being ready.
	Trouble, Beside string
	// Found is what the guard has found on the volume, without its advice; empty where
	// it let etcd start.
	Found string
	// Damage is what is wrong with the member's data, as far as its pod tells: one
	// of the Damage constants, empty for nothing. DamageSince is since when the pod
	// has not been ready.
	Damage      string
	DamageSince time.Time
	// NodeGone says that the node to which its volume is tied does not exist or does
	// not report, so that the pod can start nowhere. NodeGoneSince is since when. NodeStopped says that nothing runs on
	// it by the word of a person or of a cloud: the Node object is gone, or tainted out-of-service.
	NodeGone, NodeStopped bool
	NodeGoneSince         time.Time
	// Shut is the node to which its volume is tied, where that takes no new pod of the
	// cluster, and ShutBy why: what is stopped there does not come back. Both are "" where
	// that is not so, and of a pod that no roll is about to stop.
	Shut, ShutBy string
	// Drained is the node on which it runs, where that takes no new pod of the cluster, and
	// DrainedBy why. It is read of an only member that may be replaced by way of a second
	// one, and "" of any other.
	Drained, DrainedBy string
	// Unclaimed says that the volume claim that it mounts does not exist any more: its
	// volume goes when it stops.
	Unclaimed bool
	// NodeSilent says that the node on which it runs does not report, so that Ready is
	// what was so once. It is looked up only while the members do not answer.
	NodeSilent bool
	// SilentNode is the node on which it is, where that exists and does not report, and nobody has tainted it
	// out-of-service: its etcd may serve there. It is looked up only while the members do not answer.
	SilentNode string
	// Reported says that what the status of a pod that is not ready says of its containers
	// is so now: its node reports, or it is on none. It is looked up only while the members
	// do not answer.
	Reported bool
}

// Serving reports whether a kubelet that reports finds the pod, or at least its etcd, ready, and
// it is to stay.
func (p Pod) Serving() bool { return (p.Ready || p.EtcdReady) && !p.Terminating && !p.NodeSilent }

// What can be wrong with the data of a member, apart from what passes on its own:
// a full disk, too little memory or a missing image are no damage.
const (
	// DamageEmpty means that the volume is empty although the member had joined.
	DamageEmpty = "empty"
	// DamageForeign means that the data may be foreign: another cluster's,
	// another member's, or of an unknown origin. It is never deleted.
	DamageForeign = "foreign"
	// DamageOutdated means that the data is what an earlier member of that name has
	// left in this very cluster.
	DamageOutdated = "outdated"
	// DamageOlder means that the data is the member's own of an earlier time.
	DamageOlder = "older"
	// DamageCorrupt means that the data cannot be read.
	DamageCorrupt = "corrupt"
	// DamageLost means that the volume behind the claim does not exist any more.
	DamageLost = "lost"
)

// Round is one question to every member, all within a moment.
type Round struct {
	At time.Time
	// Problem is why there is no member list.
	Problem string
	// ClusterID in hexadecimal, as the member list's header has it.
	ClusterID string
	// Members of the list. While there is none, those that were asked: what each
	// reports about itself, which no other member confirms, besides its Problem. One that did
	// not even do that has no ID.
	Members []Member
	// Alarms that are on.
	Alarms []Alarm
	// ClusterVersion is the version that all members have agreed on: it moves
	// after the last member runs the new release.
	ClusterVersion string
	// Downgrading says that etcd has a downgrade in progress, and DowngradeTarget
	// to which minor, such as "3.6".
	Downgrading     bool
	DowngradeTarget string
	// HeardBy is the ID of the leader that has said how much it has heard from members that
	// do not answer; "" where none was asked or has said it. Listened says that this was
	// compared with an earlier round.
	HeardBy  string
	Listened bool
	// Deep says that hashes were compared, too, and Incomparable why that tells nothing of
	// the data of them all; "" where it does.
	Deep         bool
	Incomparable string
}

// Alarm is one of etcd's alarms, raised by a member or against one.
type Alarm struct {
	// Kind is NoSpace, Corrupt or one that a newer etcd knows.
	Kind string
	// MemberID in hexadecimal; "0" where etcd does not know which member it is.
	MemberID string
}

// The alarms of etcd.
const (
	// NoSpace refuses every write because a database has reached its quota.
	NoSpace = "NOSPACE"
	// Corrupt refuses every read and write because members hold different data.
	Corrupt = "CORRUPT"
)

// String names the alarm and its member.
func (a Alarm) String() string {
	if a.MemberID == UnknownMember {
		return a.Kind + " on an unknown member"
	}
	return a.Kind + " on member " + a.MemberID
}

// UnknownMember is the member of an alarm that etcd cannot blame on a member.
const UnknownMember = "0"

// Member is one member as the member list and its own status have it.
type Member struct {
	ID      string
	Name    string
	Learner bool
	// PeerURLs are where other members reach it, as the member list has them.
	PeerURLs []string
	// Problem is why the member's status or a linearizable read through it
	// failed; empty when both answered. Denied says that it answers to a user only.
	Problem string
	Denied  bool
	Version string
	// Leader is the ID of the member that this one follows; empty for none.
	Leader string
	Term   uint64
	// Heard is how much the leader has received from one that does not answer, in bytes, and
	// Peers what follows from it.
	Heard int64
	Peers Peers
	// StorageVersion of the database's schema; empty before etcd 3.6.
	StorageVersion string
	// Revision of the key space.
	Revision int64
	// Snapshots is how often the member has saved its state beside its log since
	// it started. It is asked at a stop with Flush only, and 0 when unknown.
	Snapshots int64
	// CommitIndex and Applied are raft indexes.
	CommitIndex  uint64
	AppliedIndex uint64
	// DBSize of the database's file, DBInUse of what it needs of that, and Quota
	// are in bytes; a Quota of 0 is unknown.
	DBSize  int64
	DBInUse int64
	Quota   int64
	// Errors that the member itself reports.
	Errors []MemberError
	// Hash of the key space at HashRevision since CompactRevision, in a deep round.
	Hash            uint32
	HashRevision    int64
	CompactRevision int64
	// Keys is how many keys there are at HashRevision; 0 also where they were not counted.
	Keys int64
}

// MemberError is an error that a member reports about itself.
type MemberError struct {
	Text string
	// Alarm is the kind of the alarm that it tells of; "" for any other error.
	Alarm string
}

// Round returns the newest round, or nil.
func (o *Observed) Round() *Round {
	if len(o.Rounds) == 0 {
		return nil
	}
	return &o.Rounds[len(o.Rounds)-1]
}

// Pod returns the pod of that name, or nil.
func (o *Observed) Pod(name string) *Pod {
	for i := range o.Pods {
		if o.Pods[i].Name == name {
			return &o.Pods[i]
		}
	}
	return nil
}

// Member returns the member of that name, or nil.
func (r *Round) Member(name string) *Member {
	if r == nil {
		return nil
	}
	for i := range r.Members {
		if r.Members[i].Name == name {
			return &r.Members[i]
		}
	}
	return nil
}

// ByID returns the member with the ID, or nil.
func (r *Round) ByID(id string) *Member {
	if r == nil || id == "" {
		return nil
	}
	for i := range r.Members {
		if r.Members[i].ID == id {
			return &r.Members[i]
		}
	}
	return nil
}

// Leader returns the member that leads, or nil.
func (r *Round) Leader() *Member {
	if r == nil {
		return nil
	}
	for i := range r.Members {
		if m := &r.Members[i]; m.Leader != "" && m.Leader == m.ID {
			return m
		}
	}
	return nil
}
