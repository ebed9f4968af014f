package main

import (
	"fmt"
	"os"
	"strings"
)

// bugsPath is the record of all bugs.
const bugsPath = "test/BUGS.md"

// bug is a line of it.
type bug struct {
	text string
	// held are tests and scenarios, commit is the subject of the one that mended it, and
	// mutant what brings it back.
	held           []string
	commit, mutant string
}

// readBugs reads the table of the record.
func readBugs(path string) (bugs []bug, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00")
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what went wrong") {
			continue
		}
		if len(cells) != 4 {
			return nil, fmt.Errorf("%s: %d cells instead of 4 in %s", path, len(cells), line)
		}
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
		}
		b := bug{text: cells[0], commit: cells[2], mutant: cells[3]}
		for held := range strings.SplitSeq(cells[1], ",") {
			b.held = append(b.held, strings.Trim(strings.TrimSpace(held), "`"))
		}
		bugs = append(bugs, b)
	}
	return bugs, nil
}
