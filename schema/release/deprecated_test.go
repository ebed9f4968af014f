package release_test

import (
	"testing"

	"github.com/quorate/quorate/schema/release"
)

func TestDeprecated(t *testing.T) {
	for _, c := range []struct{ name, version, flag, want string }{
		{"56 flag that stays", "3.6.16", "heartbeat-interval", ""},
		{"56 flag that etcd never had", "3.6.16", "banana", ""},
		{"56 not yet", "3.5.35", "experimental-corrupt-check-time", ""},
		{"56 deprecated, with a newer name", "3.6.0", "experimental-corrupt-check-time", "experimental-corrupt-check-time is deprecated, and etcd 3.7 removes it: write corrupt-check-time"},
		{"56 deprecated, now a gate", "3.6.16", "experimental-initial-corrupt-check", "experimental-initial-corrupt-check is deprecated, and etcd 3.7 removes it: write feature-gates: InitialCorruptCheck=true"},
		{"56 removed, with a newer name", "3.7.3", "experimental-corrupt-check-time", "etcd 3.7 removed experimental-corrupt-check-time: write corrupt-check-time"},
		{"56 removed in the next minor without a warning", "3.4.34", "experimental-backend-bbolt-freelist-type", "etcd 3.5 removes experimental-backend-bbolt-freelist-type: write backend-bbolt-freelist-type"},
		{"56 removed later", "3.3.27", "debug", ""},
		{"56 deprecated and not replaced", "3.5.35", "proxy-read-timeout", "proxy-read-timeout is deprecated, and etcd 3.6 removes it: leave it out"},
		{"56 deprecated, removed in a minor to come", "3.7.3", "max-snapshots", "max-snapshots is deprecated, and etcd 3.8 removes it: leave it out"},
		{"56 etcd took the deprecation back", "3.6.16", "snapshot-count", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, deprecated := release.Deprecated(must(t, c.version), c.flag)
			if got != c.want || deprecated != (c.want != "") {
				t.Fatalf("got %q, %v, want %q", got, deprecated, c.want)
			}
		})
	}
}
