package release_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

// What authentication forbids is said by etcd's upgrade guide and by its list of faults.
func TestWithAuthentication(t *testing.T) {
	hop := func(from, to string) string { return release.HopWithAuth(must(t, from), must(t, to)) }
	for _, c := range []struct{ name, said, want string }{
		{"3.4 → 3.5", hop("3.4.45", "3.5.35"), "no rollout between 3.4 and 3.5 while authentication is on"},
		{"back, in the midst of a roll", hop("3.5.35", "3.4.45"), "no rollout between 3.4 and 3.5"},
		{"3.3 → 3.4", hop("3.3.27", "3.4.45"), ""},
		{"3.5 → 3.6", hop("3.5.35", "3.6.16"), ""},
		{"3.6 → 3.5", hop("3.6.16", "3.5.35"), ""},
		{"3.6 → 3.7", hop("3.6.16", "3.7.3"), ""},
		{"a patch", hop("3.4.44", "3.4.45"), ""},
		{"to one that panics", hop("3.5.4", "3.5.3"), "3.5.3 panics at start when auth is enabled, which 3.5.4 fixes"},
		{"settings of one that panics", hop("3.5.3", "3.5.3"), ""},
		{"away from one that panics", hop("3.5.3", "3.5.35"), ""},
		{"join on 3.4.19", release.JoinWithAuth(must(t, "3.4.19")), ""},
		{"join on 3.4.20", release.JoinWithAuth(must(t, "3.4.20")), "3.4.20 may diverge when a member is added while auth is enabled, which 3.4.22 fixes"},
		{"join on 3.4.21", release.JoinWithAuth(must(t, "3.4.21")), "3.4.22 fixes"},
		{"join on 3.4.22", release.JoinWithAuth(must(t, "3.4.22")), ""},
		{"join on 3.5.5", release.JoinWithAuth(must(t, "3.5.5")), "3.5.6 fixes"},
		{"join on 3.5.6", release.JoinWithAuth(must(t, "3.5.6")), ""},
		{"enable on 3.5.3", release.EnableAuth(must(t, "3.5.3")), "3.5.4 fixes"},
		{"enable on 3.5.4", release.EnableAuth(must(t, "3.5.4")), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" && c.said != "" || !strings.Contains(c.said, c.want) {
				t.Errorf("it says %q, want %q", c.said, c.want)
			}
		})
	}
}
