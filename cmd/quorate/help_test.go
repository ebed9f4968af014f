package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every command explains itself, with an example, on a terminal of 110 columns.
func TestHelpIsComplete(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
				t.Error("Short, Long or Example is missing")
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
					t.Errorf("--%s: usage %q", f.Name, f.Usage)
				}
			})
			for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
				if len([]rune(line)) > 111 {
					t.Errorf("longer than 110 columns: %s", line)
				}
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(programName))
}
