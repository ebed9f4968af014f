package release

import (
	"fmt"
	"slices"
)

// Latest is the newest release of a line such as "3.6" that the catalogue
// knows, and false for a line that it does not know.
func Latest(line string) (Version, bool) {
	for _, row := range lineRows() {
		if row.latest.Line() == line {
			return row.latest, true
		}
	}
	return Version{}, false
}

// Known is nil when quorate knows the release line of v. The error tells what
// to do; an unknown patch of a known line is no error.
func Known(v Version) error {
	all := lineRows()
	if slices.ContainsFunc(all, func(row lineRow) bool { return row.latest.sameLine(v) }) {
		return nil
	}
	oldest, newest := all[0].latest, all[len(all)-1].latest
	known := fmt.Sprintf("etcd %s to %s", oldest.Line(), newest.Line())
	switch {
	case v.Major != newest.Major:
		return fmt.Errorf("etcd %d is not supported: quorate runs etcd 3 only, write a release such as %q", v.Major, newest)
	case newest.before(v):
		return fmt.Errorf("etcd %s is unknown to this version of quorate, which supports %s: update quorate first, or write %s", v.Line(), known, newest)
	default:
		return fmt.Errorf("etcd %s is too old for quorate, which supports %s: upgrade to %s manually first", v.Line(), known, oldest)
	}
}

// next is the latest release of the line after that of v, and false at the
// newest line.
func next(v Version) (Version, bool) {
	return Latest(Version{v.Major, v.Minor + 1, 0}.Line())
}
