package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// validateFlags are the flags of quorate validate.
type validateFlags struct {
	output string
	base   string
	color  string
	strict bool
}

// newValidate checks files and nothing else.
func newValidate() *cobra.Command {
	f := &validateFlags{}
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check files",
		Long: `validate checks every YAML file of the given files and directories, or of
standard input for -, and prints every problem with its file, line, column and
field. With --base it also checks what the files change, compared with another
revision of the Git repository that they lie in.

It ends with 0 when there is no error, and with 1 when there is one, or when
there is nothing to check. Warnings do not count, but with --strict.`,
		Example: `  quorate validate clusters/
  quorate validate --base origin/main clusters/
  quorate validate -o github clusters/       # annotations on the lines of a pull request
  quorate validate -o sarif clusters/ > quorate.sarif
  cat orders.yaml | quorate validate -`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), paths)
		},
	}
	outputFlag(cmd, &f.output, "text", "json", "github", "sarif")
	flags := cmd.Flags()
	flags.StringVar(&f.base, "base", "", "Git revision to compare with, for example origin/main")
	flags.BoolVar(&f.strict, "strict", false, "let warnings count as errors")
	choiceFlag(cmd, &f.color, "color", "when to colour text", "auto", "always", "never")
	return cmd
}

func (f *validateFlags) run(ctx context.Context, in io.Reader, out io.Writer, paths []string) error {
	if len(paths) == 0 {
		return errors.New("say which files or directories to check, such as clusters/, or - for standard input")
	}
	set, err := readInput(ctx, in, paths)
	if err != nil {
		return err
	}
	nothing := countDocuments(set) == 0
	if f.base != "" {
		before, err := sources.ReadRevision(ctx, paths, f.base, sources.Limits{})
		if err != nil {
			return err
		}
		set.Problems = append(set.Problems, schema.Compare(parse(before), set)...)
		schema.SortProblems(set.Problems)
		nothing = nothing && len(before.Files) == 0
	}
	if f.strict {
		for i := range set.Problems {
			set.Problems[i].Warning = false
		}
	}
	if err := printProblems(out, set, f.output, useColor(f.color, out)); err != nil {
		return err
	}
	if nothing {
		return fmt.Errorf("nothing of quorate's in %s (%s of others): give the directory that holds the files", listPaths(paths), plural(set.Ignored, "document"))
	}
	if _, failed := countProblems(set.Problems); failed > 0 {
		return exitError(1)
	}
	return nil
}

// readInput reads files and directories, or standard input for "-".
func readInput(ctx context.Context, in io.Reader, paths []string) (schema.Set, error) {
	if len(paths) != 1 || paths[0] != "-" {
		return readPaths(ctx, paths)
	}
	const most = 64 << 20
	data, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return schema.Set{}, fmt.Errorf("read standard input: %w", err)
	}
	return schema.Parse([]schema.File{{Path: "stdin.yaml", Data: data}}), nil
}

// countDocuments counts what is quorate's, good or bad.
func countDocuments(set schema.Set) int {
	return len(set.Clusters) + len(set.Backups) + len(set.Schedules) + len(set.Restores) + len(set.Held)
}

// summarize is "3 clusters, 1 schedule, 2 errors, 0 warnings".
func summarize(set schema.Set) string {
	text := plural(len(set.Clusters), "good cluster")
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
	problems, _ := countProblems(set.Problems)
	return text + ", " + problems
}

// printProblems prints what is wrong.
func printProblems(out io.Writer, set schema.Set, output string, color bool) error {
	switch output {
	case "json":
		return printJSON(out, set.Problems)
	case "sarif":
		return printSARIF(out, set.Problems)
	case "github":
		printAnnotations(out, set.Problems)
	default:
		for _, p := range set.Problems {
			_, _ = fmt.Fprintln(out, colored(p, color))
		}
	}
	_, err := fmt.Fprintln(out, summarize(set))
	return err
}
