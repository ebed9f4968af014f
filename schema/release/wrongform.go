package release

import (
	"fmt"
	"strconv"
	"strings"
)

// wrongForm returns how text departs from MAJOR.MINOR.PATCH, or "" when it has
// that form. The commonest slips come first, so that each gets its own remedy.
func wrongForm(text string) string {
	switch rest, leadingV := strings.CutPrefix(text, "v"); {
	case text == "":
		return `write MAJOR.MINOR.PATCH in quotes, for example "3.6.16"`
	case leadingV && wrongForm(rest) == "":
		return fmt.Sprintf("leave out the v: %q", rest)
	case strings.TrimSpace(text) != text:
		return "leave out the white space around it"
	case strings.Contains(text, "@") || strings.Contains(text, "sha256:"):
		return "a digest names an image, not a release; write MAJOR.MINOR.PATCH, for example \"3.6.16\""
	case isMovingTag(text):
		return "a moving tag would change the cluster without a commit; write MAJOR.MINOR.PATCH, for example \"3.6.16\""
	}
	return wrongParts(text)
}

// isMovingTag recognises the tags that registries move from release to release.
func isMovingTag(text string) bool {
	switch strings.ToLower(text) {
	case "latest", "stable", "main", "master", "edge", "nightly", "newest":
		return true
	}
	return false
}

// wrongParts checks the numbers between the dots.
func wrongParts(text string) string {
	if strings.ContainsAny(text, "-+") {
		return "pre-releases and builds are not supported; write a release as MAJOR.MINOR.PATCH"
	}
	parts := strings.Split(text, ".")
	for _, part := range parts {
		switch {
		case part == "x" || part == "X" || part == "*":
			return "a pattern would change the cluster without a commit; write the patch as a number"
		case !isNumber(part):
			return "write MAJOR.MINOR.PATCH, three numbers, for example \"3.6.16\""
		}
	}
	if len(parts) < 3 {
		return "write all three numbers, MAJOR.MINOR.PATCH, for example \"3.6.16\""
	}
	if len(parts) > 3 {
		return "write three numbers only, MAJOR.MINOR.PATCH"
	}
	return ""
}

// isNumber accepts decimal digits without a leading zero.
func isNumber(text string) bool {
	if text == "" || (len(text) > 1 && text[0] == '0') {
		return false
	}
	for _, r := range text {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}

// quoted quotes text from a user's file, cut to a length that a message bears.
func quoted(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.Quote(text)
}
