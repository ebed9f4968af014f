package release_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

// Whatever a file in Git says, what is rendered is a command line that the
// version knows: each flag once, each argument one line.
func FuzzFlags(f *testing.F) {
	f.Add(uint8(6), uint8(16), int64(2<<30), "periodic", "8h", true, "feature-gates", "CompactHashCheck=true, LeaseCheckpoint=false", "log-level", "debug")
	f.Add(uint8(7), uint8(3), int64(-1), "", "", false, "experimental-initial-corrupt-check", "false", "feature-gates", "InitialCorruptCheck=true")
	f.Add(uint8(5), uint8(35), int64(0), "revision", "1000", true, "compaction-batch-limit", "1", "experimental-compaction-batch-limit", "1")
	f.Add(uint8(4), uint8(34), int64(1), "periodic", "30m\n", true, "backend-bbolt-freelist-type", "map", "pre-vote", "false")
	f.Add(uint8(3), uint8(27), int64(1), "periodic", "1", false, "name\n--force-new-cluster", "x", "ca-file", "a\x00b")
	f.Add(uint8(2), uint8(0), int64(1), "revision", "1h", false, "feature-gates", "InitialCorruptCheck=true\n--x=y,=,", "logger", "capnslog")
	f.Add(uint8(94), uint8(27), int64(1), "0", "0", false, "name", "0", "0", "0")
	f.Add(uint8(6), uint8(16), int64(1), "0", "0", true, "\x00", "\x00", "logger", "\x00")
	f.Fuzz(func(t *testing.T, minor, patch uint8, quota int64, mode, retention string, skip bool, name1, value1, name2, value2 string) {
		v := release.Version{Major: 3, Minor: int(minor), Patch: int(patch)}
		flags, findings := release.Flags(v, release.Settings{
			QuotaBackendBytes: quota, AutoCompactionMode: mode, AutoCompactionRetention: retention, SkipPeerSAN: skip,
			Options: map[string]string{name1: value1, name2: value2},
		})
		checkCommandLine(t, v, flags)
		for _, finding := range findings {
			if strings.ContainsAny(finding.Message, "\n\r\x00") || finding.Message == "" {
				t.Errorf("a message of several lines: %q", finding.Message)
			}
		}
	})
}

// checkCommandLine checks each argument and all together.
func checkCommandLine(t *testing.T, v release.Version, flags []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, flag := range flags {
		name, _, ok := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !ok || !strings.HasPrefix(flag, "--") || !release.KnownFlag(v, name) {
			t.Errorf("%s does not know %q", v, flag)
		}
		if seen[name] {
			t.Errorf("%s gets %s twice: %q", v, name, flags)
		}
		if strings.ContainsAny(flag, "\n\r\x00") {
			t.Errorf("an argument of several lines: %q", flag)
		}
		seen[name] = true
	}
}
