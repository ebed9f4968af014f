package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/markdown"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// statusFiles returns the content of the status branch: one file for each object, and an
// overview page. The same statuses give the same bytes.
func statusFiles(git follow.State, list []schema.Status) ([]sources.File, error) {
	files := []sources.File{{Path: "README.md", Data: []byte(statusPage(git, list))}}
	for _, s := range list {
		data, err := yaml.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("write the status of %s: %w", branches.Path(s), err)
		}
		files = append(files, sources.File{Path: branches.Path(s), Data: data})
	}
	return files, nil
}

// statusPage returns the page that a code host shows: what needs attention comes first.
func statusPage(git follow.State, list []schema.Status) string {
	var b strings.Builder
	b.WriteString("# etcd\n\n" + summarize(list) + "\n")
	if git.Held != "" || len(git.Problems) > 0 {
		b.WriteString("\n## The repository\n\n")
		if git.Held != "" {
			fmt.Fprintf(&b, "- 🔴 **not applied**: %s\n", markdown.Prose(git.Held))
		}
		for i, problem := range git.Problems {
			if i == maxListed {
				fmt.Fprintf(&b, "- and %d more\n", len(git.Problems)-maxListed)
				break
			}
			fmt.Fprintf(&b, "- 🟠 %s\n", markdown.Code(problem))
		}
	}
	for _, table := range statusTables() {
		rows := rowsOf(list, table)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| | %s | why |\n|---|%s---|\n", table.title, strings.Join(table.columns, " | "), strings.Repeat("---|", len(table.columns)))
		for _, row := range rows {
			b.WriteString(row)
		}
	}
	b.WriteString("\n_quorate writes this branch, and overwrites whatever else is put on it. Desired state is on the branch that quorate follows._\n")
	return b.String()
}

// maxListed keeps the page readable.
const maxListed = 100

// summarize returns one line about all clusters.
func summarize(list []schema.Status) string {
	count := map[schema.Phase]int{}
	total := 0
	for _, s := range list {
		if s.Kind == schema.KindCluster {
			phase, _ := s.Phase()
			count[phase]++
			total++
		}
	}
	if total == 0 {
		return "No cluster is known."
	}
	if count[schema.PhaseReady] == total {
		return fmt.Sprintf("🟢 **%s in sync with Git.**", state.Plural(total, "cluster"))
	}
	var parts []string
	for _, phase := range schema.Phases() {
		if n := count[phase]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d %s", icon(phase), n, strings.ToLower(string(phase))))
		}
	}
	return fmt.Sprintf("**%s**: %s", state.Plural(total, "cluster"), strings.Join(parts, " · "))
}

// icon returns the symbol of a phase, which is always shown with its name.
func icon(phase schema.Phase) string {
	return map[schema.Phase]string{
		schema.PhaseStalled: "🔴", schema.PhaseUnknown: "⚪", schema.PhaseReconciling: "🟡", schema.PhaseReady: "🟢",
	}[phase]
}

// statusTable is one table of the page.
type statusTable struct {
	kind, title string
	columns     []string
	cells       func(s schema.ObjectStatus) []string
}

func statusTables() []statusTable {
	return []statusTable{
		{schema.KindCluster, "Clusters", []string{"cluster", "version", "members", "last backup"}, clusterCells},
		{schema.KindBackupSchedule, "Schedules", []string{"schedule", "cluster", "last backup", "next"}, scheduleCells},
		{schema.KindBackup, "Backups", []string{"backup", "cluster", "taken"}, backupCells},
		{schema.KindRestore, "Restores", []string{"restore", "cluster", "done"}, restoreCells},
	}
}

// rowsOf returns the rows of a table, those that need attention first.
func rowsOf(list []schema.Status, table statusTable) []string {
	var of []schema.Status
	for _, s := range list {
		if s.Kind == table.kind {
			of = append(of, s)
		}
	}
	urgency := func(s schema.Status) int {
		phase, _ := s.Phase()
		return slices.Index(schema.Phases(), phase)
	}
	slices.SortStableFunc(of, func(a, b schema.Status) int { return cmp.Compare(urgency(a), urgency(b)) })
	rows := make([]string, len(of))
	for i, s := range of {
		phase, why := s.Phase()
		name := fmt.Sprintf("[%s](%s)", markdown.Cell(s.Metadata.Namespace+"/"+s.Metadata.Name), branches.Path(s))
		cells := append([]string{icon(phase) + " " + string(phase), name}, table.cells(s.Status)...)
		rows[i] = "| " + strings.Join(append(cells, markdown.Prose(why.Message)), " | ") + " |\n"
	}
	return rows
}

func clusterCells(s schema.ObjectStatus) []string {
	c := s.Cluster
	if c == nil {
		return []string{"", "", ""}
	}
	newest := ""
	for _, b := range c.Backups {
		newest = max(newest, b.Time)
	}
	return []string{versionCell(c.Version), fmt.Sprintf("%d/%d", c.Replicas.Healthy, c.Replicas.Wanted), timeCell(newest)}
}

// versionCell shows the version of the members, and the wanted one if it differs.
func versionCell(v schema.VersionStatus) string {
	reported := v.Lowest
	if v.Highest != v.Lowest {
		reported += "–" + v.Highest
	}
	switch reported {
	case "":
		return markdown.Cell(v.Wanted)
	case v.Wanted:
		return markdown.Cell(reported)
	}
	return markdown.Cell(reported + " → " + v.Wanted)
}

func scheduleCells(s schema.ObjectStatus) []string {
	if s.Schedule == nil {
		return []string{"", "", ""}
	}
	last := ""
	if s.Schedule.Last != nil {
		last = s.Schedule.Last.Time
	}
	return []string{markdown.Cell(s.Schedule.Cluster), timeCell(last), timeCell(s.Schedule.Next)}
}

func backupCells(s schema.ObjectStatus) []string {
	if s.Backup == nil {
		return []string{"", ""}
	}
	taken := ""
	if s.Backup.Taken != nil {
		taken = s.Backup.Taken.Time
	}
	return []string{markdown.Cell(s.Backup.Cluster), timeCell(taken)}
}

func restoreCells(s schema.ObjectStatus) []string {
	if s.Restore == nil {
		return []string{"", ""}
	}
	return []string{markdown.Cell(s.Restore.Cluster), timeCell(s.Restore.Time)}
}

// timeCell formats a time of RFC 3339; any other text is shown unchanged.
func timeCell(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return markdown.Prose(cmp.Or(text, "–"))
	}
	return at.UTC().Format("2006-01-02 15:04 UTC")
}
