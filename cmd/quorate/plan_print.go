package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/preview"
)

// planOutput is how a plan is printed.
type planOutput struct {
	format   string
	markdown preview.MarkdownOptions
	dir      string
}

func (o *planOutput) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.OutputFlag(cmd, &o.format, cli.Text, cli.JSON, cli.Markdown)
	flags.StringVar(&o.markdown.Marker, "marker", "quorate-plan", "with -o markdown: name in the first line of each part; one for each plan of a pull request")
	flags.IntVar(&o.markdown.Limit, "limit", 60000, "with -o markdown: largest size of a part in bytes")
	flags.StringVar(&o.dir, "output-dir", "", "with -o markdown: directory to write plan-1.md, plan-2.md … to; parts of an earlier run are removed; default standard output")
}

// check rejects flags before any work is done.
func (o *planOutput) check() error {
	switch {
	case o.dir != "" && o.format != cli.Markdown:
		return errors.New("--output-dir is for -o markdown: add it, or leave the directory out")
	case o.markdown.Limit < preview.LeastLimit:
		return fmt.Errorf("--limit is %d: give at least %d bytes", o.markdown.Limit, preview.LeastLimit)
	case !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$`).MatchString(o.markdown.Marker):
		return fmt.Errorf("--marker is %q: give up to 63 letters, digits, dashes, dots and slashes", o.markdown.Marker)
	}
	return nil
}

// print prints the report, and returns the exit status.
func (o *planOutput) print(out io.Writer, report *preview.Report) error {
	var err error
	switch {
	case o.format == cli.JSON:
		err = cli.PrintJSON(out, report)
	case o.dir != "":
		err = o.write(report.Markdown(o.markdown))
		_, _ = fmt.Fprintln(out, report.Summary.Line())
	case o.format == cli.Markdown:
		_, err = io.WriteString(out, strings.Join(report.Markdown(o.markdown), "\n"))
	default:
		_, err = io.WriteString(out, report.Text())
	}
	if err != nil {
		return err
	}
	return planStatus(report)
}

// planStatus is the exit status: 1 for bad files, 2 for changes, 0 for nothing.
// Objects that are not clusters have no steps, so they count offline only.
func planStatus(report *preview.Report) error {
	s := report.Summary
	switch {
	case s.Errors > 0:
		return cli.ExitError(1)
	case s.Changing > 0, report.Offline && s.Others > 0:
		return cli.ExitError(2)
	}
	return nil
}

// write writes one file per part, and removes the surplus parts of an earlier run. A file
// that does not begin with the part's marker is not quorate's: it is neither overwritten
// nor removed.
func (o *planOutput) write(parts []string) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return fmt.Errorf("make --output-dir: %w", err)
	}
	for i, part := range parts {
		path, state, err := o.part(i + 1)
		switch {
		case err != nil:
			return err
		case state == partForeign:
			return fmt.Errorf("write %s: it exists and does not begin with %s; give each --marker its own --output-dir", path, o.markdown.Mark(i+1))
		}
		if err := os.WriteFile(path, []byte(part), 0o644); err != nil {
			return fmt.Errorf("write a part of the plan: %w", err)
		}
	}
	return o.removeStale(len(parts) + 1)
}

// removeStale removes our parts from the first that was not written now.
func (o *planOutput) removeStale(n int) error {
	for ; ; n++ {
		path, state, err := o.part(n)
		if err != nil || state != partOurs {
			return err
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove a part of an earlier plan: %w", err)
		}
	}
}

// partState returns what exists under the name of a part.
type partState int

const (
	partMissing partState = iota
	partOurs
	partForeign
)

// part is the path of a part, counted from 1, and what is there now.
func (o *planOutput) part(n int) (string, partState, error) {
	path := filepath.Join(o.dir, fmt.Sprintf("plan-%d.md", n))
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return path, partMissing, nil
	case err != nil:
		return path, partMissing, fmt.Errorf("read a part of an earlier plan: %w", err)
	case strings.HasPrefix(string(text), o.markdown.Mark(n)+"\n"):
		return path, partOurs, nil
	}
	return path, partForeign, nil
}
