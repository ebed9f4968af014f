package release_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

func TestDefaultsChanged(t *testing.T) {
	const (
		map35      = "3.5 keeps the list of free pages as a map instead of an array"
		snapshot36 = "3.6 takes a snapshot every 10000 entries instead of 100000"
		lease37    = "3.7 renews leases without waiting for the log to be applied"
	)
	for _, c := range []struct {
		name, from, to string
		want           []string
	}{
		{"same version", "3.6.16", "3.6.16", nil},
		{"patch", "3.6.4", "3.6.16", nil},
		{"one minor", "3.5.35", "3.6.16", []string{snapshot36}},
		{"several minors", "3.4.34", "3.7.3", []string{map35, snapshot36, lease37}},
		{"down", "3.6.16", "3.5.35", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := release.DefaultsChanged(must(t, c.from), must(t, c.to)); !slices.Equal(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDefault(t *testing.T) {
	for _, c := range []struct {
		version, flag, want string
		known               bool
	}{
		{"3.5.35", "snapshot-count", "100000", true},
		{"3.6.0", "snapshot-count", "10000", true},
		{"3.4.34", "experimental-backend-bbolt-freelist-type", "array", true},
		{"3.4.34", "backend-bbolt-freelist-type", "array", true},
		{"3.3.27", "pre-vote", "", false},
		{"3.6.16", "heartbeat-interval", "", false},
		{"3.6.16", "", "", false},
	} {
		got, known := release.Default(must(t, c.version), c.flag)
		if got != c.want || known != c.known {
			t.Errorf("Default(%s, %s) = %q, %v", c.version, c.flag, got, known)
		}
	}
}

func TestEndOfLife(t *testing.T) {
	for _, c := range []struct {
		line, month string
		passed      bool
	}{
		{"3.3", "2021-10", true},
		{"3.4", "2026-06", true},
		{"3.5", "2027-07", false},
		{"3.6", "", false},
		{"3.8", "", false},
	} {
		month, passed := release.EndOfLife(c.line)
		if month != c.month || passed != c.passed {
			t.Errorf("EndOfLife(%s) = %q, %v", c.line, month, passed)
		}
	}
}
