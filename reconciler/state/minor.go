package state

import (
	"github.com/quorate/quorate/schema/release"
)

// Minor is the minor release of a version text: "3.6" of "3.6.16", or "".
func Minor(version string) string {
	v, err := release.Parse(version)
	if err != nil {
		return ""
	}
	return v.Line()
}

// Older reports whether one minor, such as "3.5", comes before another. A text that
// is none comes before nothing.
func Older(a, b string) bool {
	va, errA := release.Parse(a + ".0")
	vb, errB := release.Parse(b + ".0")
	return errA == nil && errB == nil && release.Compare(va, vb) < 0
}
