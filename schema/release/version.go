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

// Parse reads exactly MAJOR.MINOR.PATCH. The error of any other text says what
// to write instead.
func Parse(text string) (Version, error) {
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

// String writes the version as in "3.6.16", without a leading v.
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Line is the release line of the version, its major and minor, as in "3.6".
func (v Version) Line() string {
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
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

// sameLine says whether both are of one release line, as Line does in text.
func (v Version) sameLine(other Version) bool {
	return v.Major == other.Major && v.Minor == other.Minor
}

// before says whether v is older than other.
func (v Version) before(other Version) bool { return Compare(v, other) < 0 }
