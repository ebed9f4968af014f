package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/schema"
)

// newValidate checks files and nothing else.
func newValidate() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check files",
		Long: `validate checks every YAML file of the given files and directories, and prints
every problem with its file, line and field. It ends with 0 when there is no
error, and with 1 when there is one. Warnings do not count.`,
		Example: "  quorate validate clusters/\n  quorate validate -o json clusters/orders.yaml",
		RunE: func(cmd *cobra.Command, paths []string) error {
			if len(paths) == 0 {
				return errors.New("say which files or directories to check")
			}
			if err := checkOutput(output); err != nil {
				return err
			}
			set, err := readPaths(cmd.Context(), paths)
			if err != nil {
				return err
			}
			return printProblems(cmd.OutOrStdout(), set, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// checkOutput refuses an output format before any work is done.
func checkOutput(output string) error {
	if output != "text" && output != "json" {
		return fmt.Errorf("--output is text or json, not %q", output)
	}
	return nil
}

// printProblems prints what is wrong, and returns an exit status of 1 where
// anything is.
func printProblems(out io.Writer, set schema.Set, output string) error {
	summary, failed := countProblems(set.Problems)
	switch output {
	case "json":
		if err := printJSON(out, set.Problems); err != nil {
			return err
		}
	case "text":
		for _, p := range set.Problems {
			_, _ = fmt.Fprintln(out, p)
		}
		_, _ = fmt.Fprintf(out, "%s, %s\n", plural(len(set.Clusters), "good cluster"), summary)
	}
	if failed > 0 {
		return exitError(1)
	}
	return nil
}

// printJSON prints one indented document; an empty list is [], not null.
func printJSON[T any](out io.Writer, list []T) error {
	if list == nil {
		list = []T{}
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}
