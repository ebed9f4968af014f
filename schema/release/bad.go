package release

import (
	"fmt"
	"slices"
	"sync"
)

// Bad reports what is wrong with v as a target, the most severe first. A Refuse means
// that no cluster should be brought to v; a Warn is for the reader to weigh.
func Bad(v Version) []Finding {
	var refusals []Finding
	var faults []badRow
	for _, row := range badRows() {
		switch {
		case !row.from.sameLine(v) || v.before(row.from) || !v.before(row.fixed):
		case row.severity == Refuse:
			refusals = append(refusals, refuse("%s %s: use %s or later", v, row.fault, row.fixed).about(Faults))
		default:
			faults = append(faults, row)
		}
	}
	return slices.Concat(refusals, warnOfFaults(v, faults), unknownPatch(v), unmaintained(v))
}

// warnOfFaults is one warning of all faults, which names the first and the release that
// has none of them.
func warnOfFaults(v Version, faults []badRow) []Finding {
	if len(faults) == 0 {
		return nil
	}
	fixed := slices.MaxFunc(faults, func(a, b badRow) int { return Compare(a.fixed, b.fixed) }).fixed
	more := ""
	switch n := len(faults) - 1; {
	case n == 1:
		more = ", and has another known fault"
	case n > 1:
		more = fmt.Sprintf(", and has %d more known faults", n)
	}
	return []Finding{warn("%s %s%s: use %s or later", v, faults[0].fault, more, fixed).about(Faults)}
}

// badRow is one fault of one line: in every release from the first that has it
// up to, and not including, the one that fixes it.
type badRow struct {
	from, fixed Version
	severity    Severity
	// fault completes the sentence "3.5.1 …".
	fault string
	// source is where the fault is described, for those who check the row.
	source string
}

