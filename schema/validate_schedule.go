package schema

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of schedules and windows, as the messages name them.
const (
	maxWindows       = 16
	minWindow        = 15 * time.Minute
	maxWindow        = 168 * time.Hour
	maxJitter        = 24 * time.Hour
	minDeadline      = time.Minute
	minAge           = time.Hour
	maxKeep          = 10000
	minInterval      = time.Minute
	frequentInterval = 5 * time.Minute
	// minDefragmentation is the least time between two defragmentations that is
	// not warned of.
	minDefragmentation = 12 * time.Hour
)

// maintenance checks the windows in which members may be restarted.
func (v *validator) maintenance(windows []MaintenanceWindow) {
	if n := len(windows); n > maxWindows {
		v.fail("maintenance", "has %d windows and at most %d are allowed", n, maxWindows)
		windows = windows[:maxWindows]
	}
	for i, w := range windows {
		field := fmt.Sprintf("maintenance[%d]", i)
		if strings.HasPrefix(strings.TrimSpace(w.Schedule), "@every") {
			v.fail(field+".schedule", "@every is an interval, not a time: write the time at which the window opens, such as \"0 2 * * 6\"")
			continue
		}
		interval := v.cron(field, w.Schedule, w.TimeZone)
		switch d := w.Duration.Duration; {
		case d < minWindow || d > maxWindow:
			v.fail(field+".duration", "is %s and must be 15m to 168h", d)
		case interval > 0 && d >= interval:
			v.warn(IDWindow, field+".duration", "is %s and the window opens again after %s, so it never closes: shorten it, or leave the window out", d, interval)
		}
	}
}

// defragmentation checks when members are defragmented.
func (v *validator) defragmentation(d DefragmentationSpec) {
	const field = "defragmentation"
	if d.Mode != "" {
		oneOf(v, field+".mode", d.Mode, DefragmentationAuto, DefragmentationNever)
	}
	switch {
	case d.Schedule == "" && d.TimeZone != "":
		v.fail(field+".timeZone", "has no effect without a schedule: write one, or leave the field out")
	case d.Schedule == "":
	case d.Mode == DefragmentationNever:
		v.fail(field+".schedule", "has no effect with mode Never: leave one of the two out")
	case strings.HasPrefix(strings.TrimSpace(d.Schedule), "@every"):
		v.fail(field+".schedule", "@every is an interval, not a time: write the time at which members are defragmented, such as \"0 3 * * 0\"")
	default:
		if interval := v.cron(field, d.Schedule, d.TimeZone); interval > 0 && interval < minDefragmentation {
			v.warn(IDDefragmentationOften, field+".schedule", "runs every %s: a member answers no requests while it is defragmented, so once a day or less often is advised", interval)
		}
	}
}

// cron checks a schedule and its time zone, and returns how often it runs at
// most; 0 when it is no good.
func (v *validator) cron(field, schedule, timeZone string) time.Duration {
	if schedule == "" {
		v.fail(field+".schedule", "is missing: write a crontab line such as \"0 2 * * 6\"")
		return 0
	}
	zone, err := loadZone(timeZone)
	if err != nil {
		v.fail(field+".timeZone", "%v", err)
		return 0
	}
	parsed, err := parseSchedule(schedule, zone)
	if err != nil {
		v.fail(field+".schedule", "%v", err)
		return 0
	}
	return shortestInterval(parsed)
}

