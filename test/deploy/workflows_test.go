package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The workflows are what GitHub takes, with the fields, contexts and outputs that they use.
func TestTheWorkflowsPassActionlint(t *testing.T) {
	actionlint := install(t, "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12")
	// shellcheck and pyflakes are asked where they happen to be installed, which differs.
	cmd := exec.CommandContext(t.Context(), actionlint, "-shellcheck=", "-pyflakes=", "-no-color")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Actions are named by a commit, which nobody can move, with its release beside it for people and
// Dependabot; and a workflow has no right that its jobs do not name.
func TestActionsArePinnedByCommit(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatal(files, err)
	}
	uses := regexp.MustCompile(`(?m)^.*\buses: *(.*)$`)
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	commits := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range uses.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(found[1]) {
				t.Errorf("%s: %s is not pinned by its commit with # and its release", file, found[1])
			}
			action := regexp.MustCompile(`^[\w.-]+/[\w.-]+`).FindString(found[1])
			release := regexp.MustCompile(`@.*`).FindString(found[1])
			if before := commits[action]; before != "" && before != release {
				t.Errorf("%s: %s is used at %s and at %s", file, action, before, release)
			}
			commits[action] = release
		}
		if !regexp.MustCompile(`(?m)^permissions:\n  contents: read\n`).Match(text) {
			t.Errorf("%s: a job without permissions of its own gets more than to read", file)
		}
	}
	if len(commits) < 7 {
		t.Errorf("%d actions were found", len(commits))
	}
}