// badRows lists the known bad releases. CHANGELOG-3.x.md and PR numbers are
// those of github.com/etcd-io/etcd.
//
//nolint:gochecknoglobals // A table that is never written to.
var badRows = sync.OnceValue(func() []badRow {
	const (
		defragApply  = "may corrupt data when a defragmentation meets an incoming snapshot"
		staleReads   = "may serve stale reads after a process pause, and lets unauthenticated calls through (CVE-2026-33413, CVE-2026-33343)"
		memberUpdate = "promotes a learner silently when its peer URL is updated"
		addWhileDown = "takes no new member while one is down, even with quorum"
		unstarted    = "may promote a learner that never started"
		revisionBack = "may go back to an older revision after a panic in a compaction"
		handshake    = "can be stopped by clients that never finish the TLS handshake (GHSA-6vch-q96h-7gc3)"
		defragOld    = "may corrupt data in a defragmentation"
		walCRC       = "may panic at the checksum of its own write-ahead log"
		oneMember    = "acknowledges writes of a cluster of one member before they are on disk, so that a crash loses them"
		leases       = "may revoke leases by the word of a former leader"
		prevKV       = "lets a transaction read keys and attach leases without permission (CVE-2026-44283)"
		watchRange   = "shows a watcher of one key every key behind it (GHSA-xg4h-6gfc-h4m8)"
		revocation   = "ignores the list of revoked certificates when listen-client-http-urls is set (GHSA-3wh4-j44w-pg92)"
	)
	return []badRow{
		// The ones that must not be run.
		{Version{3, 5, 0}, Version{3, 5, 3}, Refuse, "may lose the consistency of its data after a crash", "CHANGELOG-3.5.md v3.5.3, PR 13908"},
		{Version{3, 6, 0}, Version{3, 6, 4}, Refuse, "does not start when it replays the promotion of a learner", "CHANGELOG-3.6.md v3.6.4, PR 20387"},

		{Version{3, 2, 0}, Version{3, 2, 29}, Warn, defragOld, "CHANGELOG-3.2.md v3.2.29, PR 11613"},
		{Version{3, 3, 0}, Version{3, 3, 19}, Warn, defragOld, "CHANGELOG-3.3.md v3.3.19, PR 11613"},
		{Version{3, 3, 21}, Version{3, 3, 22}, Warn, walCRC, "CHANGELOG-3.3.md v3.3.22, PR 11924"},

		{Version{3, 4, 0}, Version{3, 4, 4}, Warn, defragOld, "CHANGELOG-3.4.md v3.4.4, PR 11613"},
		{Version{3, 4, 8}, Version{3, 4, 9}, Warn, walCRC, "CHANGELOG-3.4.md v3.4.9, PR 11924"},
		{Version{3, 4, 20}, Version{3, 4, 22}, Warn, authJoin, "etcd.io, data inconsistency in 3.4.20, 3.4.21 and 3.5.5"},
		{Version{3, 4, 0}, Version{3, 4, 21}, Warn, oneMember, "CHANGELOG-3.4.md v3.4.21, PR 14423"},
		{Version{3, 4, 0}, Version{3, 4, 24}, Warn, unstarted, "CHANGELOG-3.4.md v3.4.24, PR 15097"},
		{Version{3, 4, 0}, Version{3, 4, 31}, Warn, leases, "CHANGELOG-3.4.md v3.4.31, PR 17465"},
		{Version{3, 4, 0}, Version{3, 4, 32}, Warn, revisionBack, "CHANGELOG-3.4.md v3.4.32, PR 17864"},
		{Version{3, 4, 0}, Version{3, 4, 38}, Warn, defragApply, "CHANGELOG-3.4.md v3.4.38, PR 20659"},
		{Version{3, 4, 0}, Version{3, 4, 42}, Warn, staleReads, "CHANGELOG-3.4.md v3.4.42, PR 21423"},
		{Version{3, 4, 0}, Version{3, 4, 44}, Warn, prevKV, "CHANGELOG-3.4.md v3.4.44, PR 21683"},

		{Version{3, 5, 3}, Version{3, 5, 4}, Warn, authStart, "CHANGELOG-3.5.md v3.5.4, PR 13946"},
		{Version{3, 5, 0}, Version{3, 5, 6}, Warn, "may diverge from the other members when it crashes in a defragmentation", "CHANGELOG-3.5.md v3.5.6, PR 14733"},
		{Version{3, 5, 0}, Version{3, 5, 5}, Warn, oneMember, "CHANGELOG-3.5.md v3.5.5, PR 14424"},
		{Version{3, 5, 5}, Version{3, 5, 6}, Warn, authJoin, "etcd.io, data inconsistency in 3.4.20, 3.4.21 and 3.5.5"},
		{Version{3, 5, 0}, Version{3, 5, 7}, Warn, unstarted, "CHANGELOG-3.5.md v3.5.7, PR 15096"},
		{Version{3, 5, 0}, Version{3, 5, 13}, Warn, leases, "CHANGELOG-3.5.md v3.5.13, PR 17425"},
		{Version{3, 5, 0}, Version{3, 5, 14}, Warn, revisionBack, "CHANGELOG-3.5.md v3.5.14, PR 17865"},
		{Version{3, 5, 0}, Version{3, 5, 17}, Warn, "may apply a part of a write transaction", "CHANGELOG-3.5.md v3.5.17, PR 18799"},
		{Version{3, 5, 0}, Version{3, 5, 23}, Warn, defragApply, "CHANGELOG-3.5.md v3.5.23, PR 20653"},
		{Version{3, 5, 1}, Version{3, 5, 24}, Warn, "may forget the promotion of a learner, which shows on 3.6", "CHANGELOG-3.5.md v3.5.20 and v3.5.24, PR 19563 and 20797"},
		{Version{3, 5, 0}, Version{3, 5, 26}, Warn, "may keep removed members, which come back on 3.6", "CHANGELOG-3.5.md v3.5.26, PR 20995"},
		{Version{3, 5, 0}, Version{3, 5, 28}, Warn, staleReads, "CHANGELOG-3.5.md v3.5.28, PR 21421"},
		{Version{3, 5, 0}, Version{3, 5, 30}, Warn, addWhileDown, "CHANGELOG-3.5.md v3.5.30, PR 21669"},
		{Version{3, 5, 0}, Version{3, 5, 30}, Warn, prevKV, "CHANGELOG-3.5.md v3.5.30, PR 21682"},
		{Version{3, 5, 0}, Version{3, 5, 31}, Warn, memberUpdate, "CHANGELOG-3.5.md v3.5.31, PR 21737"},
		{Version{3, 5, 0}, Version{3, 5, 32}, Warn, revocation, "CHANGELOG-3.5.md v3.5.32, PR 22021"},
		{Version{3, 5, 0}, Version{3, 5, 33}, Warn, handshake, "CHANGELOG-3.5.md v3.5.33, PR 22160"},
		{Version{3, 5, 0}, Version{3, 5, 33}, Warn, watchRange, "CHANGELOG-3.5.md v3.5.33, GHSA-xg4h-6gfc-h4m8"},

		{Version{3, 6, 0}, Version{3, 6, 5}, Warn, defragApply, "CHANGELOG-3.6.md v3.6.5, PR 20650"},
		{Version{3, 6, 0}, Version{3, 6, 9}, Warn, staleReads, "CHANGELOG-3.6.md v3.6.9, PR 21417"},
		{Version{3, 6, 0}, Version{3, 6, 9}, Warn, "may use more and more memory under many watches", "CHANGELOG-3.6.md v3.6.9, PR 21443; issue 21355"},
		{Version{3, 6, 0}, Version{3, 6, 11}, Warn, addWhileDown, "CHANGELOG-3.6.md v3.6.11, PR 21667"},
		{Version{3, 6, 0}, Version{3, 6, 11}, Warn, prevKV, "CHANGELOG-3.6.md v3.6.11, PR 21681"},
		{Version{3, 6, 0}, Version{3, 6, 12}, Warn, memberUpdate, "CHANGELOG-3.6.md v3.6.12, PR 21736"},
		{Version{3, 6, 0}, Version{3, 6, 13}, Warn, revocation, "CHANGELOG-3.6.md v3.6.13, PR 22025"},
		{Version{3, 6, 0}, Version{3, 6, 14}, Warn, handshake, "CHANGELOG-3.6.md v3.6.14, PR 22142"},
		{Version{3, 6, 0}, Version{3, 6, 14}, Warn, watchRange, "CHANGELOG-3.6.md v3.6.14, GHSA-xg4h-6gfc-h4m8"},

		{Version{3, 7, 0}, Version{3, 7, 1}, Warn, handshake, "CHANGELOG-3.7.md v3.7.1, PR 22141"},
		{Version{3, 7, 0}, Version{3, 7, 1}, Warn, watchRange, "CHANGELOG-3.7.md v3.7.1, GHSA-xg4h-6gfc-h4m8"},
		{Version{3, 7, 0}, Version{3, 7, 2}, Warn, "cannot be downgraded safely, because it reads the wrong record of its log", "CHANGELOG-3.7.md v3.7.2, PR 22201"},
	}
})
