package release

import (
	"slices"
	"sync"
)

// DefaultsChanged says, in a sentence each, what members do otherwise after an
// upgrade although no setting was changed. It is empty for a step inside a
// line or down.
func DefaultsChanged(from, to Version) []string {
	var sentences []string
	for _, row := range defaultRows() {
		if row.tell != "" && from.before(row.since) && !to.before(row.since) {
			sentences = append(sentences, row.tell)
		}
	}
	return sentences
}

// Default is the value that v gives to an unset flag, under any of its names,
// whose default some release changed. It is false for other flags.
func Default(v Version, flag string) (string, bool) {
	rows := defaultRows()
	i := slices.IndexFunc(rows, func(row defaultRow) bool { return row.flag == newestName(flag) })
	if i < 0 || !takesAnyName(v, rows[i].flag) {
		return "", false
	}
	if v.before(rows[i].since) {
		return rows[i].was, true
	}
	return rows[i].is, true
}

// takesAnyName reports whether v takes the flag under one of its names.
func takesAnyName(v Version, flag string) bool {
	return KnownFlag(v, flag) || KnownFlag(v, experimental+flag)
}

// defaultRow is a default that one release changed.
type defaultRow struct {
	// flag is the newest name, and "" where a feature gate came that is on.
	flag, was, is string
	since         Version
	// tell is the sentence for the reader of a plan, and "" where quorate sets
	// the flag itself, forbids it, or a note of the hop says the same.
	tell   string
	source string
}

// defaultRows lists the defaults that changed, oldest first.
//
//nolint:gochecknoglobals // A table that is never written to.
var defaultRows = sync.OnceValue(func() []defaultRow {
	v34, v35, v36, v37 := Version{3, 4, 0}, Version{3, 5, 0}, Version{3, 6, 0}, Version{3, 7, 0}
	return []defaultRow{
		{"cors", "", "*", v34, "3.4 answers the scripts of every web page, unless cors names some", "embed/config.go of v3.3.27 and v3.4.34"},
		{"enable-v2", "true", "false", v34, "", "CHANGELOG-3.4.md v3.4.0, PR 10935"},
		{"compaction-batch-limit", "10000", "1000", v34, "3.4 compacts 1000 revisions at a time instead of 10000", "CHANGELOG-3.4.md v3.4.0, PR 11034"},

		{"backend-bbolt-freelist-type", "array", "map", v35, "3.5 keeps the list of free pages as a map instead of an array", "CHANGELOG-3.5.md v3.5.0; embed/config.go of v3.4.34 and v3.5.35"},
		{"logger", "capnslog", "zap", v35, "", "CHANGELOG-3.5.md v3.5.0"},
		{"pre-vote", "false", "true", v35, "", "CHANGELOG-3.5.md v3.5.0, PR 12770"},

		{"discovery-fallback", "proxy", "exit", v36, "", "upgrade guide 3.6"},
		{"snapshot-count", "100000", "10000", v36, "3.6 takes a snapshot every 10000 entries instead of 100000", "CHANGELOG-3.6.md v3.6.0-rc.0, PR 15408"},
		{"v2-deprecation", "not-yet", "write-only", v36, "", "upgrade guide 3.6"},

		{"", "", "", v37, "3.7 renews leases without waiting for the log to be applied", "feature gate FastLeaseKeepAlive, CHANGELOG-3.7.md v3.7.0-rc.0, PR 20589"},
	}
})
