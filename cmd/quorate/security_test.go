package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each line of SECURITY.md about what somebody cannot do names tests, and these are where
// it says.
func TestSecurityPageNamesItsTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, claims, _ := strings.Cut(string(page), "## What they cannot do")
	claims, _, _ = strings.Cut(claims, "## What is not held yet")
	link := regexp.MustCompile(`\[((?:Test|Fuzz)\w+)\]\(([^)]+)\)`)
	rows := 0
	for line := range strings.Lines(claims) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what") {
			continue
		}
		rows++
		links := link.FindAllStringSubmatch(line, -1)
		if len(links) == 0 {
			t.Errorf("no test holds %s", line)
		}
		for _, l := range links {
			source, err := os.ReadFile(filepath.Join("..", "..", l[2]))
			if err != nil || !strings.Contains(string(source), "\nfunc "+l[1]+"(") {
				t.Errorf("%s is not in %s (%v)", l[1], l[2], err)
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d lines were found", rows)
	}
}
