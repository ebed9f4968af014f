package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/schema"
)

// useColor reports whether to color text: if requested, or on a terminal that shows colors
// unless NO_COLOR is set.
func useColor(when string, out io.Writer) bool {
	if when != "auto" {
		return when == "always"
	}
	return os.Getenv("NO_COLOR") == "" && cli.IsTerminal(out)
}

// The colours of a terminal.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// colored is a problem on one line. Colour never carries a meaning that the text
// does not have.
func colored(p schema.Problem, color bool) string {
	text := p.String()
	if p.Warning && p.ID != "" {
		text += " [" + string(p.ID) + "]"
	}
	text = cli.Shown(text)
	if !color {
		return text
	}
	place, rest, found := strings.Cut(text, ": ")
	if !found {
		return text
	}
	shade := red
	if p.Warning {
		shade = yellow
	}
	return bold + place + ": " + plain + shade + rest + plain
}

// printAnnotations prints problems as workflow commands of GitHub Actions, which
// show them at the lines of a pull request.
func printAnnotations(out io.Writer, problems []schema.Problem) {
	for _, p := range problems {
		level := "error"
		if p.Warning {
			level = "warning"
		}
		properties := "file=" + escapeProperty(p.File)
		if p.Line > 0 {
			properties += fmt.Sprintf(",line=%d", p.Line)
		}
		if p.Column > 0 {
			properties += fmt.Sprintf(",col=%d", p.Column)
		}
		if p.Object != "" {
			properties += ",title=" + escapeProperty(cli.Shown(p.Object))
		}
		_, _ = fmt.Fprintf(out, "::%s %s::%s\n", level, properties, escapeMessage(cli.Shown(message(p))))
	}
}

// message is what a problem says, without its place.
func message(p schema.Problem) string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// escapeMessage escapes what would end a workflow command.
func escapeMessage(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

// escapeProperty escapes what would end a property of one.
func escapeProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeMessage(text))
}

// listPaths names paths in a message.
func listPaths(paths []string) string {
	const most = 3
	if len(paths) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
	}
	return strings.Join(paths, ", ")
}