// validateSchedule says everything that is wrong with a defaulted schedule.
func validateSchedule(s *EtcdBackupSchedule) []Problem {
	v := &validator{}
	v.metadata(s.Metadata, validation.DNS1123LabelMaxLength)
	interval := v.cron("spec", s.Spec.Schedule, s.Spec.TimeZone)
	switch {
	case interval == 0:
	case interval < minInterval:
		v.fail("spec.schedule", "runs every %s: at most one backup a minute is possible", interval)
	case interval < frequentInterval:
		v.warn(IDBackupOften, "spec.schedule", "runs every %s: each backup reads the whole database, so every five minutes or less often is advised", interval)
	}
	v.pace(s.Spec)
	v.retention(s.Spec.Retention)
	oneOf(v, "spec.verify.restore", s.Spec.Verify.Restore, DrillNever, DrillAlways, DrillDaily, DrillWeekly)
	v.secret("spec.verify.decryption.secretName", s.Spec.Verify.Decryption.SecretName)
	switch again := s.Spec.Verify.Again; {
	case again == "":
	case s.Spec.Verify.Restore == DrillNever:
		v.fail("spec.verify.again", "has no effect with restore Never: leave one of the two out")
	default:
		// Where the template names no place, the cluster's file may name the Secret.
		to := s.Spec.BackupTemplate.Destination
		v.objectURL("spec.verify.again", again, to.Credentials.SecretName != "" || to.ObjectURLTemplate == "")
	}
	if e := s.Spec.BackupTemplate.Destination.Encryption; s.Spec.Verify.Restore != DrillNever && len(e.Recipients) > 0 && s.Spec.Verify.Decryption.SecretName == "" {
		v.fail("spec.verify.decryption.secretName", "is missing: the backups are encrypted, and a restore drill needs a private key; name the Secret that has one, or set verify.restore to Never")
	}
	v.backup("spec.backupTemplate", s.Spec.BackupTemplate)
	return v.problems
}

// pace checks how late a backup may be.
func (v *validator) pace(s BackupScheduleSpec) {
	if d := s.StartingDeadline; d != nil && d.Duration < minDeadline {
		v.fail("spec.startingDeadline", "is %s and must be 1m or more", d.Duration)
	}
	d := s.Jitter
	if d == nil {
		return
	}
	if d.Duration < 0 || d.Duration > maxJitter {
		v.fail("spec.jitter", "is %s and must be 0s to 24h", d.Duration)
		return
	}
	line, err := ParseSchedule(s.Schedule, s.TimeZone)
	if err != nil || d.Duration == 0 {
		return // The schedule's own problem is reported already.
	}
	if between := closestRuns(line); between > 0 && d.Duration >= between {
		v.fail("spec.jitter", "is %s and must be shorter than the time between two backups, at the least %s", d.Duration, between)
	}
}

// retention checks how many backups are kept.
func (v *validator) retention(r RetentionSpec) {
	const field = "spec.retention"
	last := int32(0)
	if r.KeepLast != nil {
		last = *r.KeepLast
	}
	for _, rule := range []struct {
		name  string
		value int32
	}{
		{"keepLast", last},
		{"keepHourly", r.KeepHourly},
		{"keepDaily", r.KeepDaily},
		{"keepWeekly", r.KeepWeekly},
		{"keepMonthly", r.KeepMonthly},
		{"keepYearly", r.KeepYearly},
	} {
		at := field + "." + rule.name
		switch {
		case rule.value < 0 && rule.name == "keepLast":
			v.fail(at, "is %d and must not be negative: write 0 to keep all", rule.value)
		case rule.value < 0:
			v.fail(at, "is %d and must not be negative: leave it out for no such rule", rule.value)
		case rule.value > maxKeep:
			v.fail(at, "is %d and must be at most %d", rule.value, maxKeep)
		}
	}
	if counted := r.KeepHourly | r.KeepDaily | r.KeepWeekly | r.KeepMonthly | r.KeepYearly; r.KeepLast != nil && last == 0 && counted != 0 {
		v.warn(IDKeepLast, field+".keepLast", "is 0, which keeps all, so that the other rules remove nothing: leave it out, or write how many to keep")
	}
	if r.MaxAge != nil && r.MaxAge.Duration < minAge {
		v.fail(field+".maxAge", "is %s and must be 1h or more", r.MaxAge.Duration)
	}
}
