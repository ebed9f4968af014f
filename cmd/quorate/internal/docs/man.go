package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// writeMan writes a man page of each command into a directory. It writes roff itself: cobra's
// doc package would link two more modules into the daemon, a Markdown parser among them, and
// sets the lists and blocks of a help text as running text.
func writeMan(root *cobra.Command, dir string, build Build) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the directory of the man pages: %w", err)
	}
	all := commands(root)
	for _, cmd := range all {
		path := filepath.Join(dir, manName(cmd)+".1")
		if err := os.WriteFile(path, []byte(manPage(cmd, all, build)), 0o644); err != nil {
			return fmt.Errorf("write a man page: %w", err)
		}
	}
	return nil
}

// manName is what man is asked for: quorate-snapshot-list.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the page of one command, in roff with the man macros.
func manPage(cmd *cobra.Command, all []*cobra.Command, build Build) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH "%s" "1" "%s" "quorate %s" "quorate"`, strings.ToUpper(manName(cmd)), build.date(), roff(build.Version))
	line(".SH NAME\n%s \\- %s", roff(manName(cmd)), roff(cmd.Short))
	line(".SH SYNOPSIS\n.B %s", roff(usage(cmd)))
	line(".SH DESCRIPTION")
	for _, p := range paragraphs(cmd.Long) {
		if p.verbatim {
			line(".PP\n.nf\n%s\n.fi", roff(p.text))
			continue
		}
		line(".PP\n%s", roff(p.text))
	}
	if found := flags(cmd); len(found) > 0 {
		line(".SH OPTIONS")
		for _, f := range found {
			says := roff(f.says)
			if f.preset != "" {
				says += roff(" (default " + f.preset + ")")
			}
			value := ""
			if f.value != "" {
				value = " \\fI" + roff(f.value) + "\\fR"
			}
			line(".TP\n\\fB%s\\fR%s\n%s", roff(f.name), value, says)
		}
	}
	if cmd.Example != "" {
		line(".SH EXAMPLES\n.nf\n%s\n.fi", roff(cmd.Example))
	}
	line(".SH SEE ALSO")
	var others []string
	for _, other := range all {
		if other == cmd.Parent() || other.Parent() == cmd {
			others = append(others, fmt.Sprintf("\\fB%s\\fR(1)", roff(manName(other))))
		}
	}
	line("%s", strings.Join(others, ", "))
	return b.String()
}

// roff is text as roff sets it: backslashes and hyphens are themselves, and no line begins
// with a request. It is ASCII, which every man sets.
func roff(text string) string {
	var ascii strings.Builder
	for _, r := range strings.NewReplacer(`\`, `\e`, "-", `\-`, "\t", "    ").Replace(text) {
		if r < utf8.RuneSelf {
			ascii.WriteRune(r)
		} else {
			fmt.Fprintf(&ascii, `\[u%04X]`, r)
		}
	}
	lines := strings.Split(ascii.String(), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
