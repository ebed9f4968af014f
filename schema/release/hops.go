package release

// Hop reports what lies between one member, which runs from, and the target.
// It reports nothing for a patch up or the same version. A minor down is taken for
// a downgrade of the whole cluster: whether it only undoes a rollout that is still
// in progress is for the planner to know. Where Path knows a detour, the refusal
// names it.
func Hop(from, to Version) []Finding {
	switch {
	case from.Major != to.Major:
		return []Finding{refuse("%s → %s: etcd cannot change its major version in place: make a new cluster and move the data", from, to)}
	case to.Minor < from.Minor:
		return minorDown(from, to)
	case to.Minor > from.Minor+1:
		return []Finding{refuse("%s → %s: etcd must not skip a minor, the members of the old one would crash%s", from, to, detour(from, to))}
	case to.Minor > from.Minor:
		return minorUp(from, to)
	case to.before(from):
		return []Finding{warn("%s → %s: this reverts fixes: read the changelog of the releases between", from, to)}
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

// stepwise ends a sentence with the path that quorate can take on its own, and is
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
		return []Finding{refuse("%s → %s: this version of quorate does not support the step: update quorate first", from, to)}
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

// minorDown checks a downgrade through etcd's own API.
func minorDown(from, to Version) []Finding {
	path, err := pathDown(from, to)
	switch {
	case err != nil:
		return []Finding{{Severity: Refuse, Message: err.Error()}}
	case len(path) > 1:
		return []Finding{refuse("%s → %s: %s cannot be downgraded safely, every member must first run %s or later%s",
			from, to, from, path[0], stepwise(from, to))}
	}
	return []Finding{warn("%s → %s: a downgrade, through etcd's own API and after a backup: what only %s can do is lost, and until the last member runs %s a revert cancels it",
		from, to, from.Line(), to)}
}

// OldestLog is the oldest line whose log entries a member of the line of to can
// read, and false where it reads those of every line that the catalogue knows. A
// member panics at older entries when it starts.
func OldestLog(to Version) (line string, limited bool) {
	for _, row := range hopRows() {
		if row.reads != (Version{}) && !to.before(row.target) {
			line, limited = row.reads.Line(), true
		}
	}
	return line, limited
}

// WritesOld reports whether a member that runs v writes log entries that a later line cannot
// read: see OldestLog.
func WritesOld(v Version) bool {
	for _, row := range hopRows() {
		if row.reads != (Version{}) && v.before(row.reads) {
			return true
		}
	}
	return false
}
