package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// ignored is one line of an ignore file: a sort of warning, the files in which it is
// accepted, and why.
type ignored struct {
	line            int
	id              schema.ID
	pattern, reason string
	used            bool
}

// readIgnored reads an ignore file. What could let a problem pass by mistake is an error: an
// unknown ID, one that is no warning of a file, a line without a reason.
//
//	# ID              FILE                      why
//	release-ended     clusters/legacy.yaml      the old application needs 3.4 until March
//	even-replicas     clusters/staging/         a member less costs nothing there
func readIgnored(name string) ([]ignored, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read --ignore-file: %w", err)
	}
	var all []ignored
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if why := refuseIgnored(words); why != "" {
			return nil, fmt.Errorf("%s:%d: %s", name, i+1, why)
		}
		all = append(all, ignored{line: i + 1, id: schema.ID(words[0]), pattern: words[1], reason: strings.Join(words[2:], " ")})
	}
	return all, nil
}

// refuseIgnored is what is wrong with a line, or "".
func refuseIgnored(words []string) string {
	kinds := schema.ProblemKinds()
	i := slices.IndexFunc(kinds, func(k schema.ProblemKind) bool { return string(k.ID) == words[0] })
	switch {
	case i < 0:
		var ids []string
		for _, k := range kinds {
			ids = append(ids, string(k.ID))
		}
		hint := ""
		if near := release.Nearest(words[0], ids); near != "" {
			hint = ", did you mean " + near + "?"
		}
		return fmt.Sprintf("%q is not the ID of a problem%s; docs/problems.md lists them", words[0], hint)
	case kinds[i].Class == schema.KindOfError:
		return fmt.Sprintf("%s is an error and cannot be ignored: fix the file", words[0])
	case kinds[i].Class == schema.KindOfChange:
		return fmt.Sprintf("%s tells what one change does and cannot be ignored", words[0])
	case len(words) < 3:
		return "write the ID, the file or * for all, and the reason, with spaces between"
	}
	if _, err := path.Match(words[1], ""); err != nil {
		return fmt.Sprintf("%q is not a pattern of files, such as clusters/*.yaml", words[1])
	}
	return ""
}

// covers reports whether a line accepts a problem. Files are named from the directory that
// quorate runs in; a name that ends with / is all below it.
func (g ignored) covers(p schema.Problem) bool {
	if !p.Warning || p.ID != g.id {
		return false
	}
	return schema.MatchesFile(g.pattern, p.File)
}

// acceptedProblem is a warning that an ignore file accepts.
type acceptedProblem struct {
	schema.Problem
	reason string
}

// sortOut takes the accepted warnings out of the problems.
func sortOut(problems []schema.Problem, lines []ignored) (left []schema.Problem, accepted []acceptedProblem) {
	for i, named := range relative(problems) {
		at := slices.IndexFunc(lines, func(g ignored) bool { return g.covers(named) })
		if at < 0 {
			left = append(left, problems[i])
			continue
		}
		lines[at].used = true
		accepted = append(accepted, acceptedProblem{problems[i], lines[at].reason})
	}
	return left, accepted
}
