package explain_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
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

// A pod in Init:Error shows the exit code of the guard, and each has its entry.
func TestEveryExitCodeOfTheGuardIsExplained(t *testing.T) {
	source, err := os.ReadFile("../guard/guard.go")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, code := range regexp.MustCompile(`(?m)^\tExit\w+ = (\d+)$`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, "exit-"+code[1])
	}
	for _, e := range explain.All() {
		if e.Topic == explain.Exit {
			got = append(got, e.Name)
		}
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("explained are %q, and the guard has %q", got, want)
	}
}

// The explanations use the words of the documentation.
func TestExplanationsUseTheWordsOfTheField(t *testing.T) {
	for text, want := range map[string]int{"It ends by itself, and nobody is told.": 3, "It is told apart.": 1, "The rollout stops, by design.": 0} {
		if got := len(dialect(text)); got != want {
			t.Errorf("%q has %d words of a dialect, want %d", text, got, want)
		}
	}
	for _, e := range explain.All() {
		if found := dialect(strings.Join(append(e.Do, e.Means, e.Why), " ")); len(found) > 0 {
			t.Errorf("%s says %q", e.Name, slices.Sorted(maps.Keys(found)))
		}
	}
}

// dialect are the words of a text that the documentation does not use.
func dialect(text string) map[string]bool {
	found := map[string]bool{}
	for _, word := range regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|for ever|by itself|by themselves|goes on|made anew|carried out|carry out|told|a roll|the roll|rolls|mended|forge|wish|beside)\b`).FindAllString(text, -1) {
		found[strings.ToLower(word)] = true
	}
	return found
}
