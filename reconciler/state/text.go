package state

import (
	"fmt"
	"strings"
)

// Plural is "1 restart", "2 restarts".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// SizeText is a number of bytes for people.
func SizeText(bytes int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if bytes >= unit.bytes {
			text := fmt.Sprintf("%.2f", float64(bytes)/float64(unit.bytes))
			return strings.TrimRight(strings.TrimRight(text, "0"), ".") + unit.name
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// WithDetail is a sentence and what was measured, "" for nothing.
func WithDetail(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + " (" + detail + ")"
}
