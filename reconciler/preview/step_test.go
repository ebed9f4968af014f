package preview

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
)

// The page of the JSON of a plan names each field, each kind of step and each other word,
// and nothing else.
func TestThePageOfThePlan338IsWhatTheProgramHas(t *testing.T) {
	page, err := os.ReadFile("../../docs/plan-json.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = true
	}
	fields := map[string]bool{}
	fieldsOf(reflect.TypeFor[Report](), "", fields)
	compareWords(t, "fields", rows, fields)
	for begin, words := range map[string]map[string]bool{
		"Changes: ":        constants(t, "report.go", "Change"),
		"Kinds of hold: ":  constants(t, "../plan/decision/*.go", "HoldKind"),
		"Reversibility: ":  constants(t, "step.go", "Reversibility"),
		"Kinds of steps: ": kindsOfActions(t),
	} {
		_, paragraph, found := strings.Cut(string(page), "\n"+begin)
		paragraph, _, _ = strings.Cut(paragraph, "\n\n")
		if !found {
			t.Errorf("no paragraph %q", begin)
		}
		named := map[string]bool{}
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(paragraph, -1) {
			named[word[1]] = true
		}
		compareWords(t, begin, named, words)
	}
}

func compareWords(t *testing.T, what string, page, program map[string]bool) {
	t.Helper()
	named, there := slices.Sorted(maps.Keys(page)), slices.Sorted(maps.Keys(program))
	if !slices.Equal(named, there) || len(there) == 0 {
		t.Errorf("%s\nthe page has    %q\nthe program has %q", what, named, there)
	}
}

// fieldsOf gathers the paths of the JSON of a type.
func fieldsOf(typ reflect.Type, path string, all map[string]bool) {
	for i := range typ.NumField() {
		tag, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if tag == "" || tag == "-" {
			continue
		}
		at, inner := path+tag, typ.Field(i).Type
		all[at] = true
		if inner.Kind() == reflect.Slice {
			at, inner = at+"[]", inner.Elem()
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			fieldsOf(inner, at+".", all)
		}
	}
}

// constants are the values of the constants of a type, by the source.
func constants(t *testing.T, pattern, typ string) map[string]bool {
	t.Helper()
	values := map[string]bool{}
	inspect(t, pattern, func(node ast.Node) {
		if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typ {
				values[literal(t, spec.Values[0])] = true
			}
		}
	})
	return values
}

// kindsOfActions are what the methods Kind of package action return, by the source.
func kindsOfActions(t *testing.T) map[string]bool {
	t.Helper()
	kinds := map[string]bool{}
	inspect(t, "../plan/action/*.go", func(node ast.Node) {
		if method, ok := node.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.Name == "Kind" {
			kinds[literal(t, method.Body.List[0].(*ast.ReturnStmt).Results[0])] = true
		}
	})
	return kinds
}

func inspect(t *testing.T, pattern string, look func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool { look(node); return true })
	}
}

func literal(t *testing.T, e ast.Expr) string {
	t.Helper()
	basic, ok := e.(*ast.BasicLit)
	if !ok {
		t.Fatalf("%T is no literal", e)
	}
	value, err := strconv.Unquote(basic.Value)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// The types of a step say what its words say.
func TestStepsHaveTypes338(t *testing.T) {
	for _, c := range []struct {
		action   action.Action
		undo     action.UndoKind
		member   string
		from, to string
		want     Reversibility
	}{
		{action.RestartMember{Member: "orders-2", From: "3.5.35", To: "3.6.16"}, action.UndoUntil, "orders-2", "3.5.35", "3.6.16", ReversibleUntil},
		{action.StartRoll{From: "3.5.35", To: "3.6.16"}, action.UndoAnytime, "", "3.5.35", "3.6.16", ReversibleAnytime},
		{action.MoveLeader{From: "orders-1", To: "orders-2"}, action.UndoNothing, "", "orders-1", "orders-2", ReversibleNothing},
		{action.TakeBackup{Member: "orders-0", For: "3.6.16"}, action.UndoNothing, "orders-0", "", "", ReversibleNothing},
		{action.ResizeSet{From: 5, To: 3}, action.UndoFinal, "", "5", "3", ReversibleNever},
		{action.GrowVolume{Member: "orders-1", From: 1 << 30, To: 2 << 30}, action.UndoFinal, "orders-1", "1073741824", "2147483648", ReversibleNever},
		{action.ClaimCluster{From: state.Owner{Source: "a", Instance: "i", Claim: 1}, To: state.Owner{Source: "b", Instance: "i", Claim: 2}}, action.UndoUnknown, "", "a#i/1", "b#i/2", ReversibleUnknown},
		{action.EnableDowngrade{Member: "orders-0", From: "3.6.16", To: "3.5.35"}, action.UndoByDowngrade, "orders-0", "3.6.16", "3.5.35", ReversibleByDowngrade},
		{action.EndRoll{}, action.UndoNothing, "", "", "", ReversibleNothing},
	} {
		s := newStepReport(decision.Step{Action: c.action, Undo: action.Undo{Kind: c.undo}}, state.Desired{})
		if s.Kind != c.action.Kind() || s.Member != c.member || s.From != c.from || s.To != c.to || s.Reversibility != c.want {
			t.Errorf("%s: %+v", c.action, s)
		}
	}
}

// A plan of files has them, too.
func TestAnOfflinePlan338HasTypes(t *testing.T) {
	before := desiredtest.Parse(map[string]string{"orders.yaml": desiredtest.ClusterFile("orders", "3.5.35")})
	after := desiredtest.Parse(map[string]string{"orders.yaml": desiredtest.ClusterFile("orders", "3.6.16")})
	r, err := Offline(Revision{Set: before}, Revision{Set: after}, offlineOptions())
	if err != nil {
		t.Fatal(err)
	}
	var restarts []string
	for _, s := range r.Clusters[0].Steps {
		if s.Kind == "RestartMember" {
			restarts = append(restarts, s.Member+" "+s.From+" "+s.To+" "+string(s.Reversibility))
		}
	}
	want := []string{"orders-2 3.5.35 3.6.16 until-last-member", "orders-1 3.5.35 3.6.16 until-last-member", "orders-0 3.5.35 3.6.16 by-downgrade"}
	if !slices.Equal(restarts, want) {
		t.Errorf("got %q, want %q", restarts, want)
	}
}
