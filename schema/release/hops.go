package release

// Hop says what stands between one member, which reports from, and the target.
// Nothing is said of a patch up or of the same version. Whether a minor down
// may be undone while the roll is still under way is for the planner to know:
// here it is refused. Where Path knows a way round, the refusal names it.
func Hop(from, to Version) []Finding {
	switch {
	case from.Major != to.Major:
		return []Finding{refuse("%s → %s: etcd cannot change its major version in place: make a new cluster and move the data", from, to)}
	case to.Minor < from.Minor:
		return []Finding{refuse("%s → %s: an older minor cannot read the data of a newer one: restore a backup into a new cluster instead", from, to)}
	case to.Minor > from.Minor+1:
		return []Finding{refuse("%s → %s: etcd must not skip a minor, the members of the old one would crash%s", from, to, detour(from, to))}
	case to.Minor > from.Minor:
		return minorUp(from, to)
	case to.before(from):
		return []Finding{warn("%s → %s: this takes back fixes: read the changelog of the releases between", from, to)}
	}
	return nil
}

// detour ends the sentence about a skipped minor.
func detour(from, to Version) string {
	if way := stepwise(from, to); way != "" {
		return way
	}
	return ": go one minor at a time"
}

// stepwise ends a sentence with the way that quorate can go by itself, and is
// "" where there is none.
func stepwise(from, to Version) string {
	path, err := Path(from, to)
	if err != nil || len(path) < 2 {
		return ""
	}
	return "; with `path: Stepwise` quorate goes through " + list(path[:len(path)-1])
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
		findings = append(findings, refuse("%s → %s: every member must first run %s or later%s", from, to, row.advised, stepwise(from, to)))
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
