package desired

import (
	"cmp"
	"reflect"

	"github.com/quorate/quorate/schema"
)

// Backup is an EtcdBackup or an EtcdBackupSchedule as Git has it.
type Backup struct {
	// Metadata names it.
	Metadata schema.Metadata
	// Spec is what to back up, and where to.
	Spec schema.BackupRequest
	// Schedule is nil for a backup that is taken once.
	Schedule *schema.BackupScheduleSpec
	// Commit is the Git commit that declares it.
	Commit string
	// Accepted is why that commit was let in, for people.
	Accepted schema.Acceptance `json:",omitzero"`
	// Held says that the newest commit has errors about it, and that this is what
	// was last valid: backups continue, and nothing is removed.
	Held bool
	// File is the one that declares it.
	File string
}

// BackupOf is the request of an EtcdBackup.
func BackupOf(b schema.EtcdBackup, commit string) Backup {
	return Backup{Metadata: b.Metadata, Spec: b.Spec, Commit: commit}
}

// ScheduleOf is the request of an EtcdBackupSchedule.
func ScheduleOf(s schema.EtcdBackupSchedule, commit string) Backup {
	return Backup{Metadata: s.Metadata, Spec: s.Spec.BackupTemplate, Schedule: &s.Spec, Commit: commit}
}

// Kind is the kind of the document.
func (q Backup) Kind() string {
	if q.Schedule != nil {
		return schema.KindBackupSchedule
	}
	return schema.KindBackup
}

// Name is namespace/name.
func (q Backup) Name() string { return q.Metadata.Namespace + "/" + q.Metadata.Name }

// Key is kind namespace/name.
func (q Backup) Key() string { return q.Kind() + " " + q.Name() }

// Hash identifies the backup or schedule, with the name.
func (q Backup) Hash() string {
	if q.Schedule != nil {
		return schema.ScheduleHash(*q.Schedule)
	}
	return schema.BackupHash(q.Spec)
}

// SameBackup reports whether two commits want the same of a backup or schedule.
func SameBackup(a, b Backup) bool {
	if a.Held != b.Held {
		return false
	}
	// Almost all are what they were, and to hash them costs much more.
	return reflect.DeepEqual(a.Spec, b.Spec) && reflect.DeepEqual(a.Schedule, b.Schedule) || a.Hash() == b.Hash()
}

// Times is the part of a schedule with its times; ""  for a single backup.
func (q Backup) Times() string {
	if q.Schedule == nil {
		return ""
	}
	return q.Schedule.Schedule + " " + q.Schedule.TimeZone
}

// ClusterName is the cluster for people.
func (q Backup) ClusterName() string {
	if q.Spec.Source.ClusterName != "" {
		return q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName
	}
	return cmp.Or(q.Spec.Source.ClusterURL, q.Name())
}
