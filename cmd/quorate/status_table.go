package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/quorate/quorate/schema"
)

// showTable is the table of one kind.
type showTable struct {
	kind, columns, wide string
	cells, more         func(s schema.Status) []string
}

func showTables() []showTable {
	return []showTable{
		{schema.KindCluster, "VERSION\tMEMBERS\tDRIFT\tBACKUP", "COMMIT\tREASON", clusterRow, commitAndReason},
		{schema.KindBackup, "CLUSTER\tTAKEN", "URL\tCOMMIT\tREASON", backupRow, withURL(func(s schema.ObjectStatus) *schema.BackupStatus { return s.Backup.Taken })},
		{schema.KindBackupSchedule, "CLUSTER\tLAST\tNEXT\tDRILL", "URL\tCOMMIT\tREASON", scheduleRow, withURL(func(s schema.ObjectStatus) *schema.BackupStatus { return s.Schedule.Last })},
		{schema.KindRestore, "CLUSTER\tDONE", "COMMIT\tREASON", restoreRow, commitAndReason},
	}
}

// printTables prints one table for each kind that there is, as kubectl get does.
func printTables(out io.Writer, items []schema.Status, wide bool) {
	first := true
	for _, table := range showTables() {
		of := slices.DeleteFunc(slices.Clone(items), func(s schema.Status) bool { return s.Kind != table.kind })
		if len(of) == 0 {
			continue
		}
		if !first {
			fmt.Fprintln(out)
		}
		first = false
		table.print(out, of, wide)
	}
}

func (t showTable) print(out io.Writer, items []schema.Status, wide bool) {
	// No line ends with spaces, and the last column, which is a sentence, widens nothing.
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	columns := "NAMESPACE\tNAME\tPHASE\t" + t.columns
	if wide {
		columns += "\t" + t.wide
	}
	fmt.Fprintln(w, columns+"\tWHY")
	for _, s := range items {
		phase, why := s.Phase()
		row := append([]string{s.Metadata.Namespace, s.Metadata.Name, string(phase)}, t.cells(s)...)
		if wide {
			row = append(row, t.more(s)...)
		}
		for i, cell := range row {
			row[i] = cmp.Or(shown(cell), "-")
		}
		sentence := shown(why.Message)
		if !wide {
			sentence = briefly(sentence)
		}
		fmt.Fprintln(w, strings.Join(append(row, sentence), "\t"))
	}
	_ = w.Flush() // a text for a person
}

// briefRunes is how much of a sentence a table has room for; -o wide shows all of it.
const briefRunes = 80

func briefly(text string) string {
	if runes := []rune(text); len(runes) > briefRunes {
		return string(runes[:briefRunes]) + "…"
	}
	return text
}

func clusterRow(s schema.Status) []string {
	c := s.Status.Cluster
	if c == nil {
		return []string{"", "", "", ""}
	}
	newest := ""
	for _, b := range c.Backups {
		newest = max(newest, b.Time)
	}
	drift := ""
	if n := len(c.Drift); n > 0 {
		drift = fmt.Sprint(n)
	}
	return []string{versionText(c.Version), fmt.Sprintf("%d/%d", c.Replicas.Healthy, c.Replicas.Wanted), drift, newest}
}

// versionText is what the members report, and what is wanted where that is another one.
func versionText(v schema.VersionStatus) string {
	reported := v.Lowest
	if v.Highest != v.Lowest {
		reported += "–" + v.Highest
	}
	if reported == "" || reported == v.Wanted {
		return v.Wanted
	}
	return reported + " → " + v.Wanted
}

func backupRow(s schema.Status) []string {
	b := s.Status.Backup
	if b == nil {
		return []string{"", ""}
	}
	return []string{b.Cluster, timeOf(b.Taken)}
}

func scheduleRow(s schema.Status) []string {
	b := s.Status.Schedule
	if b == nil {
		return []string{"", "", "", ""}
	}
	drill := ""
	if b.Drill != nil {
		drill = b.Drill.Result
	}
	return []string{b.Cluster, timeOf(b.Last), b.Next, drill}
}

func restoreRow(s schema.Status) []string {
	r := s.Status.Restore
	if r == nil {
		return []string{"", ""}
	}
	return []string{r.Cluster, r.Time}
}

func timeOf(b *schema.BackupStatus) string {
	if b == nil {
		return ""
	}
	return b.Time
}

func commitAndReason(s schema.Status) []string {
	_, why := s.Phase()
	return []string{short(s.Status.Commit), why.Reason}
}

// withURL are the columns of what has a backup, which of may find only where there is one.
func withURL(of func(schema.ObjectStatus) *schema.BackupStatus) func(schema.Status) []string {
	return func(s schema.Status) []string {
		at := ""
		if s.Status.Backup != nil || s.Status.Schedule != nil {
			if b := of(s.Status); b != nil {
				at = b.URL
			}
		}
		return append([]string{at}, commitAndReason(s)...)
	}
}

// short is a commit as Git prints it briefly.
func short(commit string) string { return commit[:min(len(commit), 12)] }
