package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/lab"
)

func TestNarratorTellsWhatMatters(t *testing.T) {
	var out bytes.Buffer
	n := &narrator{Progress: lab.NewProgress(&out)}
	for _, line := range []string{
		`{"msg":"cluster warning","cluster":"demo/orders","warning":"old"}`,
		`{"msg":"cluster warning","cluster":"demo/orders","warning":"older"}`,
		`{"msg":"on hold","cluster":"demo/orders","reason":"over at once"}`,
		`{"msg":"step started","cluster":"demo/orders","action":"restart orders-2","reason":"all are healthy"}`,
		`{"msg":"step done","cluster":"demo/orders","action":"restart orders-2"}`,
		`{"msg":"pass failed","cluster":"demo/orders","error":"no such bucket"}`,
		`panic: oh`,
	} {
		n.tell(lab.ParseLogLine(line))
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), "]")
		got = append(got, strings.Join(strings.Fields(text), " "))
	}
	want := []string{
		"orders warning: old",
		"and 1 more warnings like it",
		"orders restart orders-2 because all are healthy",
		"orders pass failed: no such bucket",
		"panic: oh",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestMakefileBuildsWhatTheDemoNeeds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nDEMO_NEEDS := " + strings.Join(needed(), ",") + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("the Makefile has no line %q", strings.TrimSpace(want))
	}
}
