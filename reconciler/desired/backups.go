package desired

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/schema"
)

// Backups returns the backups and schedules that a commit declares. One whose
// document has errors stays as the last good commit declared it, so that a typo
// stops no backups. before is what the last accepted commit declared.
func Backups(set schema.Set, commit string, before []Backup) []Backup {
	var list []Backup
	named := map[string]bool{}
	add := func(q Backup) {
		named[q.Key()] = true
		list = append(list, q)
	}
	for _, b := range set.Backups {
		q := BackupOf(b.EtcdBackup, commit)
		q.File = b.Origin.File
		add(q)
	}
	for _, s := range set.Schedules {
		q := ScheduleOf(s.EtcdBackupSchedule, commit)
		q.File = s.Origin.File
		add(q)
	}
	for _, q := range before {
		if !named[q.Key()] && isHeld(set, q) {
			q.Held = true
			add(q)
		}
	}
	return list
}

// isHeld reports whether the newest commit has errors where q was declared.
func isHeld(set schema.Set, q Backup) bool {
	return slices.ContainsFunc(set.Held, func(h schema.Held) bool { return h.Means(q.Kind(), q.Metadata.Namespace, q.Metadata.Name, q.File) }) ||
		slices.ContainsFunc(set.Unreadable, func(p schema.Problem) bool { return p.File == q.File })
}

// Needed returns the backups that restores name by URL, each with the restore. doubt
// names a document with errors that is or may be a restore; "" without one.
func Needed(set schema.Set) (needed map[string]string, doubt string) {
	needed = map[string]string{}
	for _, r := range set.Restores {
		if r.Spec.Source.ObjectURL != "" {
			needed[r.Spec.Source.ObjectURL] = schema.KindRestore + " " + r.Metadata.Namespace + "/" + r.Metadata.Name
		}
	}
	for _, h := range set.Held {
		if h.Kind == schema.KindRestore || h.Kind == "" {
			return needed, fmt.Sprintf("the document at %s has errors", h.Origin)
		}
	}
	return needed, ""
}
