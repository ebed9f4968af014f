package needs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/checkout"
)

// skipAlone has the files and directories that may skip tests past package needs, and so without a failure where
// everything must run, and why.
var skipAlone = map[string]string{
	"cmd/quorate/gitea_server_test.go":           "make gitea runs it",
	"reconciler/backup/minio_test.go":            "make minio runs it",
	"reconciler/backup/privileges_other_test.go": "only Linux lets a thread be another user",
	"reconciler/backup/backuptest/s3.go":         "not every file system has extended attributes",
	"test/e2e/":                                  "some clusters are not the sandbox, and make test runs a selection of make e2e",
	"test/needs/needs.go":                        "all others call it",
}

// Where a target promises to run everything, a skipped test fails. So each one goes through package needs.
func TestTestsAreSkippedByNeedsAlone(t *testing.T) {
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	skips := map[string]bool{}
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && isOther(file):
			return filepath.SkipDir
		case filepath.Ext(file) != ".go":
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if name, err := filepath.Rel(root, file); err != nil || skipsAlone(parsed) {
			skips[filepath.ToSlash(name)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for name := range skips {
		dir, _ := path.Split(name)
		used[name], used[dir] = true, true
		if skipAlone[name] == "" && skipAlone[dir] == "" {
			t.Errorf("%s skips tests past package needs", name)
		}
	}
	for name := range skipAlone {
		if !used[name] {
			t.Errorf("%s skips no test any more: take it out of skipAlone", name)
		}
	}
}

// isOther reports whether a directory is another module, or none of Go's.
func isOther(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	name := filepath.Base(dir)
	return err == nil || name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")
}

// skipsAlone reports whether a file calls a method that skips a test.
func skipsAlone(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
			of, ok := s.X.(*ast.Ident)
			found = found || !ok || of.Name != "needs"
		}
		return true
	})
	return found
}
