package plan

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// noted are the histories that are known to catch mutants, by the mutant's name. They save time only: a mutant whose
// note is missing or stale is searched for in all histories.
type noted map[string]int

// notesPath has a line a mutant: the number of the history that catches it, and the mutant's name.
var notesPath = filepath.Join("testdata", "mutants.txt")

const notesHead = `# The first history known to catch each mutant of TestEveryMutantIsCaught, which begins its search a little before it.
# go test ./reconciler/plan -run TestEveryMutantIsCaught -update rewrites this file; with -deep the search begins at 1.
`

// readNotes reads the notes; none where there is no file.
func readNotes(t *testing.T) noted {
	t.Helper()
	text, err := os.ReadFile(notesPath)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	n := noted{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		number, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		history, err := strconv.Atoi(number)
		if _, twice := n[name]; err != nil || twice || name == "" {
			t.Fatalf("%s: %q is not the number of a history and a mutant that is named once", notesPath, line)
		}
		n[name] = history
	}
	return n
}

// write writes the notes in the order of the mutants.
func (n noted) write(t *testing.T) {
	t.Helper()
	text := notesHead
	for _, m := range mutants() {
		if history := n[m.name]; history > 0 {
			text += fmt.Sprintf("%d %s\n", history, m.name)
		}
	}
	if err := os.WriteFile(notesPath, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// compare rewrites the notes with what a search has found, with -update, and else logs which of them are stale.
func (n noted) compare(t *testing.T, found noted) {
	t.Helper()
	if *update {
		maps.Copy(n, found)
		n.write(t)
		return
	}
	if stale := n.stale(found); len(stale) > 0 {
		t.Logf("%d notes in %s are stale, which costs time only; -update rewrites them:\n\t%s",
			len(stale), notesPath, strings.Join(stale, "\n\t"))
	}
}

// stale returns a line for each note that the search did not confirm, and for each mutant that has none. A note that
// the search did not come to is not among them.
func (n noted) stale(found noted) (lines []string) {
	names := map[string]bool{}
	for _, m := range mutants() {
		names[m.name] = true
		if history, tried := found[m.name]; tried && history != n[m.name] {
			line := fmt.Sprintf("%q is noted with history %d, and history %d catches it", m.name, n[m.name], history)
			lines = append(lines, line)
		}
	}
	for name := range n {
		if !names[name] {
			lines = append(lines, fmt.Sprintf("%q is no mutant any more", name))
		}
	}
	slices.Sort(lines)
	return lines
}

// searchOrder are the histories in which a mutant is searched for, as parts from one history to another: from a little
// before the noted one to the last one, and then those before. Without a note it is all of them in one part.
func searchOrder(note, last int) [][2]int {
	const before = 20
	first := max(1, min(note, last)-before)
	return [][2]int{{first, last}, {1, first - 1}}
}

// Whatever is noted, each history is searched once.
func TestTheSearchForMutantsLeavesNoHistoryOut(t *testing.T) {
	for _, note := range []int{-1, 0, 1, 2, 20, 21, 22, 50, 99, 100, 101, 5000} {
		var all []int
		for _, part := range searchOrder(note, 100) {
			for n := part[0]; n <= part[1]; n++ {
				all = append(all, n)
			}
		}
		if first := max(1, min(note, 100)-20); all[0] != first {
			t.Errorf("noted %d: the search begins at %d, not at %d", note, all[0], first)
		}
		slices.Sort(all)
		if len(all) != 100 || all[0] != 1 || all[99] != 100 || len(slices.Compact(all)) != 100 {
			t.Errorf("noted %d: searches %v", note, all)
		}
	}
}

// A mutant is caught by the same history, whether the search begins at its note or at the first history; with a stale
// note it is caught all the same.
func TestAMutantIsCaughtWhateverIsNoted(t *testing.T) {
	all := mutants()
	m := all[slices.IndexFunc(all, func(m mutant) bool { return m.name == "without the rule immutable" })]
	first, failure := m.caught(0)
	if failure != "" {
		t.Fatal(failure)
	}
	for _, note := range []int{1, first, first + 5, first + 1000, 2 * bound} {
		if history, failure := m.caught(note); failure != "" || note <= first+20 && history != first {
			t.Errorf("noted %d: history %d, %q, want %d", note, history, failure, first)
		}
	}
	lines := noted{m.name: first + 1, "gone": 3}.stale(noted{m.name: first})
	if len(lines) != 2 || !strings.Contains(lines[0], `"gone" is no mutant`) ||
		!strings.Contains(lines[1], "is noted with history") {
		t.Errorf("stale notes: %q", lines)
	}
	if lines := (noted{m.name: first, all[0].name: 3}).stale(noted{m.name: first}); len(lines) > 0 {
		t.Errorf("stale notes: %q", lines)
	}
}
