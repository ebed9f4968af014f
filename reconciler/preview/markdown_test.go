package preview

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// The versions that the reports speak of: what runs, and what an upgrade goes to.
const (
	oldVersion = "3.5.35"
	newVersion = "3.6.16"
)

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	update = flag.Bool("update", false, "rewrite the reports of testdata/markdown")
)

// orders is what Git says of db/orders.
func orders(version, template string) state.Desired {
	d := state.Desired{
		Namespace: "db", Name: "orders", Commit: "c0ffee", SpecHash: template, Template: template,
		BackupURL: "s3://backups/{{ .UID }}.db", Spec: schema.ClusterSpec{Version: version, Replicas: 3},
	}
	d.Spec.Upgrade.Backup = schema.BackupRequired
	return d
}

// comment are the options of a comment that is cut at limit.
func comment(limit int) MarkdownOptions {
	return MarkdownOptions{Marker: "quorate-plan", Limit: limit}
}

// sampleReport is a report with a bit of everything.
func sampleReport() *Report {
	was, to := orders(oldVersion, "a"), orders(newVersion, "b")
	upgrade := plan.Make(to, outlook.Assume(was, noon, 0), noon)
	changing := newClusterReport(to, upgrade, 1, 2)
	changing.Changes = []FieldChange{{Field: "metadata.labels.team", From: "", To: "checkout"}, {Field: "spec.version", From: oldVersion, To: newVersion}}
	changing.Unknown = []string{"the members' health"}

	refused := to
	refused.Name, refused.BackupURL = "ledger", ""
	held := newClusterReport(refused, plan.Make(refused, outlook.Assume(was, noon, 0), noon), 0, 0)
	held.Changes = []FieldChange{{Field: "spec.version", From: oldVersion, To: newVersion}}
	held.Unknown = []string{"the members' health"}

	gone := newClusterReport(state.Desired{Namespace: "db", Name: "search"}, decision.Plan{Warnings: []situation.Remark{{Text: "no file names this cluster any more"}}}, 0, 0)
	gone.Change = Removed
	quiet := newClusterReport(state.Desired{Namespace: "db", Name: "quiet", Spec: was.Spec}, decision.Plan{}, 0, 0)

	bad := state.Desired{Namespace: "db", Name: "bad", Problems: []string{"bad.yaml:3: spec.version: \"@ada | `rm` <b>\" is no release"}}
	broken := newClusterReport(bad, plan.Make(bad, state.Observed{}, noon), 0, 0)
	broken.Change = Held

	r := &Report{
		Base: "c48b9a9d1e", Head: "0123456789", Offline: true,
		Clusters: []ClusterReport{gone, changing, held, quiet, broken},
		Others:   []ObjectReport{{Kind: "EtcdBackupSchedule", Namespace: "db", Name: "nightly", Change: Added, Description: "0 2 * * * Europe/Berlin, of orders, keeps 7 daily"}},
		Problems: []schema.Problem{
			{File: "bad.yaml", Line: 3, Field: "spec.version", Message: "\"@ada | `rm` <b>\" is no release"},
			{File: "old.yaml", Line: 1, Message: "hm", Warning: true},
		},
	}
	r.Count(4)
	return r
}

// The comment and the text of one report, as people see them. -update rewrites
// them.
func TestRenderings(t *testing.T) {
	r := sampleReport()
	for name, got := range map[string]string{"report.md": strings.Join(r.Markdown(comment(60000)), "\n"), "report.txt": r.Text()} {
		path := filepath.Join("testdata", "markdown", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s (%v):\n%s", path, err, got)
		}
	}
}

