package release

import "fmt"

// safeRow is the first release of a line from which on something is safe.
type safeRow struct {
	line   Version
	since  Version
	source string
}

// safeFrom finds the row of v's line. Lines before the first row were never
// fixed, later lines never had the fault.
func safeFrom(rows []safeRow, v Version) (since Version, safe bool) {
	for _, row := range rows {
		if row.line.sameLine(v) {
			return row.since, !v.before(row.since)
		}
	}
	return rows[0].since, !v.before(rows[0].line)
}

// UnsafeDefragmentation says why no member of release v may be defragmented, or
// "". In each of these a defragmentation that meets an incoming snapshot of the
// leader, or a crash, may leave a member with other data than the rest.
func UnsafeDefragmentation(v Version) string {
	since, safe := safeFrom([]safeRow{
		{Version{3, 4, 0}, Version{3, 4, 38}, "CHANGELOG-3.4.md v3.4.38, PR 20659; v3.4.4, PR 11613"},
		{Version{3, 5, 0}, Version{3, 5, 23}, "CHANGELOG-3.5.md v3.5.23, PR 20653; v3.5.6, PR 14733"},
		{Version{3, 6, 0}, Version{3, 6, 5}, "CHANGELOG-3.6.md v3.6.5, PR 20650"},
	}, v)
	if safe {
		return ""
	}
	return fmt.Sprintf("a defragmentation of %s may corrupt its data: that is fixed in %s", v, since)
}

// HashTrusted reports whether members of release v that hold the same data have the
// same hash of it, at one revision since one compaction. In older ones it depended
// on whether a deleted key's last revision was the one compacted at.
func HashTrusted(v Version) bool {
	_, safe := safeFrom([]safeRow{
		{Version{3, 4, 0}, Version{3, 4, 34}, "CHANGELOG-3.4.md v3.4.34, PR 18475"},
		{Version{3, 5, 0}, Version{3, 5, 16}, "CHANGELOG-3.5.md v3.5.16, PR 18474"},
	}, v)
	return safe
}

// MayDiverge says how members of release v that have no other fault may come to hold different data, or "": no patch of
// the lines before 3.7 has the fix, so that it is told where members differ, and not at every upgrade.
func MayDiverge(v Version) string {
	fixed := Version{3, 7, 0} // CHANGELOG-3.7.md v3.7.0-rc.0, PR 21432; issue 18667, measured on 3.5.35 and 3.6.16
	if !v.before(fixed) {
		return ""
	}
	return fmt.Sprintf("a transaction that reads at a compacted revision can do that before etcd %s (etcd issue 18667)", fixed)
}
