package plan

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// guarantees is the page with the rules and the invariants.
const guarantees = "../../docs/guarantees.md"

// The safety table of docs/guarantees.md names every rule in its order, and links to the
// table test that holds it.
func TestTheGuaranteesNameEveryRule(t *testing.T) {
	page, err := os.ReadFile(guarantees)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| .* \\| \\[\\w+\\.go\\]\\((\\S+)\\) \\| I").FindAllStringSubmatch(string(page), -1)
	rules := table()
	if len(rows) != len(rules) {
		t.Fatalf("%d rows for %d rules", len(rows), len(rules))
	}
	for i, r := range rules {
		name, path := rows[i][1], rows[i][2]
		if name != r.name {
			t.Errorf("row %d is about %s, and the rule is %s", i+1, name, r.name)
		}
		test, err := os.ReadFile(filepath.Join(filepath.Dir(guarantees), path))
		if err != nil || !strings.Contains(string(test), "checkRule(t, "+calledHere(r)+",") {
			t.Errorf("%s: %s holds no table of that rule (%v)", name, path, err)
		}
	}
}

// calledHere is what a test calls the function of a rule, such as volumes.Enlarge.
func calledHere(r rule) string {
	_, name, _ := strings.Cut(runtime.FuncForPC(reflect.ValueOf(r.eval).Pointer()).Name(), "reconciler/plan")
	return strings.TrimLeft(name, "./")
}

// It says of every invariant what doc.go says, and whether the simulation
// judges it.
func TestTheGuaranteesNameEveryInvariant(t *testing.T) {
	page, err := os.ReadFile(guarantees)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| I(\d+) \| (.*) \| (.*) \| .* \|$`).FindAllStringSubmatch(string(page), -1)
	texts := invariantTexts()
	if len(rows) != len(texts) {
		t.Errorf("%d rows for %d invariants", len(rows), len(texts))
	}
	for _, row := range rows {
		n, _ := strconv.Atoi(row[1])
		_, other := elsewhere[n]
		if row[2] != texts[n] || strings.HasPrefix(row[3], "–") != other {
			t.Errorf("I%d is %q, judged elsewhere: %t; the page says %q, %q", n, texts[n], other, row[2], row[3])
		}
	}
}
