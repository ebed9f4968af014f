package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/schema"
)

// validateFlags are the flags of quorate validate.
type validateFlags struct {
	output string
	base   string
	ignore string
	color  string
	strict bool
	bounds boundsFlags
	// compare is set where there is a --base, be it an empty one.
	compare bool
}

// newValidate checks files and nothing else.
func newValidate() *cobra.Command {
	f := &validateFlags{}
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check files",
		Long: `validate checks every YAML file of the given files and directories, or of
standard input for -, and prints every problem with its file, line, column and
field. Symbolic links and other Git repositories in a directory are named and
not followed.

With --base it also checks what the files change, compared with another revision
of the Git repository that they lie in: a branch, a tag or a commit, with ~N for
an earlier one. What another branch has done since is shown as reverted;
$(git merge-base origin/main HEAD) is where this one began.

With -o json the output is a list of problems, [] where there are none. Each has
file, line and column from 1 (0 or missing where they are not known), id, message,
warning, and as far as they are known object and field.

--ignore-file accepts warnings: each line has an ID, as in brackets behind a warning, a
file (or directory/, or a pattern such as clusters/*.yaml, or * for all) and the reason.
Errors, and the warnings about a change that --base shows, are never ignored.
docs/problems.md lists all IDs.

Exit status: 0 when there is no error, 1 when there is one, or when there is
nothing to check. Warnings count as errors only with --strict.`,
		Example: `  quorate validate clusters/
  quorate validate --base origin/main clusters/
  quorate validate -o github clusters/       # annotations on the lines of a pull request
  quorate validate -o sarif clusters/ > quorate.sarif
  cat orders.yaml | quorate validate -`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			f.compare = cmd.Flags().Changed("base")
			return f.run(cmd, paths)
		},
	}
	cli.OutputFlag(cmd, &f.output, cli.Text, cli.JSON, cli.GitHub, cli.SARIF)
	f.bounds.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.base, "base", "", "Git revision to compare with, for example origin/main")
	flags.StringVar(&f.ignore, "ignore-file", "", "file with warnings that are accepted: ID, file and reason, one a line")
	flags.BoolVar(&f.strict, "strict", false, "treat warnings as errors")
	cli.ChoiceFlag(cmd, &f.color, "color", "when to colour text", "auto", "always", "never")
	return cmd
}

func (f *validateFlags) run(cmd *cobra.Command, paths []string) error {
	in, err := f.read(cmd.Context(), cmd.InOrStdin(), paths)
	if err != nil {
		return err
	}
	problems, accepted, err := f.accept(cmd.ErrOrStderr(), in.check())
	if err != nil {
		return err
	}
	if f.strict {
		for i := range problems {
			problems[i].Warning = false
		}
	}
	for _, skipped := range in.skipped {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "quorate: not read:", cli.Shown(skipped))
	}
	out := cmd.OutOrStdout()
	if err := f.print(out, in.set, problems, accepted); err != nil {
		return err
	}
	if in.isEmpty() {
		return fmt.Errorf("no quorate documents in %s (%s of other kinds ignored): give the directory that holds the files", listPaths(paths), plural(in.set.Ignored, "document"))
	}
	if _, failed := countProblems(problems); failed > 0 {
		return cli.ExitError(1)
	}
	return nil
}

// accept takes out what the ignore file accepts, and tells of its lines that accept
// nothing any more.
func (f *validateFlags) accept(errs io.Writer, problems []schema.Problem) ([]schema.Problem, []acceptedProblem, error) {
	if f.ignore == "" {
		return problems, nil, nil
	}
	lines, err := readIgnored(f.ignore)
	if err != nil {
		return nil, nil, err
	}
	left, accepted := sortOut(problems, lines)
	for _, g := range lines {
		if !g.used {
			_, _ = fmt.Fprintf(errs, "quorate: %s:%d: %s of %s is found nowhere: remove the line\n", f.ignore, g.line, g.id, g.pattern)
		}
	}
	return left, accepted, nil
}

// print prints what is wrong.
func (f *validateFlags) print(out io.Writer, set schema.Set, problems []schema.Problem, accepted []acceptedProblem) error {
	switch f.output {
	case cli.JSON:
		// An empty list is [], not null.
		return cli.PrintJSON(out, append([]schema.Problem{}, problems...))
	case cli.SARIF:
		return printSARIF(out, relative(problems), accepted)
	case cli.GitHub:
		printAnnotations(out, relative(problems))
	default:
		for _, p := range problems {
			if _, err := fmt.Fprintln(out, colored(p, useColor(f.color, out))); err != nil {
				return err
			}
		}
	}
	summary := summarize(set, problems)
	if len(accepted) > 0 {
		summary += fmt.Sprintf(", %d ignored", len(accepted))
	}
	_, err := fmt.Fprintln(out, summary)
	return err
}

// usage is what is wrong with the command line, as far as cobra does not know.
func (f *validateFlags) usage(paths []string) error {
	stdin := 0
	for _, path := range paths {
		if path == "-" {
			stdin++
		}
	}
	switch {
	case len(paths) == 0:
		return errors.New("specify files or directories to check, such as clusters/, or - for standard input")
	case stdin > 0 && len(paths) > 1:
		return errors.New("- is standard input and cannot be checked together with files: check one, then the other")
	case f.compare && stdin > 0:
		return errors.New("--base compares files with what Git has of them, and - is none: give the path of the file")
	case f.compare && f.base == "":
		return errors.New("--base is empty: give a Git revision, such as --base origin/main, or leave it out")
	}
	return nil
}
