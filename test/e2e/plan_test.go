package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/lab"
)

// TestPlanIsWhatIsDone compares what `quorate plan` shows before a commit with
// what quorate then does.
func TestPlanIsWhatIsDone(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "plan")
	want := spec{version: "3.5.35", replicas: 3, backup: "Required"}
	if status, _ := w.plan(w.text(want)); status != 2 {
		t.Errorf("a cluster that does not exist yet: exit status %d, want 2", status)
	}
	w.create(want)
	w.must(w.cluster.MoveLeader(t.Context(), w.namespace, name, "orders-1"))
	if status, steps := w.plan(w.text(want)); status != 0 || len(steps) > 0 {
		t.Errorf("nothing to do: exit status %d, want 0; steps %q", status, steps)
	}
	if status, _ := w.plan(strings.Replace(w.text(want), "replicas", "replica", 1)); status != 1 {
		t.Errorf("a bad file: exit status %d, want 1", status)
	}

	// 26: the plan is what is applied, and showing it changes nothing.
	before := w.settled()
	want.version = "3.6.16"
	status, steps := w.plan(w.text(want))
	if status != 2 || len(steps) == 0 {
		t.Errorf("an upgrade: exit status %d, want 2; steps %q", status, steps)
	}
	w.expectObjects(before)
	from := w.daemon.Log.Mark()
	w.commit("Upgrade", want)
	w.awaitIdle(want.version, rollLimit)
	var done []string
	for _, l := range w.lines(from, lab.Done()) {
		done = append(done, l.Action)
	}
	if !slices.Equal(steps, done) {
		t.Errorf("planned\n  %s\ndone\n  %s", strings.Join(steps, "\n  "), strings.Join(done, "\n  "))
	}
}

// plan runs quorate plan on one file, and returns its exit status and the
// actions that it shows.
func (w *world) plan(text string) (status int, actions []string) {
	w.Helper()
	path := filepath.Join(w.TempDir(), "orders.yaml")
	w.must(os.WriteFile(path, []byte(text), 0o644))
	cmd := exec.CommandContext(w.Context(), shared.binary, "plan", "--output=json",
		"--kubeconfig="+w.options.Kubeconfig, "--namespaces="+strings.Join(w.namespaces(), ","), "--backup-url="+w.options.BackupURL, path)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return 1, nil
	} else if err != nil && exit == nil {
		w.Fatal(err)
	}
	var report struct {
		Clusters []struct {
			Steps []struct {
				Action string `json:"action"`
			} `json:"steps"`
		} `json:"clusters"`
	}
	w.must(json.Unmarshal(out, &report))
	for _, p := range report.Clusters {
		for _, s := range p.Steps {
			actions = append(actions, s.Action)
		}
	}
	return cmd.ProcessState.ExitCode(), actions
}
