package daemon

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/explain"
	"github.com/quorate/quorate/reconciler/naming"
)

// restart is the only command in the runbooks that changes anything.
const restart = "kubectl -n quorate-system rollout restart deployment/quorate"

// 251: all commands of the runbooks are read-only except one. The metrics, labels and
// log lines that they search for exist in the code; the end-to-end test TestRunbooks runs
// them, but a healthy cluster does not show these.
func TestRunbookCommandsAskForWhatExists(t *testing.T) {
	check := newRunbookCheck(t)
	found := 0
	for alert, body := range runbookSections(t) {
		for _, block := range commands(body) {
			for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
				for _, problem := range check.problems(line) {
					t.Errorf("%s: %s: %s", alert, line, problem)
				}
				found++
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d commands", found)
	}
}

// 251: the check finds each kind of mistake.
func TestRunbookCommandsAreReallyChecked(t *testing.T) {
	check := newRunbookCheck(t)
	for line, says := range map[string]string{
		`kubectl -n "$NAMESPACE" delete pod "$POD"`:                                             "changes something",
		`kubectl get nodes; kubectl cordon node-1`:                                              "more than one command",
		`kubectl get pods || true`:                                                              "more than one command",
		`etcdctl alarm list`:                                                                    "is no command of a runbook",
		`quorate run`:                                                                           "is no command of a runbook",
		`kubectl get --raw /metrics | grep '^quorate_member_inf0'`:                              "no metric",
		`kubectl get --raw /metrics | xargs kubectl delete`:                                     "only grep and tail",
		`kubectl get pods -l quorate.dev/clusters="$CLUSTER"`:                                   "no label",
		`kubectl -n quorate-system logs deployment/quorate | grep -F "commit was held"`:         "nobody logs",
		`quorate explain Refusal`:                                                               "no hold",
		`kubectl get --raw "/api/v1/namespaces/x/pods/y:2381/proxy/metrics" | grep '^etcd_foo'`: "no metric",
	} {
		if problems := strings.Join(check.problems(line), "; "); !strings.Contains(problems, says) {
			t.Errorf("%s: want %q, found %q", line, says, problems)
		}
	}
	if problems := check.problems(restart); len(problems) > 0 {
		t.Errorf("%s: %q", restart, problems)
	}
}

// runbookSections are the texts of docs/alerts.md by alert.
func runbookSections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(root + "docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		sections[name] = body
	}
	return sections
}

// runbookCheck knows which metrics, labels and log messages exist.
type runbookCheck struct {
	metrics []string
	source  string
}

func newRunbookCheck(t *testing.T) *runbookCheck {
	t.Helper()
	return &runbookCheck{slices.Collect(maps.Keys(knownMetrics(t))), sourceText(t)}
}

var (
	asks     = regexp.MustCompile(`^(kubectl (-n \S+ )?(get|describe|logs) |kubectl -n quorate-system rollout status |quorate (status|explain) )`)
	grepped  = regexp.MustCompile(`grep '\^(\w+)`)
	selected = regexp.MustCompile(`-l ([\w./-]+)`)
	logged   = regexp.MustCompile(`grep -F "([^$"\\]+)"`)
	hold     = regexp.MustCompile(`^quorate explain (\S+)`)
)

// problems lists what is wrong with a command.
func (c *runbookCheck) problems(line string) (problems []string) {
	bad := func(problem string) { problems = append(problems, problem) }
	pipe := strings.Split(line, " | ")
	switch {
	case strings.ContainsAny(line, ";&>`") || strings.Contains(line, "||"):
		bad("more than one command")
	case line != restart && !asks.MatchString(line) && strings.HasPrefix(line, "kubectl "):
		bad("changes something")
	case line != restart && !asks.MatchString(line):
		bad("is no command of a runbook")
	}
	for _, next := range pipe[1:] {
		if !strings.HasPrefix(next, "grep ") && !strings.HasPrefix(next, "tail ") {
			bad("only grep and tail may follow")
		}
	}
	for _, asked := range grepped.FindAllStringSubmatch(line, -1) {
		if strings.Contains(line, "metrics") && !slices.ContainsFunc(c.metrics, func(m string) bool { return strings.HasPrefix(m, asked[1]) }) {
			bad("no metric begins with " + asked[1])
		}
	}
	for _, label := range selected.FindAllStringSubmatch(line, -1) {
		if !slices.Contains([]string{naming.LabelCluster, naming.LabelSchedule, naming.LabelDrillOf, naming.LabelActing, "app.kubernetes.io/name", "app.kubernetes.io/component"}, label[1]) {
			bad("no label " + label[1])
		}
	}
	for _, text := range logged.FindAllStringSubmatch(line, -1) {
		if !strings.Contains(c.source, text[1]) {
			bad("nobody logs " + text[1])
		}
	}
	if kind := hold.FindStringSubmatch(line); kind != nil && len(explain.Find(kind[1])) == 0 {
		bad("there is no hold " + kind[1])
	}
	return problems
}

// sourceText is the code that logs.
func sourceText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"cmd", "reconciler"} {
		err := filepath.WalkDir(root+dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
