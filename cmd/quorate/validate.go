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
	color  string
	strict bool
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
file, line and column from 1 (0 or missing where they are not known), message,
warning, and as far as they are known object and field.

It ends with 0 when there is no error, and with 1 when there is one, or when
there is nothing to check. Warnings count as errors only with --strict.`,
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
	flags := cmd.Flags()
	flags.StringVar(&f.base, "base", "", "Git revision to compare with, for example origin/main")
	flags.BoolVar(&f.strict, "strict", false, "treat warnings as errors")
	cli.ChoiceFlag(cmd, &f.color, "color", "when to colour text", "auto", "always", "never")
	return cmd
}

func (f *validateFlags) run(cmd *cobra.Command, paths []string) error {
	in, err := f.read(cmd.Context(), cmd.InOrStdin(), paths)
	if err != nil {
		return err
	}
	problems := in.check()
	if f.strict {
		for i := range problems {
			problems[i].Warning = false
		}
	}
	for _, skipped := range in.skipped {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "quorate: not read:", skipped)
	}
	out := cmd.OutOrStdout()
	if err := f.print(out, in.set, problems); err != nil {
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

// print prints what is wrong.
func (f *validateFlags) print(out io.Writer, set schema.Set, problems []schema.Problem) error {
	switch f.output {
	case cli.JSON:
		// An empty list is [], not null.
		return cli.PrintJSON(out, append([]schema.Problem{}, problems...))
	case cli.SARIF:
		return printSARIF(out, relative(problems))
	case cli.GitHub:
		printAnnotations(out, relative(problems))
	default:
		for _, p := range problems {
			if _, err := fmt.Fprintln(out, colored(p, useColor(f.color, out))); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintln(out, summarize(set, problems))
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
