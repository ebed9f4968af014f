package release

import (
	"fmt"
	"slices"
)

// latest are the newest releases of each line when this catalogue was written,
// oldest line first. A newer patch of a known line is taken as well: patches
// bring fixes, not flags to learn.
func latest() []Version {
	return []Version{
		{3, 2, 32}, {3, 3, 27}, {3, 4, 45}, {3, 5, 35}, {3, 6, 16}, {3, 7, 3},
	}
}

// Latest is the newest release of a line such as "3.6" that the catalogue
// knows, and false for a line that it does not know.
func Latest(line string) (Version, bool) {
	for _, v := range latest() {
		if v.Line() == line {
			return v, true
		}
	}
	return Version{}, false
}

// Known is nil when quorate knows the release line of v. The error says what
// to do; an unknown patch of a known line is no error.
func Known(v Version) error {
	all := latest()
	if slices.ContainsFunc(all, v.sameLine) {
		return nil
	}
	oldest, newest := all[0], all[len(all)-1]
	known := fmt.Sprintf("etcd %s to %s", oldest.Line(), newest.Line())
	switch {
	case v.Major != newest.Major:
		return fmt.Errorf("etcd %d is not supported: quorate runs etcd 3 only, write a release such as %q", v.Major, newest)
	case newest.before(v):
		return fmt.Errorf("etcd %s is not known to this quorate, which knows %s: update quorate first, or write %s", v.Line(), known, newest)
	default:
		return fmt.Errorf("etcd %s is too old for quorate, which knows %s: upgrade to %s by hand first", v.Line(), known, oldest)
	}
}

// next is the latest release of the line after that of v, and false at the
// newest line.
func next(v Version) (Version, bool) {
	all := latest()
	i := slices.IndexFunc(all, func(l Version) bool { return l.sameLine(v) })
	if i < 0 || i+1 == len(all) {
		return Version{}, false
	}
	return all[i+1], true
}
