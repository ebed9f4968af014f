package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/schema"
)

// The commands of the ready workflow files are run as they stand, in a
// repository whose last commit changes a cluster.
func TestExampleWorkflowsRun(t *testing.T) {
	files, err := filepath.Glob("../../examples/ci/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("found %d workflow files, not 3 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			commands := quorateCommands(t, file)
			if len(commands) == 0 {
				t.Fatal("runs no quorate")
			}
			repository := changedRepository(t)
			for _, command := range commands {
				run := exec.Command("bash", "-eu", "-c", command)
				run.Dir = repository
				run.Env = append(os.Environ(), "BASE=HEAD~1", "PATH="+binaryDir(t)+":"+os.Getenv("PATH"))
				if output, err := run.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", command, err, output)
				}
			}
			if strings.Contains(strings.Join(commands, "\n"), "plan") {
				comment, err := os.ReadFile(filepath.Join(repository, "plan", "plan-1.md"))
				if err != nil || !strings.Contains(string(comment), "3.6.16") {
					t.Errorf("the comment does not tell of 3.6.16 (%v):\n%s", err, comment)
				}
			}
		})
	}
}

// A newcomer's first command finds nothing to warn of, in any example; but that what
// comes from an old operator runs a line of etcd that has ended.
func TestExamples335HaveNoWarning(t *testing.T) {
	for _, dir := range exampleDirs(t) {
		var out, errs bytes.Buffer
		status := execute(t.Context(), []string{"validate", "-o", "json", dir}, &out, &errs)
		var problems []schema.Problem
		if err := json.Unmarshal(out.Bytes(), &problems); err != nil || status != 0 {
			t.Errorf("validate %s ends with %d (%v):\n%s%s", dir, status, err, out.String(), errs.String())
		}
		for _, p := range problems {
			if !strings.Contains(dir, "/migrate-from-") || !strings.Contains(p.Message, "gets no fixes any more") {
				t.Error(p)
			}
		}
	}
}

// exampleDirs are the directories of examples that hold files of quorate.
func exampleDirs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../../examples/*/*/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, file := range append(files, deeper...) {
		if dir := filepath.Dir(file); filepath.Base(dir) != "before" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) < 8 {
		t.Fatalf("found only %q", dirs)
	}
	return dirs
}

// quorateCommands are the commands of a workflow that call quorate.
func quorateCommands(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	var commands []string
	var walk func(*yaml.Node)
	walk = func(node *yaml.Node) {
		if node.Kind == yaml.ScalarNode && (strings.HasPrefix(node.Value, "quorate validate ") || strings.HasPrefix(node.Value, "quorate plan ")) {
			commands = append(commands, node.Value)
		}
		for _, child := range node.Content {
			walk(child)
		}
	}
	walk(&root)
	var calls []string
	for _, command := range commands {
		// The name of a step is no command.
		if strings.Contains(command, "clusters") {
			calls = append(calls, command)
		}
	}
	return calls
}

// changedRepository has the quickstart's clusters, and an upgrade of one as its
// last commit.
func changedRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile("../../examples/quickstart/clusters/orders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "clusters", "orders.yaml")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		command := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, output)
		}
	}
	git("init", "-q", "-b", "main")
	for _, text := range []string{string(data), strings.Replace(string(data), "3.5.35", "3.6.16", 1)} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-q", "-m", "clusters")
	}
	return dir
}

// binaryDir holds this test's own binary under the name quorate: TestMain makes
// it behave like that.
func binaryDir(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "quorate")); err != nil {
		t.Fatal(err)
	}
	return dir
}
