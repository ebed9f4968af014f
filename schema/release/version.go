package release

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is one etcd release. It is comparable with == and may be a map key.
type Version struct {
	Major, Minor, Patch int
}

// Parse reads exactly MAJOR.MINOR.PATCH. The error of any other text tells what
// to write instead.
func Parse(text string) (Version, error) {
	if v, ok := plain(text); ok {
		return v, nil
	}
	if hint := wrongForm(text); hint != "" {
		return Version{}, fmt.Errorf("%s is not an etcd release: %s", quoted(text), hint)
	}
	var numbers [3]int
	for i, part := range strings.Split(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return Version{}, fmt.Errorf("%s is not an etcd release: the number %s is too large", quoted(text), quoted(part))
		}
		numbers[i] = n
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2]}, nil
}

// plain reads a version of three plain numbers without allocating: a pass over a
// cluster at rest reads many. Whatever it does not take may still be right.
func plain(text string) (v Version, ok bool) {
	const digits = 6
	for i, number := range []*int{&v.Major, &v.Minor, &v.Patch} {
		part, rest, dot := strings.Cut(text, ".")
		if dot != (i < 2) || part == "" || len(part) > digits || (part[0] == '0' && part != "0") {
			return Version{}, false
		}
		for _, c := range []byte(part) {
			if c < '0' || c > '9' {
				return Version{}, false
			}
			*number = *number*10 + int(c-'0')
		}
		text = rest
	}
	return v, true
}

// String writes the version as in "3.6.16", without a leading v.
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Line is the release line of the version, its major and minor, as in "3.6".
func (v Version) Line() string {
	return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor)
}

// Compare is negative when a is older than b, zero when they are the same, and
// positive when a is newer.
func Compare(a, b Version) int {
	return cmp.Or(
		cmp.Compare(a.Major, b.Major),
		cmp.Compare(a.Minor, b.Minor),
		cmp.Compare(a.Patch, b.Patch),
	)
}

// sameLine reports whether both are of one release line, as Line does in text.
func (v Version) sameLine(other Version) bool {
	return v.Major == other.Major && v.Minor == other.Minor
}

// before reports whether v is older than other.
func (v Version) before(other Version) bool { return Compare(v, other) < 0 }
