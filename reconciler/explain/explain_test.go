package explain_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/explain"
)

func TestEntriesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range explain.All() {
		if seen[e.Name] {
			t.Errorf("%s is explained twice", e.Name)
		}
		seen[e.Name] = true
		for what, text := range map[string]string{"Means": e.Means, "Why": e.Why, "Topic": string(e.Topic)} {
			if text == "" || what != "Topic" && !strings.HasSuffix(text, ".") {
				t.Errorf("%s of %s is %q", what, e.Name, text)
			}
		}
		if e.Topic != explain.Rule && len(e.Do) == 0 {
			t.Errorf("%s says nothing to do", e.Name)
		}
		for _, do := range e.Do {
			if !strings.HasSuffix(do, ".") {
				t.Errorf("what to do about %s is %q", e.Name, do)
			}
		}
		for line := range strings.Lines(e.Text(100)) {
			if line = strings.TrimSuffix(line, "\n"); len([]rune(line)) > 100 || strings.TrimRight(line, " ") != line {
				t.Errorf("%s has the line %q", e.Name, line)
			}
		}
		if found := explain.Find(e.Name); len(found) != 1 || found[0].Name != e.Name {
			t.Errorf("%s finds %d entries", e.Name, len(found))
		}
	}
}

func TestAHoldIsFoundAsItIsWritten(t *testing.T) {
	for name, want := range map[string]string{
		"Refused": "Refused", "refused": "Refused", "HoldRefused": "Refused", "holdrefused": "Refused",
		"confirm": "confirm", "Confirm": "Confirm", "CONFIRM": "Confirm confirm", "window": "window", "Window": "window",
		"holdings": "holdings", "ORPHANED": "Orphaned", "nothing": "", "": "",
	} {
		var names []string
		for _, e := range explain.Find(name) {
			names = append(names, e.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q finds %q, want %q", name, got, want)
		}
	}
}
