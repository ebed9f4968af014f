package main

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// asked is a backup or schedule and the file that says so. It is kept as JSON.
type asked struct {
	desired.Backup
	File string
}

// requests turns what the files say of backups and schedules into what the
// reconciler is to do. One whose document has errors goes on as an earlier commit
// said it: nobody should be without backups because of a slip of the pen. before
// is what the earlier commit asked for.
func requests(set schema.Set, commit string, before []asked) []asked {
	var list []asked
	named := map[string]bool{}
	add := func(a asked) {
		named[a.Key()] = true
		list = append(list, a)
	}
	for _, b := range set.Backups {
		add(asked{desired.BackupOf(b.EtcdBackup, commit), b.Origin.File})
	}
	for _, s := range set.Schedules {
		add(asked{desired.ScheduleOf(s.EtcdBackupSchedule, commit), s.Origin.File})
	}
	for _, a := range before {
		if !named[a.Key()] && isHeld(set, a) {
			a.Held = true
			add(a)
		}
	}
	return list
}

// isHeld says whether the newest commit has errors where the request stood.
func isHeld(set schema.Set, a asked) bool {
	return slices.ContainsFunc(set.Held, func(h schema.Held) bool { return h.Means(a.Kind(), a.Metadata.Namespace, a.Metadata.Name, a.File) }) ||
		slices.ContainsFunc(set.Unreadable, func(p schema.Problem) bool { return p.File == a.File })
}

// requestsOf are the requests without their files.
func requestsOf(list []asked) []desired.Backup {
	plain := make([]desired.Backup, len(list))
	for i, a := range list {
		plain[i] = a.Backup
	}
	return plain
}

// neededBy are the backups that restores name, by URL. Where a document that is or may
// be a restore has errors, the doubt says so.
func neededBy(set schema.Set) (needed map[string]string, doubt string) {
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
