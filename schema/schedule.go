package schema

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindBackupSchedule is the kind of an EtcdBackupSchedule document.
const KindBackupSchedule = "EtcdBackupSchedule"

// EtcdBackupSchedule declares backups that are taken again and again, how long
// they are kept, and how it is known that they restore.
type EtcdBackupSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata names the schedule.
	Metadata Metadata `json:"metadata"`
	// Spec says when, what and for how long.
	Spec BackupScheduleSpec `json:"spec"`
}

// BackupScheduleSpec says when to back up what, and for how long to keep it.
type BackupScheduleSpec struct {
	// Schedule in crontab syntax with five fields, for example "0 */6 * * *", a
	// name such as @daily, or an interval such as "@every 1h". At most one backup
	// a minute. Missed times are made good by one backup; a time that comes while
	// a backup is still being taken is skipped.
	Schedule string `json:"schedule" jsonschema:"form=schedule"`
	// TimeZone of the schedule by its IANA name, for example "Europe/Berlin".
	// Default "UTC". Where clocks go forward over the time, the backup is taken
	// at the first moment after it; where they go back, a time may come twice.
	TimeZone string `json:"timeZone,omitempty" jsonschema:"form=timeZone"`
	// Suspend takes no further backups; retention continues. Default false.
	Suspend bool `json:"suspend,omitempty"`
	// StartingDeadline is how long after its time a backup may still be begun, at
	// least 1m. Default: until the next time.
	StartingDeadline *metav1.Duration `json:"startingDeadline,omitempty"`
	// Jitter delays each backup by a time between 0 and this, the same for every
	// time of one schedule, so that many clusters do not start at once, 0s to
	// 24h, and shorter than the time between any two backups. Default 0s.
	Jitter *metav1.Duration `json:"jitter,omitempty"`
	// Retention decides which backups of this schedule are kept. Default: all. Those of
	// a schedule of the same name in another Kubernetes cluster are left alone.
	Retention RetentionSpec `json:"retention,omitzero"`
	// Verify is how a backup is proved to restore.
	Verify VerifySpec `json:"verify,omitzero"`
	// BackupTemplate is the spec of the EtcdBackups that the schedule takes.
	BackupTemplate BackupRequest `json:"backupTemplate"`
}

// RetentionSpec decides which backups are kept: those that any of the keep rules
// names and that are not older than MaxAge. Without a keep rule all are named. The
// newest verified backup of each cluster ID is always kept, the newest that a drill has
// restored, and the last one that was taken. A cluster that is made again has another ID: no rule removes the backups
// of the old one before it has as many good ones of its own. One that a restore drill
// has found bad takes no other's place, and is kept for as long as if it were good.
// One that is dated ahead of the clock is neither counted nor removed.
//
// Rules that would remove more than half of the backups at once, and more than 3,
// remove none, unless a commit has changed them: any change is the word that they are
// meant.
type RetentionSpec struct {
	// KeepLast keeps the newest backups, by number. 0 keeps all of them;
	// negative numbers are refused.
	KeepLast *int32 `json:"keepLast,omitempty" jsonschema:"minimum=0,maximum=10000"`
	// KeepHourly keeps the newest backup of each of the last hours that have
	// one, by number of hours.
	KeepHourly int32 `json:"keepHourly,omitempty" jsonschema:"minimum=0,maximum=10000"`
	// KeepDaily is KeepHourly for days, in the time zone of the schedule.
	KeepDaily int32 `json:"keepDaily,omitempty" jsonschema:"minimum=0,maximum=10000"`
	// KeepWeekly is KeepHourly for weeks, which begin on Monday.
	KeepWeekly int32 `json:"keepWeekly,omitempty" jsonschema:"minimum=0,maximum=10000"`
	// KeepMonthly is KeepHourly for months.
	KeepMonthly int32 `json:"keepMonthly,omitempty" jsonschema:"minimum=0,maximum=10000"`
	// KeepYearly is KeepHourly for years.
	KeepYearly int32 `json:"keepYearly,omitempty" jsonschema:"minimum=0,maximum=10000"`
	// MaxAge removes backups that are older, for example 720h, at least 1h.
	// Default: no age is too old.
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

// RestoreDrill is how often a backup is restored on trial.
type RestoreDrill string

// The restore drills.
const (
	// DrillNever restores no backup on trial.
	DrillNever RestoreDrill = "Never"
	// DrillAlways restores every backup on trial.
	DrillAlways RestoreDrill = "Always"
	// DrillDaily restores the first backup of each day on trial.
	DrillDaily RestoreDrill = "Daily"
	// DrillWeekly restores the first backup of each week on trial.
	DrillWeekly RestoreDrill = "Weekly"
)

// VerifySpec is how a backup is proved to restore. Its size and checksum
// are always read back from the store; that is not for choice.
type VerifySpec struct {
	// Restore is Never (default), Always, Daily or Weekly: how often a backup is
	// restored into an ephemeral etcd of the same minor, and its keys compared.
	Restore RestoreDrill `json:"restore,omitempty"`
	// Again restores one more time on trial the backup of this object URL, which is
	// one of this schedule: the one that the status names, for example, once what
	// kept its drill from passing is out of the way. The result takes the place of
	// the earlier one. It is done once for each URL that stands here; to repeat it,
	// leave the field out for one commit. Default: none.
	Again string `json:"again,omitempty" jsonschema:"form=objectURL"`
	// Decryption of backups that are encrypted, for restoring them on trial.
	Decryption DecryptionSpec `json:"decryption,omitzero"`
}
