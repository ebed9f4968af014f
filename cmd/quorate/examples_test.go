package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/needs"
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

// What the ready workflow files install is pinned by a checksum: who moves a tag gets none
// of their tokens.
func TestExampleWorkflowsPinWhatTheyInstall(t *testing.T) {
	files, err := filepath.Glob("../../examples/ci/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("found %d workflow files, not 3 (%v)", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			for kind, pinned := range map[string]string{
				"uses: ": `uses: [\w/-]+@[0-9a-f]{40} # v`, "image: ": `image: [\w.:/-]+@sha256:[0-9a-f]{64}\s`, "go install": `@\$QUORATE_VERSION"`, "cmd/quorate@": `@(v\d|\$QUORATE_VERSION)`,
			} {
				if strings.Contains(line, kind) && !regexp.MustCompile(pinned).MatchString(line) {
					t.Errorf("%s does not pin: %s", file, line)
				}
			}
			if regexp.MustCompile(`latest|apt-get|pip install|npm `).MatchString(line) {
				t.Errorf("%s installs whatever is there: %s", file, line)
			}
		}
		if installs := bytes.Count(data, []byte("go install")); installs != bytes.Count(data, []byte(`| grep -F "\"Sum\": \"$QUORATE_SUM\"" ||`)) {
			t.Errorf("%s does not check the checksum of what it installs", file)
		}
	}
}

// The scripts that comment change their own comment only: anyone may write one that begins
// with the same marker.
func TestExampleWorkflowsChangeTheirOwnCommentOnly(t *testing.T) {
	needs.Program(t, "jq")
	const marker = "<!-- quorate-plan part 1 -->"
	theirs := `{"id": 1, "body": "` + marker + ` I was first", "user": {"login": "mallory"}, "author": {"id": 66}}`
	ours := `{"id": 2, "body": "` + marker + ` the plan", "user": {"login": "github-actions[bot]"}, "author": {"id": 12}}`
	for file, want := range map[string][2]string{
		"github-actions.yaml": {"api -X POST repos/x/comments -F", "api -X PATCH repos/x/comment/2 -F"},
		"gitlab-ci.yaml":      {"/merge_requests/7/notes\n", "/merge_requests/7/notes/2\n"},
	} {
		for i, comments := range []string{"[" + theirs + "]", "[" + theirs + "," + ours + "]"} {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "plan", "plan-1.md"), marker+"\nthe plan\n")
			write(t, filepath.Join(dir, "comments.json"), comments)
			stub := "#!/bin/bash\necho \"$*\" >> calls\n"
			write(t, filepath.Join(dir, "bin", "gh"), stub+`while [ $# -gt 0 ]; do [ "$1" = --jq ] && exec jq -r "$2" comments.json; shift; done`+"\n")
			write(t, filepath.Join(dir, "bin", "curl"), stub+`case "$*" in *" -X "*) cat >/dev/null ;; */user) echo '{"id": 12}' ;; *) cat comments.json ;; esac`+"\n")
			run := exec.Command("bash", "-euo", "pipefail", "-c", "chmod +x bin/*\n"+commentScript(t, "../../examples/ci/"+file))
			run.Dir = dir
			run.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "AUTHOR=github-actions[bot]", "COMMENTS=repos/x/comments", "COMMENT=repos/x/comment",
				"CI_API_V4_URL=https://git.example.com/api/v4", "CI_PROJECT_ID=1", "CI_MERGE_REQUEST_IID=7", "QUORATE_TOKEN=t")
			if output, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, output)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			if err != nil || strings.Count(string(calls), "-X ") != 1 || !strings.Contains(string(calls), want[i]) {
				t.Errorf("%s did with %s (%v):\n%s", file, comments, err, calls)
			}
		}
	}
}

// textsIn are the texts of a YAML file that are meant, in its order.
func textsIn(t *testing.T, file string, meant func(text string) bool) (texts []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	var walk func(*yaml.Node)
	walk = func(node *yaml.Node) {
		if node.Kind == yaml.ScalarNode && meant(node.Value) {
			texts = append(texts, node.Value)
		}
		for _, child := range node.Content {
			walk(child)
		}
	}
	walk(&root)
	return texts
}

// commentScript is the script of a workflow that comments.
func commentScript(t *testing.T, file string) string {
	t.Helper()
	scripts := textsIn(t, file, func(text string) bool { return strings.Contains(text, "for part in plan/*.md") })
	if len(scripts) != 1 {
		t.Fatalf("%s has %d scripts that comment", file, len(scripts))
	}
	return scripts[0]
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
	commands := textsIn(t, file, func(text string) bool {
		return (strings.HasPrefix(text, "quorate validate ") || strings.HasPrefix(text, "quorate plan "))
	})
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
