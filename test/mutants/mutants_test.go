package main

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/needs"
)

const root = "../.."

// 341: a mutant spoils one clause, is named by it, and moves no line.
func TestEachClauseIsSpoiltAlone(t *testing.T) {
	const text = `package plan

func first(p *int, q, r bool) bool {
	if p != nil && !q {
		return *p < 3 || r
	}
	switch {
	case q:
		return true
	}
	for i := 0; i < 3; i++ {
		_ = func(n int) bool { return n == i }
	}
	return r
}
`
	path := filepath.Join(t.TempDir(), "first.go")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*mutant
	written, err := mutate(path, ".", &all, map[string]int{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), path, written, 0); err != nil {
		t.Fatalf("%v in\n%s", err, written)
	}
	if got, want := strings.Count(string(written), "\n"), strings.Count(text, "\n"); got != want {
		t.Errorf("%d lines, not %d", got, want)
	}
	var names []string
	for _, m := range all {
		names = append(names, m.name())
	}
	want := []string{
		"first: `*p < 3` with <=",
		"first: always `*p < 3 || r`",
		"first: always `n == i`",
		"first: always `p != nil && !q`",
		"first: always `q`",
		"first: always `r`",
		"first: never `*p < 3 || r`",
		"first: never `n == i`",
		"first: never `p != nil && !q`",
		"first: never `q`",
		"first: never `r`",
		"first: the opposite of `!q`",
		"first: the opposite of `n == i`",
		"first: the opposite of `p != nil`",
		"first: without `!q`",
		"first: without `*p < 3`",
		"first: without `p != nil`",
		"first: without `r`",
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
}

// 342: a reason holds for the names above it, and there is none without one.
func TestTheListOfRedundantClauses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"# why\n\na: never `x`\nb: never `y`\n\tbecause z\n\twhich is so\nc: always `d`\n\tfor e\n", "a: never `x`=because z which is so;b: never `y`=because z which is so;c: always `d`=for e"},
		{"a: never `x`\n", "a: never `x` has no reason"},
		{"\tbecause\n", "a reason of nothing"},
		{"a\n\tb\na\n\tc\n", "a is in the list twice"},
	} {
		path := filepath.Join(t.TempDir(), "list.txt")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		reasons, err := readRedundant(path)
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(reasons)) {
			texts = append(texts, name+"="+reasons[name])
		}
		got := strings.Join(texts, ";")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, c.want) {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// 343: of a sample of all clauses each is held by something or named as redundant, and every
// mutant that brings a bug back is caught. `make mutants` tries all of them.
func TestClausesAreHeld(t *testing.T) {
	needs.Long(t)
	if err := run(root, options{histories: 2000, sample: 40}); err != nil {
		t.Error(err)
	}
}
