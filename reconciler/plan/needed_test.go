package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// Each rule is needed: some scenario is decided by it, and is planned otherwise
// once it is taken out of the table. A rule that no scenario misses is either
// superfluous or guarded by nothing.
func TestEveryRuleDecidesAScenario(t *testing.T) {
	decided := map[string][]situation.Situation{}
	paths, _ := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txtar"))
	for _, path := range paths {
		a := readArchive(t, path)
		d, o := a.desired(t), state.Observed{Auth: &state.Auth{}}
		a.observe(t, d, &o)
		name := decidedBy(situation.Of(d, o, noon))
		decided[name] = append(decided[name], situation.Situation{Git: d, Observed: o})
	}
	for _, r := range table() {
		missed := slices.ContainsFunc(decided[r.name], func(s situation.Situation) bool {
			return planned(without(r.name), &s) != planned(table(), &s)
		})
		if !missed {
			t.Errorf("no scenario of %d that the rule %s decides is planned otherwise without it", len(decided[r.name]), r.name)
		}
	}
}

// decidedBy is the name of the first rule that has something to say.
func decidedBy(s *situation.Situation) string {
	for _, r := range table() {
		if !r.eval(s).Silent() {
			return r.name
		}
	}
	return ""
}

// planned is the plan that some rules make, in words. Rules rest on those above
// them, so that a table that lacks one may crash.
func planned(rules []rule, s *situation.Situation) (text string) {
	defer func() {
		if reason := recover(); reason != nil {
			text = fmt.Sprintf("crash: %v", reason)
		}
	}()
	p := makeWith(rules, s.Git, s.Observed, noon)
	return strings.TrimSpace(p.Text())
}
