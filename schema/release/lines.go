package release

import "sync"

// lineRow is one release line.
type lineRow struct {
	// latest is the newest release of the line when the catalogue was written. A
	// newer patch is taken as well: patches bring fixes, not flags to learn.
	latest Version
	// released and ended are months, as in "2025-05". The line gets no fixes after
	// ended, which may lie in the future and is "" until it is announced.
	released, ended string
	source          string
}

// writtenIn is the month of this catalogue. Whether a line has ended is judged
// by it and not by a clock, so that an upgrade of quorate is what changes a plan.
const writtenIn = "2026-11"

// lineRows lists the release lines, oldest first. Before 3.4 the etcd project
// named no end: it is the month of the last release.
//
//nolint:gochecknoglobals // A table that is never written to.
var lineRows = sync.OnceValue(func() []lineRow {
	return []lineRow{
		{Version{3, 2, 32}, "2017-06", "2021-03", "CHANGELOG-3.2.md v3.2.0 and v3.2.32"},
		{Version{3, 3, 27}, "2018-02", "2021-10", "CHANGELOG-3.3.md v3.3.0 and v3.3.27"},
		{Version{3, 4, 45}, "2019-08", "2026-06", "CHANGELOG-3.4.md v3.4.0; etcd.io/blog/2026/june-patch-release"},
		{Version{3, 5, 35}, "2021-06", "2027-07", "tag v3.5.0; etcd.io/blog/2026/etcd-370-beta: one year after 3.7.0"},
		{Version{3, 6, 16}, "2025-05", "", "CHANGELOG-3.6.md v3.6.0; etcd.io/docs/v3.7/op-guide/versioning"},
		{Version{3, 7, 3}, "2026-07", "", "CHANGELOG-3.7.md v3.7.0; etcd.io/docs/v3.7/op-guide/versioning"},
	}
})

// EndOfLife is the month, as in "2026-06", after which a line such as "3.4" gets
// no fixes, "" when none is named, and whether that month has passed.
func EndOfLife(line string) (month string, passed bool) {
	for _, row := range lineRows() {
		if row.latest.Line() == line {
			return row.ended, row.ended != "" && row.ended < writtenIn
		}
	}
	return "", false
}

// unmaintained warns of lines that the etcd project no longer maintains. There is
// nothing to do about a line but to leave it.
func unmaintained(v Version) []Finding {
	month, passed := EndOfLife(v.Line())
	if !passed {
		return nil
	}
	untested := ""
	if v.before(Version{3, 4, 0}) {
		untested = " and quorate is not tested with it"
	}
	return []Finding{warn("etcd %s gets no fixes any more since %s%s: move on to a newer line, one minor at a time", v.Line(), month, untested).about(Ended)}
}

// unknownPatch warns of a patch that is newer than the newest one in the catalogue. It may
// be there by now, or be a slip of the pen whose image nobody can pull.
func unknownPatch(v Version) []Finding {
	latest, known := Latest(v.Line())
	if !known || !latest.before(v) {
		return nil
	}
	return []Finding{warn("%s is newer than %s, the newest release of etcd %s that this version of quorate knows: check that it exists", v, latest, v.Line()).about(Unknown)}
}
