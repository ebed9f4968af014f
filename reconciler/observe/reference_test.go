package observe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// 5: the reference marks the fields that the planner refuses to change, and no others.
func TestTheReferenceMarksWhatIsImmutable(t *testing.T) {
	page, err := os.ReadFile("../../schema/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	var marked []string
	for _, row := range regexp.MustCompile("(?m)^\\| \\**`(spec[^`]*)`\\** \\|[^|\n]*\\|[^|\n]*\\| ([^|\n]+) \\|").FindAllStringSubmatch(string(page), -1) {
		if strings.TrimSpace(row[2]) != "" {
			marked = append(marked, row[1])
		}
	}
	source, err := parser.ParseFile(token.NewFileSet(), "../state/observed.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	ast.Inspect(source, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Field") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			// A flag of the daemon stands in no file.
			if strings.HasPrefix(value, "spec.") {
				refused = append(refused, strings.TrimSuffix(value, "[0]"))
			}
		}
		return true
	})
	slices.Sort(marked)
	slices.Sort(refused)
	if !slices.Equal(marked, refused) || len(marked) == 0 {
		t.Errorf("the reference marks  %q\nthe planner refuses   %q", marked, refused)
	}
}
