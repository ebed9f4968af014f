package etcdtest

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/quorate/quorate/test/needs"
)

// The releases that tests run.
const (
	V34 = "v3.4.34"
	V35 = "v3.5.35"
	V36 = "v3.6.16"
	V37 = "v3.7.3"
)

// Binary returns the path of a release of etcd. The test is skipped where it is not built.
func Binary(t testing.TB, version string) string {
	t.Helper()
	return needs.Server(t, "etcd-"+version)
}

// ForEach runs a test for each of the releases given, or for all. The subtests run beside each other, because they
// mostly wait for members. Under -short there is one, V36 if it is among them.
func ForEach(t *testing.T, test func(t *testing.T, version string), versions ...string) {
	t.Helper()
	if len(versions) == 0 {
		versions = []string{V34, V35, V36, V37}
	}
	if testing.Short() {
		if slices.Contains(versions, V36) {
			versions = []string{V36}
		}
		versions = versions[:1]
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

// Main is the TestMain of a package whose tests mostly wait for members: four run at a time.
func Main(m *testing.M) {
	AtOnce(4)
	os.Exit(m.Run()) //nolint:forbidigo // TestMain returns no error
}

// AtOnce parses the flags, and lets n tests of the package run at a time unless -parallel is given. It is for a TestMain
// whose tests mostly wait, so that their number does not follow from that of the processors.
func AtOnce(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // it is a number
	}
}
