package release_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

func TestPath(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"53 same version", "3.6.16", "3.6.16", ""},
		{"53 same version, although it is bad", "3.5.1", "3.5.1", ""},
		{"53 patch up is one stop", "3.5.12", "3.5.21", "3.5.21"},
		{"53 patch down is one stop", "3.5.35", "3.5.21", "3.5.21"},
		{"53 a patch newer than the catalogue", "3.6.16", "3.6.99", "3.6.99"},
		{"53 a minor up", "3.5.35", "3.6.12", "3.6.12"},
		{"55 a minor up from below the advice", "3.5.12", "3.6.16", "3.5.35 3.6.16"},
		{"55 a minor up from the floor, below the advice", "3.5.26", "3.6.16", "3.6.16"},
		{"55 a minor up from just below the floor", "3.5.25", "3.6.16", "3.5.35 3.6.16"},
		{"55 a minor up from the advice stays on its patch", "3.5.32", "3.6.16", "3.6.16"},
		{"55 a patch newer than the catalogue is good enough", "3.5.99", "3.6.16", "3.6.16"},
		{"53 two minors up", "3.4.34", "3.6.16", "3.5.35 3.6.16"},
		{"53 all minors up", "3.2.0", "3.7.3", "3.2.32 3.3.27 3.4.45 3.5.35 3.6.16 3.7.3"},
		{"53 the target is not overshot", "3.4.45", "3.5.21", "3.5.21"},
		{"53 a minor down by the downgrade API", "3.7.3", "3.6.16", "3.6.16"},
		{"53 a minor down from the first that can", "3.6.16", "3.5.35", "3.5.35"},
		{"53 a minor down from a release whose downgrade fails", "3.7.1", "3.6.16", "3.7.3 3.6.16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, err := release.Path(must(t, c.from), must(t, c.to))
			if got := strings.Trim(fmt.Sprint(path), "[]"); err != nil || got != c.want {
				t.Fatalf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestPathRefuses(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"53 unknown minor", "3.7.3", "3.8.0", "update quorate first"},
		{"53 from an unknown minor", "3.8.0", "3.7.3", "update quorate first"},
		{"53 too old", "3.1.20", "3.7.3", "upgrade to 3.2.32 manually first"},
		{"53 major up", "3.7.3", "4.0.0", "etcd 4 is not supported"},
		{"53 major down", "3.7.3", "2.3.8", "etcd 2 is not supported"},
		{"53 two minors down", "3.7.3", "3.5.35", "downgrades one minor at a time: go to a release of 3.6 first"},
		{"53 down to 3.4", "3.5.35", "3.4.45", "etcd 3.5 has no downgrade: restore a backup"},
		{"53 down to 3.2", "3.4.45", "3.2.32", "has no downgrade"},
		{"53 to a bad release", "3.5.35", "3.6.1", "use 3.6.4 or later"},
		{"53 to a bad patch", "3.5.35", "3.5.1", "use 3.5.3 or later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, err := release.Path(must(t, c.from), must(t, c.to))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, %v, want an error with %q", path, err, c.want)
			}
		})
	}
}

// Every path ends at its target, gets there monotonously, and no stop of it is
// one that Hop or Bad would refuse.
func TestPathIsSound(t *testing.T) {
	var all []release.Version
	for _, line := range []string{"3.2", "3.3", "3.4", "3.5", "3.6", "3.7"} {
		last, known := release.Latest(line)
		if !known {
			t.Fatalf("no line %s", line)
		}
		for patch := range last.Patch + 2 {
			all = append(all, release.Version{Major: 3, Minor: last.Minor, Patch: patch})
		}
	}
	for _, from := range all {
		for _, to := range all {
			checkPath(t, from, to)
		}
	}
}

func checkPath(t *testing.T, from, to release.Version) {
	t.Helper()
	path, err := release.Path(from, to)
	up := release.Compare(from, to) < 0
	if err != nil {
		if up && !refused(release.Bad(to)) {
			t.Errorf("%s → %s: %v", from, to, err)
		}
		return
	}
	if from != to && path[len(path)-1] != to {
		t.Fatalf("%s → %s ends elsewhere: %v", from, to, path)
	}
	if up && !slices.IsSortedFunc(path, release.Compare) {
		t.Errorf("%s → %s goes back and forth: %v", from, to, path)
	}
	for at := from; len(path) > 0; at, path = path[0], path[1:] {
		if refused(release.Hop(at, path[0])) || refused(release.Bad(path[0])) {
			t.Errorf("%s → %s stops at %s after %s:\n%s", from, to, path[0], at, texts(release.Hop(at, path[0])))
		}
	}
}
