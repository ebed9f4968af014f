// Package docs is quorate docs: the pages of the documentation that are in the binary, its man
// pages, and the reference of the command line.
package docs

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	pages "github.com/quorate/quorate/docs"
	"github.com/quorate/quorate/schema/release"
)

// index is the page that lists the others.
const index = "README"

// Build is what a man page says of the binary that wrote it.
type Build struct {
	// Version is the release.
	Version string
	// Time is that of the commit, in RFC 3339; empty where it is not known. Two builds of one
	// commit write the same pages.
	Time string
}

// Command is quorate docs.
func Command(build Build) *cobra.Command {
	man := ""
	cmd := &cobra.Command{
		Use:   "docs [PAGE]",
		Short: "Print the documentation of this release",
		Long: `docs lists the pages of the documentation, each with its first sentence, or prints one of them
in Markdown. The pages are in the binary and describe this release; docs uses no network.

With --man it writes a man page of each command into a directory instead. The directory is
created if needed, and man pages of the same names in it are overwritten.

Exit status: 0, or 1 if there is no such page.`,
		Example: `  quorate docs
  quorate docs troubleshooting | less
  quorate docs --man /usr/local/share/man/man1`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			all, _ := pages.Pages() // nothing is completed then
			return names(all), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if man != "" {
				return writeMan(cmd.Root(), man, build)
			}
			all, err := pages.Pages()
			if err != nil {
				return fmt.Errorf("read the pages in this binary: %w", err)
			}
			if len(args) == 0 {
				return list(cmd.OutOrStdout(), all)
			}
			return show(cmd.OutOrStdout(), all, args[0])
		},
	}
	cmd.Flags().StringVar(&man, "man", "", "write the man pages of all commands into this directory")
	return cmd
}

// list prints a line for each page.
func list(out io.Writer, all []pages.Page) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "PAGE\tSAYS")
	for _, p := range all {
		if p.Name != index {
			fmt.Fprintf(w, "%s\t%s\n", p.Name, p.Says())
		}
	}
	return w.Flush()
}

// show prints a page. Its name may be written as in a link: docs/alerts.md.
func show(out io.Writer, all []pages.Page, name string) error {
	short := strings.TrimSuffix(strings.TrimPrefix(name, "docs/"), ".md")
	for _, p := range all {
		if strings.EqualFold(p.Name, short) {
			_, err := io.WriteString(out, p.Text)
			return err
		}
	}
	if near := release.Nearest(short, names(all)); near != "" {
		return fmt.Errorf("there is no page %q, did you mean %s?", name, near)
	}
	return fmt.Errorf("there is no page %q; quorate docs lists them", name)
}

func names(all []pages.Page) []string {
	var found []string
	for _, p := range all {
		found = append(found, p.Name)
	}
	return found
}

// date is the day of the commit; "" where that is not known.
func (b Build) date() string {
	at, err := time.Parse(time.RFC3339, b.Time)
	if err != nil {
		return ""
	}
	return at.UTC().Format(time.DateOnly)
}
