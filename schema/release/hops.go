package release

import "fmt"

// Hop says what stands between one member, which reports from, and the target.
// Nothing is said of a patch up or of the same version. Whether a minor down
// may be undone while the roll is still under way is for the planner to know:
// here it is refused.
func Hop(from, to Version) []Finding {
	switch {
	case from.Major != to.Major:
		return []Finding{refuse("%s → %s: etcd cannot change its major version in place: make a new cluster and move the data", from, to)}
	case to.Minor < from.Minor:
		return []Finding{refuse("%s → %s: an older minor cannot read the data of a newer one: restore a backup into a new cluster instead", from, to)}
	case to.Minor > from.Minor+1:
		return []Finding{refuse("%s → %s: etcd must not skip a minor, the members of the old one would crash: %s", from, to, detour(from))}
	case to.Minor > from.Minor:
		return minorUp(from, to)
	case to.before(from):
		return []Finding{warn("%s → %s: this takes back fixes: read the changelog of the releases between", from, to)}
	}
	return nil
}

// detour names the release to go to before the next minor.
func detour(from Version) string {
	via, ok := next(from)
	if !ok {
		return "go one minor at a time"
	}
	return fmt.Sprintf("go to %s first", via)
}

// minorUp checks one step up against the table: the floor of the member, that
// of the target, and what else the step asks.
func minorUp(from, to Version) []Finding {
	row, ok := hopTo(to)
	if !ok {
		return []Finding{refuse("%s → %s: this quorate does not know what the step needs: update quorate first", from, to)}
	}
	var findings []Finding
	switch {
	case from.before(row.floor):
		findings = append(findings, refuse("%s → %s: every member must first run %s or later", from, to, row.advised))
	case from.before(row.advised):
		findings = append(findings, warn("%s → %s: every member should first run %s or later", from, to, row.advised))
	}
	if to.before(row.target) {
		findings = append(findings, refuse("%s → %s: go to %s or later instead", from, to, row.target))
	}
	for _, note := range row.notes {
		findings = append(findings, warn("%s → %s: %s", from, to, note))
	}
	return findings
}

// hopRow is one step from a minor to the next.
type hopRow struct {
	// floor is the oldest patch of the old minor that may make the step.
	floor Version
	// advised is the patch of the old minor from which the step is well tried.
	advised Version
	// target is the oldest patch of the new minor that may be stepped to.
	target Version
	// notes hold for every such step; each completes "3.4.34 → 3.5.35: …".
	notes []string
}

// hopTo finds the step that ends at the minor of to.
func hopTo(to Version) (hopRow, bool) {
	for _, row := range hopRows() {
		if row.target.sameLine(to) {
			return row, true
		}
	}
	return hopRow{}, false
}

// hopRows lists the steps, oldest first. Sources: etcd.io/docs, "Upgrading
// etcd", the page of each minor; CHANGELOG-3.5.md v3.5.26 and v3.5.32;
// CHANGELOG-3.6.md v3.6.4. The trap of the write-ahead log at 3.7 was measured
// on real servers (3.5.35 → 3.6.16 → 3.7.3) and is in no upgrade guide.
func hopRows() []hopRow {
	return []hopRow{
		{
			floor: Version{3, 2, 29}, advised: Version{3, 2, 29}, target: Version{3, 3, 0},
			notes: []string{"with auth enabled, short leases may differ between the members while both versions run: keep the roll short"},
		},
		{
			floor: Version{3, 3, 22}, advised: Version{3, 3, 22}, target: Version{3, 4, 0},
			notes: []string{"3.4 no longer serves the v2 API by default: check that no client uses it"},
		},
		{
			floor: Version{3, 4, 0}, advised: Version{3, 4, 45}, target: Version{3, 5, 0},
			notes: []string{"a rolling upgrade is unsupported while auth is enabled: if it is, turn it off for the roll, or move the data to a new cluster"},
		},
		{
			floor: Version{3, 5, 26}, advised: Version{3, 5, 32}, target: Version{3, 6, 4},
			notes: []string{"3.6 does not start on data of the v2 API: if enable-v2 was ever on, run `etcdutl check v2store` first"},
		},
		{
			floor: Version{3, 6, 11}, advised: Version{3, 6, 11}, target: Version{3, 7, 0},
			notes: []string{"3.7 panics on log entries that 3.5 wrote: if the cluster ever ran 3.5, restart each member once on 3.6 with snapshot-count=1, write a few keys, and only then go on"},
		},
	}
}

// refuse makes a finding that forbids.
func refuse(format string, args ...any) Finding {
	return Finding{Severity: Refuse, Message: fmt.Sprintf(format, args...)}
}

// warn makes a finding that only tells.
func warn(format string, args ...any) Finding {
	return Finding{Severity: Warn, Message: fmt.Sprintf(format, args...)}
}
