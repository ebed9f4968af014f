package main

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	answers := filepath.Join(root, planDir, "clauses_test.go")
	if overlay[answers], err = withoutConstraint(answers, dir); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	listed := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(listed, list, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "plan.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+listed, "-o", binary, "./"+planDir)
	build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("compile the tests of the plan with mutants in it: %w", err)
	}
	return binary, nil
}

// withoutConstraint writes a copy of a file that is built without the tag mutants. To set the tag would replace the
// tags of GOFLAGS, with which everything else is compiled already, and compile it once more without them.
func withoutConstraint(path, dir string) (copied string, err error) {
	const constraint = "//go:build mutants\n"
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if !bytes.HasPrefix(text, []byte(constraint)) {
		return "", fmt.Errorf("%s does not begin with %s", path, strings.TrimSpace(constraint))
	}
	copied = filepath.Join(dir, filepath.Base(path))
	return copied, os.WriteFile(copied, bytes.Replace(text, []byte(constraint), []byte("\n"), 1), 0o600)
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
