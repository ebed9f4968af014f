package needs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/needs"
)

// dryRun returns the commands that a make target would run.
func dryRun(t *testing.T, target string) []string {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), needs.Program(t, "make"), "--no-print-directory", "--dry-run", target)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("make --dry-run %s: %v\n%s", target, err, out)
	}
	return strings.Split(strings.ReplaceAll(string(out), "\\\n", " "), "\n")
}

// goTests returns those of the commands that run tests.
func goTests(commands []string) []string {
	return slices.DeleteFunc(commands, func(c string) bool { return !strings.Contains(c, "go test ") })
}

// listed returns the packages of the main module that the patterns match and that have tests.
func listed(t *testing.T, patterns ...string) []string {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, patterns...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}

func TestMakeTestRunsEveryPackageAndSkipsNothing(t *testing.T) {
	var patterns []string
	for _, command := range goTests(dryRun(t, "test")) {
		if strings.Contains(command, "-short") || !strings.Contains(command, needs.All+"=yes go test") {
			t.Errorf("this may skip tests: %s", command)
		}
		if strings.HasPrefix(command, "cd ") {
			continue // another module
		}
		for _, word := range strings.Fields(command) {
			if strings.HasPrefix(word, "./") {
				patterns = append(patterns, word)
			}
		}
	}
	run := listed(t, patterns...)
	for _, pkg := range listed(t, "./...") {
		if !slices.Contains(run, pkg) {
			t.Errorf("make test does not run %s", pkg)
		}
	}
}

// What make test leaves out by name is run by a target of make nightly.
func TestNightlyRunsWhatMakeTestLeavesOut(t *testing.T) {
	leftOut := regexp.MustCompile(`-skip='([^']*)'`)
	nightly := strings.Join(goTests(dryRun(t, "nightly")), "\n")
	patterns := map[string]bool{}
	for _, command := range goTests(dryRun(t, "test")) {
		if names := leftOut.FindStringSubmatch(command); names != nil {
			for pattern := range strings.SplitSeq(names[1], "|") {
				patterns[pattern] = true
			}
		}
	}
	if len(patterns) == 0 {
		t.Fatal("make test leaves nothing out: this test finds its flags no longer")
	}
	for pattern := range patterns {
		name := strings.Trim(pattern, "^$?")
		if !regexp.MustCompile(`-run[= ]'?\^?` + regexp.QuoteMeta(name)).MatchString(nightly) {
			t.Errorf("make nightly has no -run for %s", pattern)
		}
	}
}

// The flags of all builds are written once, and the builds whose environment is fixed, for releases, have the same.
func TestAllBuildsHaveTheSameFlags(t *testing.T) {
	environment := strings.Join(dryRun(t, "env"), "\n")
	flags := regexp.MustCompile(`-trimpath (-gcflags=\S+) (-tags=[a-z_,]+)`).FindStringSubmatch(environment)
	if flags == nil {
		t.Fatalf("make env prints no flags: %s", environment)
	}
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{".goreleaser.yaml", "deploy/image/build.go"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		n := strings.Count(string(text), "-trimpath")
		if n == 0 || n != strings.Count(string(text), flags[1]) || n != strings.Count(string(text), flags[2]) {
			t.Errorf("%s builds with other flags than %s", file, flags[0])
		}
	}
}
