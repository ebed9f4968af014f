package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	texts "github.com/quorate/quorate/reconciler/explain"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
)

// 235: who is held can look up what that means: each rule and each kind of hold has its
// entry, in their order, and there is none of a rule that is no more.
func TestEveryHoldIsExplained(t *testing.T) {
	want := map[texts.Topic][]string{texts.Kind: holdKinds(t)}
	for _, r := range table() {
		want[texts.Rule] = append(want[texts.Rule], r.name)
	}
	observed := decision.Plan{Steps: []decision.Step{{}}}
	observed.Steps[0].Action = action.EndRoll{}
	want[texts.Rule] = append(want[texts.Rule], observed.ObserveOnly().Hold.Rule)
	got := map[texts.Topic][]string{}
	for _, e := range texts.All() {
		got[e.Topic] = append(got[e.Topic], e.Name)
	}
	for topic, names := range want {
		if !slices.Equal(got[topic], names) {
			t.Errorf("explained of %s are %q, want %q", topic, got[topic], names)
		}
	}
}

// holdKinds are the constants of type HoldKind, by the source.
func holdKinds(t *testing.T) (kinds []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "decision/decision.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Type != nil {
			if of, ok := v.Type.(*ast.Ident); ok && of.Name == "HoldKind" {
				literal, _ := v.Values[0].(*ast.BasicLit)
				kinds = append(kinds, strings.Trim(literal.Value, `"`))
			}
		}
		return true
	})
	if len(kinds) == 0 {
		t.Fatal("no kind is found")
	}
	return kinds
}

// What other packages do by the name of a rule, they do by a name that there is.
func TestRulesThatOthersNameExist(t *testing.T) {
	for _, name := range []string{decision.RuleRecovery, "owner"} {
		if !slices.ContainsFunc(table(), func(r rule) bool { return r.name == name }) {
			t.Errorf("there is no rule %q", name)
		}
	}
}
