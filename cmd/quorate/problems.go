package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// input is what validate checks.
type input struct {
	set schema.Set
	// before is what was there; nil where nothing is compared.
	before *schema.Set
	// skipped are the files that were not read, with the reason.
	skipped []string
}

// read reads files and directories, or standard input for "-", and with --base
// what a revision has in the same places.
func (f *validateFlags) read(ctx context.Context, stdin io.Reader, paths []string) (input, error) {
	if err := f.usage(paths); err != nil {
		return input{}, err
	}
	parser, err := f.bounds.parser()
	if err != nil {
		return input{}, err
	}
	if paths[0] == "-" {
		return readStdin(parser, stdin)
	}
	var in input
	if f.compare {
		base, err := sources.ReadRevision(ctx, paths, f.base, sources.Limits{})
		if err != nil {
			return input{}, err
		}
		before := follow.Parse(parser, base)
		in.before, paths = &before, present(paths, base)
	}
	s, err := sources.ReadPaths(ctx, paths, sources.Limits{})
	if err != nil {
		return input{}, err
	}
	in.set, in.skipped = follow.Parse(parser, s), s.Skipped
	return in, nil
}

// readStdin reads one file from standard input.
func readStdin(parser *schema.Parser, stdin io.Reader) (input, error) {
	const most = 1 << 20 // what a file may have
	data, err := io.ReadAll(io.LimitReader(stdin, most+1))
	if err != nil {
		return input{}, fmt.Errorf("read standard input: %w", err)
	}
	if len(data) > most {
		return input{}, fmt.Errorf("standard input has more than %d bytes, the most that a file may have: give it in parts, or the paths of files", most)
	}
	return input{set: parser.Parse([]schema.File{{Path: "stdin.yaml", Data: data}})}, nil
}

// present are the paths without those that the change removes: they are on disk
// no more, and the base has files there.
func present(paths []string, base sources.Snapshot) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		clean := filepath.ToSlash(filepath.Clean(path))
		return slices.ContainsFunc(base.Files, func(f sources.File) bool {
			return f.Path == clean || strings.HasPrefix(f.Path, clean+"/")
		})
	})
}

// check is everything that is wrong with the files, and with what they change.
func (in input) check() []schema.Problem {
	problems := slices.Clone(in.set.Problems)
	if in.before != nil {
		problems = append(problems, schema.Compare(*in.before, in.set)...)
		schema.SortProblems(problems)
	}
	return problems
}

// isEmpty reports whether there is nothing to check: a wrong path in a CI system must not
// pass for success. Removing everything counts as a change.
func (in input) isEmpty() bool {
	return countDocuments(in.set) == 0 && (in.before == nil || countDocuments(*in.before) == 0)
}

// countDocuments counts what is quorate's, good or bad.
func countDocuments(set schema.Set) int {
	return len(set.Clusters) + len(set.Backups) + len(set.Schedules) + len(set.Restores) + len(set.Held)
}

// summarize is "3 valid clusters, 1 schedule, 2 errors, 0 warnings".
func summarize(set schema.Set, problems []schema.Problem) string {
	text := plural(len(set.Clusters), "valid cluster")
	for _, kind := range []struct {
		n    int
		noun string
	}{
		{len(set.Backups), "backup"},
		{len(set.Schedules), "schedule"},
		{len(set.Restores), "restore"},
	} {
		if kind.n > 0 {
			text += ", " + plural(kind.n, kind.noun)
		}
	}
	counts, _ := countProblems(problems)
	return text + ", " + counts
}

// relative names files from the directory that quorate runs in, where they lie
// below it: code hosts know files by their place in the repository.
func relative(problems []schema.Problem) []schema.Problem {
	here, err := os.Getwd()
	if err != nil {
		return problems
	}
	problems = slices.Clone(problems)
	for i, p := range problems {
		if rel, err := filepath.Rel(here, p.File); err == nil && filepath.IsAbs(p.File) && filepath.IsLocal(rel) {
			problems[i].File = filepath.ToSlash(rel)
		}
	}
	return problems
}
