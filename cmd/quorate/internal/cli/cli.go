// Package cli is what the commands of quorate share: flags with a few values, the formats
// of what they print, how a terminal shows it, the exit status, and the way to a
// Kubernetes cluster.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quorate/quorate/reconciler/markdown"
)

// ExitError ends the program with a status other than 1; everything has been printed.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// The formats of what is printed. Each command has some of them.
const (
	Text     = "text"
	Wide     = "wide"
	JSON     = "json"
	YAML     = "yaml"
	Markdown = "markdown"
	GitHub   = "github"
	SARIF    = "sarif"
)

// choice is a flag with a few values.
type choice struct {
	value  *string
	values []string
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c choice) Type() string { return strings.Join(c.values, "|") }

// Set implements pflag.Value.
func (c choice) Set(value string) error {
	if !slices.Contains(c.values, value) {
		return fmt.Errorf("must be one of %s", strings.Join(c.values, ", "))
	}
	*c.value = value
	return nil
}

// ChoiceFlag adds a flag with a few values, the first of which is the default.
// The shell completes them.
func ChoiceFlag(cmd *cobra.Command, value *string, name, usage string, values ...string) {
	*value = values[0]
	cmd.Flags().Var(choice{value, values}, name, usage)
	completeFlag(cmd, name, values)
}

// OutputFlag adds -o, the format of what is printed.
func OutputFlag(cmd *cobra.Command, value *string, values ...string) {
	*value = values[0]
	cmd.Flags().VarP(choice{value, values}, "output", "o", "format of the output")
	completeFlag(cmd, "output", values)
}

func completeFlag(cmd *cobra.Command, name string, values []string) {
	// The only error is that there is no such flag, and there is.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// PrintJSON prints one indented document.
func PrintJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// IsTerminal reports whether out is a terminal that can move its cursor.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// Shown is a text of others on one line of a terminal.
func Shown(text string) string { return markdown.Plain(text, markdown.MessageRunes) }

// briefRunes is how much of a sentence a table has room for.
const briefRunes = 80

// Brief is as much of a sentence as a table has room for.
func Brief(text string) string {
	if runes := []rune(text); len(runes) > briefRunes {
		return string(runes[:briefRunes]) + "…"
	}
	return text
}
