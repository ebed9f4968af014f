package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/schema"
)

// showTable is the table of one kind.
type showTable struct {
	kind, columns, wide string
	cells, more         func(s schema.Status) []string
}

func showTables() []showTable {
	return []showTable{
		{schema.KindCluster, "VERSION\tMEMBERS\tROLLOUT\tDRIFT\tBACKUP", "COMMIT\tREASON", clusterRow, commitAndReason},
		{schema.KindBackup, "CLUSTER\tTAKEN", "URL\tCOMMIT\tREASON", backupRow, urlAndCommit},
		{schema.KindBackupSchedule, "CLUSTER\tLAST\tNEXT\tDRILL", "URL\tCOMMIT\tREASON", scheduleRow, urlAndCommit},
		{schema.KindRestore, "CLUSTER\tDONE", "COMMIT\tREASON", restoreRow, commitAndReason},
	}
}

// printTables prints one table for each kind that there is, as kubectl get does, with the
// branches where there are several.
func printTables(out io.Writer, items []item, wide, branches bool) {
	first := true
	for _, table := range showTables() {
		of := slices.DeleteFunc(slices.Clone(items), func(s item) bool { return s.Kind != table.kind })
		if len(of) == 0 {
			continue
		}
		if !first {
			fmt.Fprintln(out)
		}
		first = false
		table.print(out, of, wide, branches)
	}
}

func (t showTable) print(out io.Writer, items []item, wide, branches bool) {
	// No line ends with spaces, and the last column, which is a sentence, widens nothing.
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	columns := "NAMESPACE\tNAME\tPHASE\t" + t.columns
	if wide {
		columns += "\t" + t.wide
	}
	if branches {
		columns = "BRANCH\t" + columns
	}
	fmt.Fprintln(w, columns+"\tWHY")
	for _, s := range items {
		phase, why := s.Phase()
		row := append([]string{s.Metadata.Namespace, s.Metadata.Name, string(phase)}, t.cells(s.Status)...)
		if wide {
			row = append(row, t.more(s.Status)...)
		}
		if branches {
			row = append([]string{s.Branch}, row...)
		}
		for i, cell := range row {
			row[i] = cmp.Or(cli.Shown(cell), "-")
		}
		sentence := cli.Shown(why.Message)
		if !wide {
			sentence = cli.Brief(sentence)
		}
		fmt.Fprintln(w, strings.Join(append(row, sentence), "\t"))
	}
	_ = w.Flush() // a text for a person
}

func clusterRow(s schema.Status) []string {
	c := s.Status.Cluster
	if c == nil {
		return []string{"", "", "", "", ""}
	}
	rollout, drift := "", ""
	if r := c.Rollout; r != nil {
		rollout = fmt.Sprintf("%d/%d", r.Done, r.Members)
	}
	if n := len(c.Drift); n > 0 {
		drift = fmt.Sprint(n)
	}
	return []string{versionText(c.Version), fmt.Sprintf("%d/%d", c.Replicas.Healthy, c.Replicas.Wanted), rollout, drift, s.LastBackup().Time}
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
	return []string{b.Cluster, s.LastBackup().Time}
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
	return []string{b.Cluster, s.LastBackup().Time, b.Next, drill}
}

func restoreRow(s schema.Status) []string {
	r := s.Status.Restore
	if r == nil {
		return []string{"", ""}
	}
	return []string{r.Cluster, r.Time}
}

func commitAndReason(s schema.Status) []string {
	_, why := s.Phase()
	return []string{short(s.Status.Commit), why.Reason}
}

func urlAndCommit(s schema.Status) []string {
	return append([]string{s.LastBackup().URL}, commitAndReason(s)...)
}

// short is a commit as Git prints it briefly.
func short(commit string) string { return commit[:min(len(commit), 12)] }
