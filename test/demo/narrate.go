package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// brief is how long a hold must last to be worth a line.
const brief = 700 * time.Millisecond

// narrator tells quorate's log to a person, as it comes. It leaves out holds
// that are over at once, and all but the first of a row of warnings.
type narrator struct {
	*lab.Progress

	mu       sync.Mutex
	warnings []string
	hold     *time.Timer
}

// tell takes the next line.
func (n *narrator) tell(l lab.LogLine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, name, _ := strings.Cut(l.Cluster, "/")
	if l.Msg == "cluster warning" {
		n.warnings = append(n.warnings, fmt.Sprintf("%s  warning: %s", name, l.Warning))
		return
	}
	if l.Msg == "on hold" {
		n.waits(fmt.Sprintf("%s  waits: %s", name, join(l.Reason, l.Remedy)))
		return
	}
	if text := n.sentence(name, l); text != "" {
		n.flush()
		n.Say("  %s", text)
	}
}

// waits prints what is awaited, unless something else is said soon.
func (n *narrator) waits(text string) {
	n.flush()
	n.hold = time.AfterFunc(brief, func() { n.Say("  %s", n.Faint(text)) })
}

// flush says the warnings, and forgets the hold that is over.
func (n *narrator) flush() {
	if n.hold != nil {
		n.hold.Stop()
	}
	for i, warning := range n.warnings {
		if i > 0 {
			n.Say("  %s", n.Faint(fmt.Sprintf("and %d more warnings like it", len(n.warnings)-i)))
			break
		}
		n.Say("  %s", n.Faint(warning))
	}
	n.warnings = nil
}

// sentence is what a line means; empty for what need not be shown.
func (n *narrator) sentence(name string, l lab.LogLine) string {
	switch l.Msg {
	case "step started":
		return name + "  " + n.Bold(fmt.Sprintf("%-36s", l.Action)) + " " + n.Faint("because "+l.Reason)
	case "cluster is up to date":
		return fmt.Sprintf("%s  %s", name, n.Good("is at "+l.Version+" and what Git says"))
	case "pass failed", "fetch failed", "commit held", "waiting for the Kubernetes API server":
		return n.Bad(strings.TrimSpace(name + "  " + l.Msg + ": " + join(l.Error, l.Remedy)))
	case "problem in a manifest":
		if strings.Contains(l.Problem, ": warning: ") {
			return "" // repeated, about the cluster
		}
		return n.Bad("in the commit: " + l.Problem)
	case "":
		return l.Raw // a panic, or words before the log begins
	}
	return ""
}

func join(text, more string) string {
	if more == "" {
		return text
	}
	return text + "; " + more
}