// What comes from a file calls nobody, links nowhere, and breaks neither a table
// nor a block.
func TestNothingFromAFileIsRead(t *testing.T) {
	evil := "</details> @ada #1 | `x` ``y`` <img src=x> https://evil.example www.evil.example [a](b) **b** _c_ ~d~ \n# e \u202e !2 $f$ &amp; \\"
	d := orders(oldVersion, "a")
	d.Name = evil
	p := decision.Plan{
		Hold:     &decision.Hold{Kind: decision.Refused, Message: evil, Do: evil},
		Steps:    []decision.Step{{Action: action.ApplyObject{ObjectKind: evil, Name: evil}, Reason: evil, Undo: action.Undo{Text: evil}}},
		Warnings: []situation.Remark{{Text: evil}},
	}
	c := newClusterReport(d, p, 0, 0)
	c.Changes, c.Unknown = []FieldChange{{Field: evil, From: evil, To: evil}}, []string{evil}
	r := &Report{
		Clusters: []ClusterReport{c}, Others: []ObjectReport{{Kind: evil, Namespace: evil, Name: evil, Change: Added, Description: evil}}, Problems: []schema.Problem{{File: evil, Message: evil}},
	}
	r.Count(0)
	text := strings.Join(r.Markdown(comment(60000)), "\n")
	if n := strings.Count(withoutCode(text), "</details>"); n != 1 {
		t.Errorf("%d ends of blocks:\n%s", n, text)
	}
	for _, never := range []string{"@ada", "#1", "<img", "https://evil", "www.evil", "!2", "$f", "[a]", "**b**", "\u202e"} {
		if strings.Contains(withoutCode(text), never) {
			t.Errorf("%q stands outside code:\n%s", never, text)
		}
	}
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "| `") && strings.Count(strings.ReplaceAll(l, `\|`, ""), "|") != 6 {
			t.Errorf("a row of another number of columns: %s", l)
		}
	}
	if plainText := r.Text(); strings.Contains(plainText, "\u202e") || strings.Contains(plainText, "\n# e") {
		t.Errorf("text:\n%q", plainText)
	}
}

// withoutCode is a comment without code, which is read as it stands. A span ends at as many backticks as it begins with; one behind a backslash
// outside a span begins none.
func withoutCode(text string) string {
	var b strings.Builder
	text = regexp.MustCompile("<code>(?:[^<]|<b></b>)*</code>").ReplaceAllString(text, "")
	for i := 0; i < len(text); {
		if text[i] == '\\' && i+1 < len(text) {
			b.WriteString(text[i : i+2])
			i += 2
			continue
		}
		n := 0
		for i+n < len(text) && text[i+n] == '`' {
			n++
		}
		if n == 0 {
			b.WriteByte(text[i])
			i++
			continue
		}
		end := spanEnd(text, i+n, n)
		if end < 0 {
			b.WriteString(text[i : i+n])
			end = i + n
		}
		i = end
	}
	return b.String()
}

// spanEnd is where a code span that began with n backticks has ended, or -1.
func spanEnd(text string, from, n int) int {
	for i := from; i < len(text); {
		run := 0
		for i+run < len(text) && text[i+run] == '`' {
			run++
		}
		if run == n {
			return i + run
		}
		i += max(run, 1)
	}
	return -1
}

// A long comment is cut between clusters. Every part has its own marker, whatever
// the number of parts, and all clusters are told of once.
func TestParts(t *testing.T) {
	r := sampleReport()
	one := r.Clusters[2]
	if len(one.Steps) == 0 {
		t.Fatal("no steps to show")
	}
	r.Clusters = nil
	for i := range 100 {
		c := one
		c.Name = fmt.Sprintf("cluster-%03d", i)
		r.Clusters = append(r.Clusters, c)
	}
	r.Count(0)
	parts := r.Markdown(comment(LeastLimit))
	if len(parts) < 5 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, part := range parts {
		if len(part) > LeastLimit {
			t.Errorf("part %d has %d bytes", i+1, len(part))
		}
		if want := fmt.Sprintf("<!-- quorate-plan part %d -->\n**quorate plan**: 100 clusters change", i+1); !strings.HasPrefix(part, want) {
			t.Errorf("part %d begins with %.80q", i+1, part)
		}
		if !strings.Contains(part, fmt.Sprintf(" · part %d of %d\n", i+1, len(parts))) {
			t.Errorf("part %d does not say of how many", i+1)
		}
		if opened, closed := strings.Count(part, "<details>"), strings.Count(part, "</details>"); opened != closed {
			t.Errorf("part %d: %d blocks begin and %d end", i+1, opened, closed)
		}
	}
	all := strings.Join(parts, "\n")
	for _, c := range r.Clusters {
		if n := strings.Count(all, "<summary><code>"+c.Key()+"</code>"); n != 1 {
			t.Errorf("%s stands there %d times", c.Key(), n)
		}
	}
}

