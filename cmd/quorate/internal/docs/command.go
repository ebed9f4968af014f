package docs

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands are those that help lists, in its order; each is followed by those below it. Of
// completion, whose help is cobra's and long, only itself.
func commands(root *cobra.Command) []*cobra.Command {
	root.InitDefaultCompletionCmd()
	all := []*cobra.Command{root}
	var below func(*cobra.Command)
	below = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if !sub.IsAvailableCommand() || sub.Name() == "help" {
				continue
			}
			all = append(all, sub)
			if sub.Name() != "completion" {
				below(sub)
			}
		}
	}
	below(root)
	return all
}

// usage is how a command is called.
func usage(cmd *cobra.Command) string {
	if cmd.Runnable() {
		return cmd.UseLine()
	}
	return cmd.CommandPath() + " COMMAND"
}

// paragraph is a part of a help text between two empty lines.
type paragraph struct {
	text string
	// verbatim: its lines stay as they are.
	verbatim bool
}

// paragraphs takes a help text apart. Lines that are indented stay as they are.
func paragraphs(text string) (found []paragraph) {
	for part := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if part = strings.Trim(part, "\n"); part != "" {
			found = append(found, paragraph{part, strings.HasPrefix(part, "  ") || strings.HasPrefix(part, "\t")})
		}
	}
	return found
}

// flag is what is said of a flag. Empty and zero defaults are left out: the text says what
// their absence means.
type flag struct{ name, value, says, preset string }

// flags are those of a command, by name, without --help.
func flags(cmd *cobra.Command) (found []flag) {
	cmd.InitDefaultVersionFlag()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, says := pflag.UnquoteUsage(f)
		one := flag{name: "--" + f.Name, value: value, says: says, preset: f.DefValue}
		if f.Shorthand != "" {
			one.name = "-" + f.Shorthand + ", " + one.name
		}
		switch f.DefValue {
		case "", "false", "0", "[]", "0s":
			one.preset = ""
		}
		found = append(found, one)
	})
	return found
}
