package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	planDir = "reconciler/plan"
	toggle  = "github.com/quorate/quorate/test/mutants/toggle"
)

// mutateAll writes every rule and predicate of the planner, with all mutants in it, into
// dir, and says what replaces what.
func mutateAll(root, dir string) (overlay map[string]string, all []*mutant, err error) {
	overlay, names := map[string]string{}, map[string]int{}
	paths, err := sources(filepath.Join(root, planDir))
	if err != nil {
		return nil, nil, err
	}
	for i, path := range paths {
		pkg, err := filepath.Rel(filepath.Join(root, planDir), filepath.Dir(path))
		if err != nil {
			return nil, nil, err
		}
		text, err := mutate(path, pkg, &all, names)
		switch {
		case err != nil:
			return nil, nil, err
		case text == nil:
			continue
		}
		overlay[path] = filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(path)))
		if err := os.WriteFile(overlay[path], text, 0o600); err != nil {
			return nil, nil, err
		}
	}
	return overlay, all, nil
}

// compile compiles the tests of the plan with all mutants in it into one binary in dir.
func compile(root, dir string, overlay map[string]string) (binary string, err error) {
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	listed := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(listed, list, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "plan.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-tags=mutants", "-overlay="+listed, "-o", binary, "./"+planDir)
	build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("compile the tests of the plan with mutants in it: %w", err)
	}
	return binary, nil
}

// sources are the files of the packages that decide. Others are data, words and
// forecasts.
func sources(dir string) (paths []string, err error) {
	plain := []string{"testdata", "action", "decision", "outlook", "verdict"}
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(plain, e.Name()):
			return filepath.SkipDir
		case !e.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			paths = append(paths, path)
		}
		return nil
	})
	return paths, err
}

// kind is a sort of test, by what it needs.
type kind int

const (
	inTable kind = iota
	inScenario
	inRun
)

func (k kind) String() string { return []string{"table", "scenario", "run"}[k] }

// tests are the names of all tests of the plan, by their kind.
func tests(root string) (map[string]kind, error) {
	paths, err := filepath.Glob(filepath.Join(root, planDir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	all := map[string]kind{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				all[f.Name.Name] = kindOf(filepath.Base(path), f)
			}
		}
	}
	return all, nil
}

// kindOf goes by what a test uses: one that plays histories is a run, and one that reads
// files of testdata a scenario.
func kindOf(file string, f *ast.FuncDecl) kind {
	used := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			used[id.Name] = true
		}
		return true
	})
	switch {
	case used["rapid"] || used["newEngine"] || used["playDrawn"] || used["walkThrough"] || used["caught"]:
		return inRun
	case used["testdata"] || strings.HasPrefix(file, "scenario") || used["readArchive"]:
		return inScenario
	}
	return inTable
}
