package report

import (
	"regexp"
	"strings"

	"github.com/quorate/quorate/reconciler/observe"
)

// Sentences of the planner that hold a number which another look finds changed.
var (
	behindRegexp    = regexp.MustCompile(`is \d+ entries behind`)
	appliedRegexp   = regexp.MustCompile(`has applied \d+ of \d+ entries`)
	freeRegexp      = regexp.MustCompile(`[\d.]+ ?(?:[KMG]i|bytes) of its file of [\d.]+ ?(?:[KMG]i|bytes) are free`)
	crowdedRegexp   = regexp.MustCompile(`its file has [\d.]+ ?(?:[KMG]i|bytes) of a quota of`)
	givenBackRegexp = regexp.MustCompile(`[\d.]+ ?(?:[KMG]i|bytes) of that can be given back`)
	raftRegexp      = regexp.MustCompile(`, at revision \d+, raft term \d+ and index \d+`)
	tooEarlyRegexp  = regexp.MustCompile(`is at revision \d+ and should be at \d+ or later`)
	revisionRegexp  = regexp.MustCompile(`,? (?:at )?revision \d+`)
	fightRegexp     = regexp.MustCompile(`was put back \d+ times and changed again by (.*) each time; it is put back next at [0-9TZ:-]+`)
	sinceRegexp     = regexp.MustCompile(` at \d{4}-\d\d-\d\dT[0-9:]+Z\)`)
)

// steady is a sentence of the planner without what changes with each look: numbers
// that were measured, and the words of a member's error, which tell of the last try.
func steady(v *observe.View, text string) string {
	if n := len(v.Observed.Rounds); n > 0 {
		last := v.Observed.Rounds[n-1]
		text = without(text, last.Problem)
		for _, m := range last.Members {
			text = without(text, m.Problem)
		}
	}
	for _, rule := range []struct {
		measured *regexp.Regexp
		instead  string
	}{
		{behindRegexp, "is behind"},
		{appliedRegexp, "has not applied all entries"},
		{freeRegexp, "much of its file is free"},
		{crowdedRegexp, "its file comes near its quota of"},
		{givenBackRegexp, "some of that can be given back"},
		{raftRegexp, ""},
		{tooEarlyRegexp, "is at an earlier revision than it should be"},
		{revisionRegexp, ""},
		{fightRegexp, "was put back again and again, and changed again by $1 each time"},
		{sinceRegexp, ")"},
	} {
		text = rule.measured.ReplaceAllString(text, rule.instead)
	}
	return text
}

// without leaves out the error behind a colon.
func without(text, problem string) string {
	if problem == "" {
		return text
	}
	return strings.ReplaceAll(text, ": "+problem, "")
}