// A block that is larger than a part is cut, and says how much is hidden.
func TestABlockThatIsTooLarge(t *testing.T) {
	r := sampleReport()
	huge := r.Clusters[2]
	for len(huge.Steps) < 400 {
		huge.Steps = append(huge.Steps, huge.Steps[0])
	}
	for name, test := range map[string]struct {
		change func()
		want   string
	}{
		"many steps":   {func() {}, " steps hidden** because"},
		"many changes": {func() { huge.Changes = make([]FieldChange, 5000) }, "**what comes before the steps and 400 steps hidden**"},
	} {
		test.change()
		r.Clusters = []ClusterReport{huge}
		for i, part := range r.Markdown(comment(LeastLimit)) {
			if len(part) > LeastLimit || strings.Count(part, "<details>") != strings.Count(part, "</details>") {
				t.Errorf("%s: part %d has %d bytes", name, i+1, len(part))
			}
			if i == 0 && strings.Contains(part, "<details>") && !strings.Contains(part, test.want) {
				t.Errorf("%s: nothing is said to be hidden:\n%s", name, part)
			}
		}
	}
	many := sampleReport()
	for range 2000 {
		many.Clusters = append(many.Clusters, many.Clusters[0])
	}
	if part := many.Markdown(comment(LeastLimit))[0]; len(part) > LeastLimit || !strings.Contains(part, " clusters hidden**") {
		t.Errorf("a table of %d bytes", len(part))
	}
}

// 17: nothing to do is one part, so that an earlier comment does not stay.
func TestNothingToTell(t *testing.T) {
	r := &Report{Offline: true, Base: "c48b9a9d1e"}
	r.Count(3)
	parts := r.Markdown(comment(60000))
	want := "<!-- quorate-plan part 1 -->\n**quorate plan**: no cluster changes, 3 unchanged · base `c48b9a9` → files on disk\n\nThere is nothing to do.\n"
	if len(parts) != 1 || parts[0] != want {
		t.Errorf("%q", parts)
	}
}

// A backup that is taken, a schedule that ends or a file with errors is something, though no cluster
// changes.
func TestWhatIsNotNothing(t *testing.T) {
	schedule := ObjectReport{Kind: "EtcdBackupSchedule", Namespace: "db", Name: "nightly"}
	ended := schedule
	ended.Change = Removed
	for name, c := range map[string]struct {
		report Report
		says   string
	}{
		"a schedule that ends":          {Report{Others: []ObjectReport{ended}}, "\n\nNo cluster changes.\n"},
		"a schedule that there is":      {Report{Others: []ObjectReport{schedule}}, "\n\nThere is nothing to do.\n"},
		"a file with errors":            {Report{Problems: []schema.Problem{{Message: "no"}}}, "plan**: no change of a cluster is known, 1 unchanged, 1 error\n\nNo change of a cluster is known.\n"},
		"a file of which one is warned": {Report{Problems: []schema.Problem{{Message: "old", Warning: true}}}, "plan**: no cluster changes, 1 unchanged, 1 warning\n\nThere is nothing to do.\n"},
	} {
		c.report.Count(1)
		text := strings.Join(c.report.Markdown(comment(60000)), "")
		if !strings.Contains(text, c.says) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// A cluster whose record is made is a new one; what has no change says only what it is.
func TestWhatIsAdded(t *testing.T) {
	d := state.Desired{Namespace: "db", Name: "new"}
	for _, c := range []struct {
		steps []decision.Step
		want  Change
	}{{nil, Unchanged}, {[]decision.Step{{Action: action.EndRoll{}}}, Changed}, {[]decision.Step{{Action: action.EndRoll{}}, {Action: action.CreateRecord{}}}, Added}} {
		if r := newClusterReport(d, decision.Plan{Steps: c.steps}, 0, 0); r.Change != c.want {
			t.Errorf("%v: %s, want %s", c.steps, r.Change, c.want)
		}
	}
	for o, want := range map[ObjectReport]string{
		{Kind: "EtcdBackup", Namespace: "db", Name: "b", Description: "of orders"}:                "EtcdBackup db/b: of orders",
		{Kind: "EtcdBackup", Namespace: "db", Name: "b", Description: "of orders", Change: Added}: "EtcdBackup db/b: added: of orders",
	} {
		if o.String() != want {
			t.Errorf("%q, want %q", o, want)
		}
	}
}
