package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// kind is a sort of test, by what it does. Mutants are tried by tests in this order.
type kind int

const (
	// inTable is a test that names its cases in Go, and inScenario one that reads them from testdata.
	inTable kind = iota
	inScenario
	// inRun is a test that plays a run which it names, and inHistories one that draws histories at random.
	inRun
	inHistories
)

func (k kind) String() string { return []string{"table", "scenario", "run", "histories"}[k] }

// marksOf are what a test of a kind uses, by itself or by a function that it calls: names as usedBy has them.
func marksOf(k kind) []string {
	switch k {
	case inScenario:
		return []string{`"testdata"`, "readArchive"}
	case inRun:
		return []string{"walkThrough", "passOf", ".carryOut", ".pass", ".play", ".tried", ".explore"}
	case inHistories:
		return []string{"rand.New", "rapid.Check"}
	case inTable:
	}
	return nil
}

// tests are the names of all tests of the plan, by their kind.
func tests(root string) (map[string]kind, error) {
	paths, err := filepath.Glob(filepath.Join(root, planDir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	all, uses, files := map[string]kind{}, map[string][]string{}, map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Body != nil {
				uses[f.Name.Name], files[f.Name.Name] = usedBy(f), filepath.Base(path)
			}
		}
	}
	for name := range uses {
		if strings.HasPrefix(name, "Test") && name != "TestMain" {
			all[name] = kindOf(name, files[name], uses)
		}
	}
	return all, nil
}

// usedBy are the names that a function uses: those that are selected with a dot before them and, where they are
// selected from a name, with that before the dot; texts with their quotes.
func usedBy(f *ast.FuncDecl) (names []string) {
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			names = append(names, n.Name)
		case *ast.BasicLit:
			names = append(names, n.Value)
		case *ast.KeyValueExpr: // the key is mostly a field
			ast.Inspect(n.Value, visit)
			return false
		case *ast.SelectorExpr:
			names = append(names, "."+n.Sel.Name)
			if of, ok := n.X.(*ast.Ident); ok {
				names = append(names, of.Name+"."+n.Sel.Name)
			}
			ast.Inspect(n.X, visit)
			return false
		}
		return true
	}
	ast.Inspect(f.Body, visit)
	return names
}

// kindOf is the last of the kinds whose marks a test has, by itself or by the functions that it calls.
func kindOf(test, file string, uses map[string][]string) kind {
	reached, queue := map[string]bool{test: true}, []string{test}
	for len(queue) > 0 {
		names := uses[queue[0]]
		queue = queue[1:]
		for _, name := range names {
			if !reached[name] {
				reached[name] = true
				queue = append(queue, name)
			}
		}
	}
	has := func(name string) bool { return reached[name] }
	for _, k := range []kind{inHistories, inRun, inScenario} {
		if slices.ContainsFunc(marksOf(k), has) || k == inScenario && strings.HasPrefix(file, "scenario") {
			return k
		}
	}
	return inTable
}
