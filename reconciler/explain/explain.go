// Package explain says what a hold means, why quorate holds, and what a person can do:
// one entry for each kind of hold, each rule of the planner, each reason that needs
// a person and each exit code of quorate-guard. `quorate explain` and docs/troubleshooting.md are made from it.
package explain

import (
	"slices"
	"strings"
)

// Topic is what an entry is about.
type Topic string

// The topics, in the order in which they are listed.
const (
	// Kind is a kind of hold: how it ends.
	Kind Topic = "kind of hold"
	// Rule is a rule of the planner: what it holds for.
	Rule Topic = "rule"
	// Reason is the reason of a condition that no rule gives.
	Reason Topic = "reason"
	// Exit is an exit code of quorate-guard, which decides whether a member may start.
	Exit Topic = "exit code"
)

// Entry explains one word that a status, an Event or a log line has.
type Entry struct {
	Name  string
	Topic Topic
	// Means is what it says, and Why what would go wrong if quorate did not hold.
	Means, Why string
	// Do is what a person can do, in the order in which to try it; empty where there is
	// nothing to do.
	Do []string
}

// All are all entries: kinds, rules in the order in which they are asked, reasons, exit codes.
func All() []Entry { return slices.Concat(kinds(), rules(), reasons(), exits()) }

// Find are the entries of a name. It may be written in another case, and with the Hold
// that Events put before a kind; one that is written exactly is found alone.
func Find(name string) []Entry {
	var exact, near []Entry
	kind, _ := strings.CutPrefix(strings.ToLower(name), "hold")
	for _, e := range All() {
		switch lower := strings.ToLower(e.Name); {
		case e.Name == name:
			exact = append(exact, e)
		case lower == strings.ToLower(name), e.Topic == Kind && lower == kind:
			near = append(near, e)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return near
}

// Heading is the heading of the entry on a page. A kind and a rule may have the same name.
func (e Entry) Heading() string {
	return strings.ToUpper(string(e.Topic[:1])) + string(e.Topic[1:]) + ": " + e.Name
}

// Markdown is the entry as a section of a page.
func (e Entry) Markdown() string {
	var b strings.Builder
	b.WriteString("## " + e.Heading() + "\n\n" + e.Means + "\n\n**Why.** " + e.Why + "\n")
	if len(e.Do) > 0 {
		b.WriteString("\n**What to do.**\n\n")
	}
	for _, do := range e.Do {
		b.WriteString("- " + do + "\n")
	}
	return b.String()
}

// Text is the entry for a terminal of so many columns.
func (e Entry) Text(columns int) string {
	var b strings.Builder
	b.WriteString(e.Name + " (" + string(e.Topic) + ")\n\n")
	b.WriteString(wrap(e.Means, "  ", "  ", columns) + "\n")
	b.WriteString("  Why\n" + wrap(e.Why, "    ", "    ", columns))
	if len(e.Do) > 0 {
		b.WriteString("\n  What to do\n")
	}
	for _, do := range e.Do {
		b.WriteString(wrap(do, "    - ", "      ", columns))
	}
	return b.String()
}

// wrap breaks a text into lines of so many columns.
func wrap(text, first, rest string, columns int) string {
	var b strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && len([]rune(line))+1+len([]rune(word)) > columns {
			b.WriteString(line + "\n")
			line = rest + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
