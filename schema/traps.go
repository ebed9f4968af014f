package schema

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// trap finds the line at which a document that is no YAML goes wrong in one of
// the ways that people know from experience, and tells how to fix it. line counts
// from 1 and is 0 when none is found. near is the line that the parser names, and
// cause what it says; it stops at that line or a little behind the mistake.
func trap(data []byte, near int, cause string) (line int, message string) {
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	if line := tabbedLine(lines); line > 0 {
		return line, "the indentation contains a tab, which YAML does not allow: use spaces"
	}
	if line, message := badMarker(lines); line > 0 {
		return line, message
	}
	if line, message := badAnchor(lines, cause); line > 0 {
		return line, message
	}
	for n := max(near-1, 1); n <= min(near+1, len(lines)); n++ {
		if message := trapInLine(lines[n-1]); message != "" {
			return n, message
		}
	}
	return misindented(lines)
}

// lineAt is a line of a document, from 1, or "".
func lineAt(data []byte, line int) string {
	for text := range bytes.Lines(data) {
		line--
		if line == 0 {
			return string(text)
		}
	}
	return ""
}

// indentOf is the number of spaces before the text of a line.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// tabbedLine is the first line, from 1, with a tab in its indentation, or 0.
func tabbedLine(lines []string) int {
	for i, line := range lines {
		text := strings.TrimLeft(line, " \t\r")
		if text != "" && strings.Contains(line[:len(line)-len(text)], "\t") {
			return i + 1
		}
	}
	return 0
}

// badMarker finds a line between documents that has too many dashes, or a part
// of the document behind them.
func badMarker(lines []string) (line int, message string) {
	for i, line := range lines {
		rest, ok := strings.CutPrefix(line, "---")
		switch {
		case !ok:
		case strings.Trim(rest, "- ") == "" && strings.HasPrefix(rest, "-"):
			return i + 1, "the line between documents has three dashes: write ---"
		case strings.Contains(rest, ": ") && !strings.ContainsAny(rest, "#{"):
			return i + 1, "the line between documents must have only its dashes: begin a new line after ---"
		}
	}
	return 0, ""
}

// badAnchor finds an alias that names nothing.
func badAnchor(lines []string, cause string) (line int, message string) {
	m := regexp.MustCompile(`^unknown anchor '(.*)' referenced$`).FindStringSubmatch(cause)
	if m == nil {
		return 0, ""
	}
	for i, line := range lines {
		if strings.Contains(line, "*"+m[1]) && trapInLine(line) == "" {
			return i + 1, fmt.Sprintf("*%s is an alias in YAML, and there is no anchor &%s in this document: write the value, or put it in quotes if the star belongs to it", clipPlain(m[1]), clipPlain(m[1]))
		}
	}
	return 0, ""
}

// trapInLine reports what is wrong with one line, or "".
func trapInLine(line string) string {
	line = strings.TrimRight(line, " \r\n")
	plainValue := regexp.MustCompile(`^\s*(?:- )*([A-Za-z][A-Za-z0-9-]*):\s+(\S.*)$`)
	noSpace := regexp.MustCompile(`^\s*(?:- )*([A-Za-z][A-Za-z0-9-]*):([^\s/].*)$`)
	noColon := regexp.MustCompile(`^\s*(?:- )*([A-Za-z][A-Za-z0-9-]*)(?:\s*=\s*|\s+)([^\s:=#]+)$`)
	if strings.Contains(line, "\u00a0") {
		return "a space is a no-break space, as copied from web pages: replace it with a plain one"
	}
	if m := plainValue.FindStringSubmatch(line); m != nil {
		return trapInValue(m[1], m[2])
	}
	if m := noSpace.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("a space is missing after the colon: write %s: %s", m[1], clipPlain(m[2]))
	}
	if m := noColon.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("a colon is missing: write %s: %s", m[1], clipPlain(m[2]))
	}
	if word := strings.TrimSpace(line); word == "spec" || word == "metadata" {
		return fmt.Sprintf("a colon is missing: write %s:", word)
	}
	return ""
}

// trapInValue reports what is wrong with the value of a key.
//
//	schedule: @daily           @, ` and % begin no plain value
//	schedule: */5 * * * *      * begins an alias
//	url: {{ .UID }}.db         { begins a mapping
//	replicas: 3:               a colon makes a key of it
//	version: "3.6.16           a quote is not closed
//	storage: {size: 8Gi        a brace is not closed
func trapInValue(key, value string) string {
	flow := strings.ContainsAny(value[:1], "{[")
	switch {
	case strings.HasPrefix(value, "{{"):
		return "a template begins with a brace, which YAML reads as an object: put it in quotes"
	case strings.ContainsAny(value[:1], "@`%"):
		return fmt.Sprintf("a value must not begin with %s in YAML: put it in quotes", value[:1])
	case strings.HasPrefix(value, "*/") || strings.HasPrefix(value, "* "):
		return "a value that begins with * is an alias in YAML: put it in quotes, as in \"*/5 * * * *\""
	case strings.HasSuffix(value, ":"):
		return fmt.Sprintf("a colon follows the value: write %s: %s", key, clipPlain(strings.TrimRight(value, ":")))
	case strings.Count(value, `"`)%2 == 1:
		return "a quote is opened and not closed in this line: write \" at both ends of the value"
	case flow && strings.Contains(value, "{{") && !strings.Contains(value, `"`):
		return "a template has braces, which YAML reads as an object: put the value in quotes"
	case flow && strings.Count(value, "{")+strings.Count(value, "[") > strings.Count(value, "}")+strings.Count(value, "]"):
		return "a brace or bracket is opened and not closed in this line: close it"
	case !flow && !strings.ContainsAny(value[:1], `"'`) && strings.Contains(value, ": "):
		return "a value with a colon and a space is an object in YAML: put it in quotes"
	}
	return ""
}

// misindented finds a line that begins at no column at which a line may begin.
// It gives up at what spans several lines.
func misindented(lines []string) (line int, message string) {
	open := []int{}
	hasValue := false
	plainLine := regexp.MustCompile(`^( *)((?:- +)*)[A-Za-z][A-Za-z0-9./-]*:(?: +(.*))?$`)
	for i, text := range lines {
		if bare := strings.TrimSpace(text); bare == "" || bare[0] == '#' || strings.HasPrefix(text, "---") {
			continue
		}
		m := plainLine.FindStringSubmatch(strings.TrimRight(text, " \r"))
		if m == nil || strings.ContainsAny(m[3], "|>") {
			return 0, ""
		}
		indent := len(m[1])
		deepest := -1
		for len(open) > 0 && open[len(open)-1] > indent {
			deepest = open[len(open)-1]
			open = open[:len(open)-1]
		}
		known := len(open) > 0 && open[len(open)-1] == indent
		switch {
		case deepest >= 0 && !known:
			return i + 1, fmt.Sprintf("the line begins at column %d, where no line above it does: fields of one object begin at one column", indent+1)
		case !known && hasValue && len(open) > 0:
			return i + 1, fmt.Sprintf("the line begins at column %d, deeper than the line above, which has a value and so no fields of its own: align the two", indent+1)
		case !known:
			open = append(open, indent)
		}
		if m[2] != "" {
			open = append(open, indent+len(m[2]))
		}
		hasValue = m[3] != "" && m[3][0] != '#' && m[3][0] != '&' && m[3][0] != '!'
	}
	return 0, ""
}

// clipPlain cuts a text to a length that a message bears.
func clipPlain(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
