package preview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/schema"
)

// document is a backup, a schedule or a restore.
type document struct {
	report ObjectReport
	file   string
	// spec is what it says, to be compared.
	spec any
}

// Documents lists the backups, schedules and restores of the files.
func Documents(set schema.Set) []ObjectReport {
	reports := []ObjectReport{}
	for _, o := range documents(set) {
		reports = append(reports, o.report)
	}
	return reports
}

// CompareDocuments lists the backups, schedules and restores that two commits declare
// differently. One whose document is bad now is neither removed nor changed: the
// problems of the files tell of it.
func CompareDocuments(before, after schema.Set) ([]ObjectReport, error) {
	was, is := byKey(documents(before)), byKey(documents(after))
	reports := []ObjectReport{}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, still := is[key]; !still && !isHeld(after, was[key]) {
			reports = append(reports, was[key].as(Removed))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		old, known := was[key]
		if !known {
			reports = append(reports, is[key].as(Added))
			continue
		}
		changes, err := fieldChanges(old.spec, is[key].spec)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", key, err)
		}
		if len(changes) > 0 {
			reports = append(reports, is[key].as(Changed))
		}
	}
	return reports, nil
}

// as returns the report with a change.
func (o document) as(change Change) ObjectReport {
	o.report.Change = change
	return o.report
}

func byKey(list []document) map[string]document {
	found := map[string]document{}
	for _, o := range list {
		found[o.report.Key()] = o
	}
	return found
}

// isHeld reports whether a bad document may be the object's.
func isHeld(set schema.Set, o document) bool {
	return slices.ContainsFunc(set.Held, func(h schema.Held) bool {
		return h.Means(o.report.Kind, o.report.Namespace, o.report.Name, o.file)
	})
}

// documents returns the backups, schedules and restores of a set.
func documents(set schema.Set) []document {
	var list []document
	add := func(kind string, m schema.Metadata, origin schema.Origin, spec any, description string) {
		report := ObjectReport{Kind: kind, Namespace: m.Namespace, Name: m.Name, Description: description}
		list = append(list, document{report, origin.File, spec})
	}
	for _, b := range set.Backups {
		add(schema.KindBackup, b.Metadata, b.Origin, b.Spec, describeBackup(b.Spec))
	}
	for _, s := range set.Schedules {
		add(schema.KindBackupSchedule, s.Metadata, s.Origin, s.Spec, describeSchedule(s.Spec))
	}
	for _, r := range set.Restores {
		add(schema.KindRestore, r.Metadata, r.Origin, r.Spec, describeRestore(r.EtcdRestore))
	}
	return list
}

// describeBackup is "of orders to s3://backups/orders".
func describeBackup(b schema.BackupRequest) string {
	text := "of " + cmp.Or(b.Source.ClusterName, b.Source.ClusterURL)
	if store, _, _ := strings.Cut(b.Destination.ObjectURLTemplate, "?"); store != "" {
		text += " to " + store
	}
	return text
}

// describeSchedule is "0 2 * * * Europe/Berlin, of orders, keeps 7 daily".
func describeSchedule(s schema.BackupScheduleSpec) string {
	parts := []string{strings.TrimSpace(s.Schedule + " " + s.TimeZone), describeBackup(s.BackupTemplate), describeRetention(s.Retention)}
	if s.Suspend {
		parts = append(parts, "suspended")
	}
	return strings.Join(parts, ", ")
}

// describeRetention is "keeps 3 last and 7 daily, none older than 720h".
func describeRetention(r schema.RetentionSpec) string {
	var rules []string
	keep := func(n int32, what string) {
		if n > 0 {
			rules = append(rules, fmt.Sprintf("%d %s", n, what))
		}
	}
	if r.KeepLast != nil {
		keep(*r.KeepLast, "last")
	}
	keep(r.KeepHourly, "hourly")
	keep(r.KeepDaily, "daily")
	keep(r.KeepWeekly, "weekly")
	keep(r.KeepMonthly, "monthly")
	keep(r.KeepYearly, "yearly")
	text := "keeps " + cmp.Or(strings.Join(rules, " and "), "all")
	if r.MaxAge != nil {
		text += ", none older than " + r.MaxAge.Duration.String()
	}
	return text
}

// describeRestore is "the newest backup of schedule nightly into orders, etcd
// 3.6.16".
func describeRestore(r schema.EtcdRestore) string {
	source := r.Spec.Source
	from, _, _ := strings.Cut(source.ObjectURL, "?")
	switch {
	case source.Schedule != "":
		from = "the newest backup of schedule " + source.Schedule
	case source.ClusterName != "":
		from = "the newest backup of cluster " + source.ClusterName
	}
	if source.Before != nil {
		from += " before " + source.Before.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s into %s, etcd %s", from, cmp.Or(r.Spec.ClusterName, r.Metadata.Name), r.Spec.ClusterTemplate.Version)
}
