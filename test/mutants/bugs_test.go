package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// 344: the record of bugs names tests and scenarios that exist, commits of this
// repository, and mutants: clauses, which TestClausesAreHeld tries, or lines of the table
// beside the simulation, which TestEveryMutantIsCaught does.
func TestTheRecordOfBugs(t *testing.T) {
	bugs, err := readBugs(filepath.Join(root, bugsPath))
	if err != nil {
		t.Fatal(err)
	}
	if len(bugs) < 30 {
		t.Errorf("only %d bugs", len(bugs))
	}
	tests, tabled := namesOfTests(t)
	_, all, err := mutateAll(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	subjects := subjectsOfCommits(t)
	for _, b := range bugs {
		for _, held := range b.held {
			if _, err := os.Stat(filepath.Join(root, planDir, "testdata", "scenarios", held)); err != nil && !tests[held] {
				t.Errorf("%s: there is no test or scenario %q", b.text, held)
			}
		}
		if subjects != nil && !subjects[b.commit] {
			t.Errorf("%s: there is no commit %q", b.text, b.commit)
		}
		if len(unknownOf(all, []string{b.mutant})) > 0 && !tabled[b.mutant] {
			t.Errorf("%s: there is no mutant %q", b.text, b.mutant)
		}
	}
}

var (
	testName   = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	mutantName = regexp.MustCompile(`\{name: "([^"]+)", breaks:`)
)

// namesOfTests are all tests of the repository, and the mutants of the planner's tables.
func namesOfTests(t *testing.T) (tests, mutants map[string]bool) {
	tests, mutants = map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		for _, m := range mutantName.FindAllStringSubmatch(string(text), -1) {
			mutants[m[1]] = true
		}
		return err
	})
	if err != nil || len(tests) < 500 || len(mutants) < 50 {
		t.Fatalf("%d tests, %d mutants: %v", len(tests), len(mutants), err)
	}
	return tests, mutants
}

// subjectsOfCommits are those of all commits, nil where the history is not there.
func subjectsOfCommits(t *testing.T) map[string]bool {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		t.Log("the commits are not looked up: their history is not here")
		return nil
	}
	log, err := git("log", "--format=%s")
	if err != nil {
		t.Fatal(err)
	}
	subjects := map[string]bool{}
	for _, line := range slices.Collect(strings.Lines(log)) {
		subjects[strings.TrimSpace(line)] = true
	}
	return subjects
}
