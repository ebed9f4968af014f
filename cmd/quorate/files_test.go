package main

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/schema"
)

func TestCountProblems(t *testing.T) {
	problems := []schema.Problem{{}, {Warning: true}, {Warning: true}}
	if text, errors := countProblems(problems); text != "1 error, 2 warnings" || errors != 1 {
		t.Errorf("%q, %d", text, errors)
	}
}

func TestIndent(t *testing.T) {
	if got := indent("a\nb\n"); got != "  a\n  b\n" || !strings.HasSuffix(got, "\n") {
		t.Errorf("%q", got)
	}
}
