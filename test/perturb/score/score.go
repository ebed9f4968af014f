// Package score compares how disturbed runs ended with how the undisturbed one did, counts
// that, and writes it into a page, a section a kind of disturbance.
package score

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// End is how a disturbed run ended.
type End int

// The ends of a run.
const (
	Same   End = iota // as the undisturbed run
	Held              // held, and the hold names what a person must do
	Failed            // any other way
	Unmet             // the request to disturb did not come
)

// heldColumn is the title of the last column, which sums up the others.
const heldColumn = "held, with a way on"

// Table counts the ends by scenario and disturbance.
type Table struct {
	// Columns are the disturbances, in their order.
	Columns []string

	mu    sync.Mutex
	rows  map[string]int
	cells map[[2]string]*[4]int
}

// Row adds a scenario with so many requests to disturb.
func (t *Table) Row(scenario string, requests int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[string]int{}
	}
	t.rows[scenario] = requests
}

// Add counts a run.
func (t *Table) Add(scenario, how string, e End) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cells == nil {
		t.cells = map[[2]string]*[4]int{}
	}
	key := [2]string{scenario, how}
	if t.cells[key] == nil {
		t.cells[key] = &[4]int{}
	}
	t.cells[key][e]++
}

// sum adds up the cells that match; "" matches all.
func (t *Table) sum(scenario, how string) (all [4]int) {
	for key, cell := range t.cells {
		if (scenario == "" || key[0] == scenario) && (how == "" || key[1] == how) {
			for i, n := range cell {
				all[i] += n
			}
		}
	}
	return all
}

// cell is what a cell says: how many runs ended the same, of how many if not all did.
func cell(n [4]int) string {
	switch tried := n[Same] + n[Held] + n[Failed]; {
	case tried == 0:
		return "–"
	case tried == n[Same]:
		return fmt.Sprint(tried)
	case n[Held] > 0:
		return fmt.Sprintf("**%d of %d, %d held**", n[Same], tried, n[Held])
	default:
		return fmt.Sprintf("**%d of %d**", n[Same], tried)
	}
}

// String is the table, and a sentence that sums it up.
func (t *Table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	all, requests := t.sum("", ""), 0
	for _, n := range t.rows {
		requests += n
	}
	fmt.Fprintf(&b, "%d scenarios with %d requests, %d disturbances: %d end as undisturbed, %d held with a way on, %d in any other way",
		len(t.rows), requests, all[Same]+all[Held]+all[Failed], all[Same], all[Held], all[Failed])
	fmt.Fprintf(&b, ".\n\n| scenario | requests | %s | %s |\n|---|%s\n", strings.Join(t.Columns, " | "), heldColumn, strings.Repeat("---:|", len(t.Columns)+2))
	names := make([]string, 0, len(t.rows))
	for name := range t.rows {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.line(&b, name, name, t.rows[name])
	}
	t.line(&b, "together", "", requests)
	return b.String()
}

func (t *Table) line(b *strings.Builder, title, scenario string, requests int) {
	fmt.Fprintf(b, "| %s | %d |", title, requests)
	for _, how := range t.Columns {
		fmt.Fprintf(b, " %s |", cell(t.sum(scenario, how)))
	}
	fmt.Fprintf(b, " %d |\n", t.sum(scenario, "")[Held])
}

// preamble is what the page begins with.
const preamble = `# Perturbations

Written by ` + "`make perturb`" + `. Each request of quorate's is disturbed, one at a time and in each way, and the world must end as it does
undisturbed: the same objects but for UIDs and times, the same members, no member restarted more often, no invariant broken on the
way. A cell counts the runs that ended so; where one did not, it says of how many, and how many of these are held with a word on what
a person must do: the last column sums these up, and none counts as the same end. A run in which the request to disturb never came
counts for nothing. Writes are disturbed before client-go's fake, whose time runs faster, and before a real API server with its
controllers. A run of some scenarios, such as ` + "`go test ./test/perturb -run 'Write/^roll$' -args -all -write $PWD/docs/perturbations.md`" + `,
writes the lines of these and keeps the others.
`

// WriteTable writes a table as a section of the page. Scenarios that the table has not keep
// their lines.
func WriteTable(path, title string, t *Table) error {
	sections, err := read(path)
	if err != nil {
		return err
	}
	if i := index(sections, title); i > 0 {
		t.keep(sections[i])
	}
	return Write(path, title, t.String())
}

// keep takes over the lines of scenarios that the table has not.
func (t *Table) keep(section string) {
	for line := range strings.Lines(section) {
		fields := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(fields) != len(t.Columns)+3 || fields[0] == "together" {
			continue
		}
		requests, err := strconv.Atoi(fields[1])
		if _, played := t.rows[fields[0]]; played || err != nil {
			continue
		}
		t.Row(fields[0], requests)
		for i, how := range t.Columns {
			t.keepCell(fields[0], how, fields[i+2])
		}
	}
}

func (t *Table) keepCell(scenario, how, text string) {
	var same, tried, held int
	if n, _ := fmt.Sscanf(text, "**%d of %d, %d held**", &same, &tried, &held); n < 2 {
		same, _ = strconv.Atoi(text) // "–" is none
		tried = same
	}
	if t.cells == nil {
		t.cells = map[[2]string]*[4]int{}
	}
	t.cells[[2]string{scenario, how}] = &[4]int{Same: same, Held: held, Failed: tried - same - held}
}

func read(path string) (sections []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	return strings.Split(string(text), "\n## "), nil
}

// index is that of the section with the title; the first is the preamble.
func index(sections []string, title string) int {
	return slices.IndexFunc(sections, func(s string) bool { return strings.HasPrefix(s, title+"\n") })
}

// Write replaces a section of the page, or adds it.
func Write(path, title, body string) error {
	sections, err := read(path)
	if err != nil {
		return err
	}
	sections[0] = preamble
	next := title + "\n\n" + strings.TrimSpace(body) + "\n"
	if i := index(sections, title); i > 0 {
		sections[i] = next
	} else {
		sections = append(sections, next)
	}
	slices.Sort(sections[1:])
	if err := os.WriteFile(path, []byte(strings.Join(sections, "\n## ")), 0o600); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
