package reconciler_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limits of what one reader keeps in mind. What asks the most questions is the
// planner's Situation, which never grows: a new question goes where it is asked.
const (
	maxLines     = 3050
	maxMethods   = 60
	maxSituation = 170
)

// Each package below reconciler can be read in one sitting, and no type is all of it.
func TestNoPackageAndNoTypeGrowsTooLarge(t *testing.T) {
	lines, methods := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		lines[dir] += bytes.Count(text, []byte("\n"))
		if strings.HasSuffix(dir, "test") {
			return nil // the world of the tests has many hands
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[dir+" "+receiver(f.Recv.List[0].Type)]++
			}
		}
		return nil
	})
	if err != nil || len(lines) < 20 {
		t.Fatalf("%d packages, %v", len(lines), err)
	}
	for dir, n := range lines {
		if n > maxLines {
			t.Errorf("package %s has %d lines, and no more than %d are allowed: divide it", dir, n, maxLines)
		}
	}
	for name, n := range methods {
		most := maxMethods
		if name == "plan/situation Situation" {
			most = maxSituation
		}
		if n > most {
			t.Errorf("%s has %d methods, and no more than %d are allowed", name, n, most)
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}
