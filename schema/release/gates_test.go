package release_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

func TestGates(t *testing.T) {
	for version, want := range map[string]int{"3.4.34": 0, "3.5.35": 0, "3.6.0": 9, "3.6.16": 9, "3.7.3": 11} {
		gates := release.Gates(must(t, version))
		if len(gates) != want {
			t.Errorf("%s has %d gates, want %d", version, len(gates), want)
		}
		if !slices.IsSortedFunc(gates, func(a, b release.Gate) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s: not sorted: %v", version, gates)
		}
	}
	if fast := (release.Gate{Name: "FastLeaseKeepAlive", Stage: release.Beta, Default: true}); !slices.Contains(release.Gates(must(t, "3.7.3")), fast) {
		t.Errorf("3.7.3 does not have %v", fast)
	}
}

func TestCheckGate(t *testing.T) {
	for _, c := range []struct{ name, version, gate, want string }{
		{"56 gate", "3.6.16", "CompactHashCheck", ""},
		{"56 gate of all", "3.7.3", "AllBeta", ""},
		{"56 gate that was a flag", "3.5.35", "CompactHashCheck", ""},
		{"56 gate that was a flag of a later line", "3.4.34", "CompactHashCheck", "came with 3.6"},
		{"56 gate of a later line", "3.6.16", "FastLeaseKeepAlive", "came with 3.7"},
		{"56 typing error", "3.6.16", "compactHashChek", "did you mean CompactHashCheck?"},
		{"56 no gate at all", "3.6.16", "banana", `etcd has no feature gate "banana"`},
		{"56 unknown minor", "3.8.0", "CompactHashCheck", "update quorate first"},
		{"56 nothing", "3.6.16", "", "no feature gate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := release.CheckGate(must(t, c.version), c.gate)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}
