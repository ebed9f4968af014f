package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/explain"
	"github.com/quorate/quorate/schema/release"
)

// explainColumns is the width of an explanation on a terminal.
const explainColumns = 100

// newExplain explains holds.
func newExplain() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "explain [HOLD]",
		Short: "Explain what a hold means, and what to do",
		Long: `explain says what a hold means, why quorate holds, and what you can do. HOLD is the kind of a
hold (Refused, or HoldRefused as an Event has it), the rule that holds (window), the reason of
a condition (Orphaned), or the exit code of the guard in a member's pod (exit-3). Without one
it lists them all. It uses no network. docs/troubleshooting.md has all of it on one page.

Exit status: 0, or 1 if there is no such hold.`,
		Example: `  quorate explain window
  quorate explain Refused
  quorate explain -o markdown > holds.md`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return entryNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return printEntries(cmd.OutOrStdout(), explain.All(), output, true)
			}
			found := explain.Find(args[0])
			if len(found) == 0 {
				return unknownHold(args[0])
			}
			return printEntries(cmd.OutOrStdout(), found, output, false)
		},
	}
	cli.OutputFlag(cmd, &output, cli.Text, cli.Markdown)
	return cmd
}

func entryNames() []string {
	var names []string
	for _, e := range explain.All() {
		names = append(names, e.Name)
	}
	return names
}

func unknownHold(name string) error {
	if near := release.Nearest(name, entryNames()); near != "" {
		return fmt.Errorf("there is no hold, rule, reason or exit code %q, did you mean %s?", name, near)
	}
	return fmt.Errorf("there is no hold, rule, reason or exit code %q; quorate explain lists them", name)
}

// printEntries prints entries, or with list one line for each.
func printEntries(out io.Writer, entries []explain.Entry, output string, list bool) error {
	if output == cli.Text && list {
		w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
		fmt.Fprintln(w, "NAME\tIS A\tMEANS")
		for _, e := range entries {
			fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, e.Topic, cli.Brief(e.Means))
		}
		return w.Flush()
	}
	for i, e := range entries {
		text := e.Text(explainColumns)
		if output == cli.Markdown {
			text = e.Markdown()
		}
		if i > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}
