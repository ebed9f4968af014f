package release_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

// must reads a version that the test itself wrote.
func must(t *testing.T, text string) release.Version {
	t.Helper()
	v, err := release.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return v
}

// texts are the findings as lines "refuse: message".
func texts(findings []release.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(f.Severity.String() + ": " + f.Message + "\n")
	}
	return b.String()
}

// refused reports whether any of the findings forbids the action.
func refused(findings []release.Finding) bool {
	return slices.ContainsFunc(findings, func(f release.Finding) bool { return f.Severity == release.Refuse })
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, wantErr string }{
		{"1 release", "3.6.16", ""},
		{"1 first release of a line", "3.7.0", ""},
		{"4 version with v prefix", "v3.5.1", `leave out the v: "3.5.1"`},
		{"4 one number", "3", "all three numbers"},
		{"4 two numbers", "3.5", "all three numbers"},
		{"4 v and two numbers", "v3.5", "MAJOR.MINOR.PATCH"},
		{"4 four numbers", "3.5.1.2", "three numbers only"},
		{"4 moving tag", "latest", "moving tag"},
		{"4 pattern", "3.5.x", "pattern"},
		{"4 digest", "sha256:0123", "digest"},
		{"4 tag and digest", "3.5.1@sha256:0123", "digest"},
		{"4 pre-release", "3.6.0-rc.1", "pre-releases"},
		{"4 build", "3.6.0+git", "pre-releases"},
		{"4 leading zero", "3.06.1", "three numbers"},
		{"4 white space", " 3.6.1", "white space"},
		{"4 negative", "3.-1.0", "pre-releases"},
		{"4 too large", "3.6.99999999999999999999", "too large"},
		{"3 nothing", "", "write MAJOR.MINOR.PATCH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := release.Parse(c.text)
			if c.wantErr == "" {
				if err != nil || v.String() != c.text {
					t.Fatalf("got %v, %v", v, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.wantErr) {
				t.Fatalf("got %v, %v, want an error with %q", v, err, c.wantErr)
			}
		})
	}
}

func TestCompareOrdersAsNumbers(t *testing.T) {
	versions := []release.Version{{Major: 3, Minor: 6, Patch: 10}, {Major: 3, Minor: 10, Patch: 0}, {Major: 3, Minor: 6, Patch: 9}, {Major: 2, Minor: 9, Patch: 9}}
	slices.SortFunc(versions, release.Compare)
	want := []release.Version{{Major: 2, Minor: 9, Patch: 9}, {Major: 3, Minor: 6, Patch: 9}, {Major: 3, Minor: 6, Patch: 10}, {Major: 3, Minor: 10, Patch: 0}}
	if !slices.Equal(versions, want) {
		t.Fatalf("got %v", versions)
	}
}

func TestKnown(t *testing.T) {
	for _, c := range []struct{ name, version, want string }{
		{"known patch", "3.6.16", ""},
		{"patch newer than the catalogue", "3.6.99", ""},
		{"4 major 2", "2.3.8", "etcd 2 is not supported"},
		{"4 major 4", "4.0.0", "etcd 4 is not supported"},
		{"newer minor", "3.8.0", "update quorate first"},
		{"older minor", "3.1.20", "too old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := release.Known(must(t, c.version))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestBad(t *testing.T) {
	for _, c := range []struct {
		version string
		refused bool
		want    string
	}{
		{"3.5.0", true, "consistency"},
		{"3.5.2", true, "use 3.5.3 or later"},
		{"3.5.3", false, "panics at start when auth"},
		{"3.6.0", true, "promotion"},
		{"3.6.3", true, "use 3.6.4 or later"},
		{"3.6.4", false, "defragmentation"},
		{"3.7.0", false, "GHSA-6vch-q96h-7gc3"},
		{"3.7.1", false, "downgraded"},
		{"3.4.20", false, "auth is enabled"},
		{"3.4.8", false, "write-ahead log"},
		{"3.3.27", false, "etcd 3.3 gets no fixes any more since 2021-10 and quorate is not tested with it"},
		{"3.6.99", false, "3.6.99 is newer than 3.6.16, the newest release of etcd 3.6 that this version of quorate knows: check that it exists"},
		{"3.4.45", false, "etcd 3.4 gets no fixes any more since 2026-06: move on"},
	} {
		t.Run("53 "+c.version, func(t *testing.T) {
			findings := release.Bad(must(t, c.version))
			if got := texts(findings); refused(findings) != c.refused || !strings.Contains(got, c.want) {
				t.Fatalf("got:\n%s", got)
			}
		})
	}
	for _, good := range []string{"3.5.35", "3.6.16", "3.7.2", "3.7.3"} {
		t.Run("53 nothing against "+good, func(t *testing.T) {
			if got := texts(release.Bad(must(t, good))); got != "" {
				t.Fatalf("got:\n%s", got)
			}
		})
	}
}

// A release with many faults gets one sentence, and what it advises has none of them.
func TestBad334FaultsAreOneWarning(t *testing.T) {
	for version, want := range map[string]string{
		"3.5.21": "warn: 3.5.21 may corrupt data when a defragmentation meets an incoming snapshot, and has 9 more known faults: use 3.5.33 or later\n",
		"3.5.32": "warn: 3.5.32 can be stopped by clients that never finish the TLS handshake (GHSA-6vch-q96h-7gc3), and has another known fault: use 3.5.33 or later\n",
		"3.7.0":  "warn: 3.7.0 can be stopped by clients that never finish the TLS handshake (GHSA-6vch-q96h-7gc3), and has 2 more known faults: use 3.7.2 or later\n",
	} {
		if got := texts(release.Bad(must(t, version))); got != want {
			t.Errorf("%s:\n%s", version, got)
		}
	}
}

func TestHop(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"53 same version", "3.6.16", "3.6.16", ""},
		{"53 patch up", "3.6.4", "3.6.16", ""},
		{"53 patch down", "3.6.16", "3.6.4", "warn: 3.6.16 → 3.6.4: this reverts fixes"},
		{"53 minor skipped", "3.4.34", "3.6.16", "refuse: 3.4.34 → 3.6.16: etcd must not skip a minor, the members of the old one would crash; with `path: Stepwise` quorate goes through 3.5.35"},
		{"53 three minors skipped", "3.2.28", "3.6.16", "would crash; with `path: Stepwise` quorate goes through 3.2.32, 3.3.27, 3.4.45 and 3.5.35"},
		{"53 minor skipped to a bad release", "3.4.34", "3.6.1", "would crash: go one minor at a time"},
		{"53 minor skipped to an unknown one", "3.6.16", "3.9.0", "would crash: go one minor at a time"},
		{"53 minor down", "3.6.16", "3.5.35", "warn: 3.6.16 → 3.5.35: a downgrade, through etcd's own API"},
		{"53 minor down from a release that cannot", "3.7.1", "3.6.16", "refuse: 3.7.1 → 3.6.16: 3.7.1 cannot be downgraded safely, every member must first run 3.7.3 or later; with `path: Stepwise` quorate goes through 3.7.3"},
		{"53 two minors down", "3.7.3", "3.5.35", "refuse: 3.7.3 → 3.5.35: etcd downgrades one minor at a time"},
		{"53 down to 3.4", "3.5.35", "3.4.45", "refuse: 3.5.35 → 3.4.45: etcd 3.5 has no downgrade: restore a backup"},
		{"53 major down", "3.6.16", "2.3.8", "refuse: 3.6.16 → 2.3.8: etcd cannot change its major"},
		{"53 major up", "3.7.3", "4.0.0", "refuse"},
		{"55 below the floor of 3.6", "3.5.12", "3.6.16", "refuse: 3.5.12 → 3.6.16: every member must first run 3.5.32 or later; with `path: Stepwise` quorate goes through 3.5.35\n"},
		{"55 just below the floor of 3.6", "3.5.25", "3.6.16", "refuse"},
		{"55 between floor and advice", "3.5.26", "3.6.16", "warn: 3.5.26 → 3.6.16: every member should first run 3.5.32 or later"},
		{"55 below the floor, to a bad release", "3.5.12", "3.6.3", "every member must first run 3.5.32 or later\n"},
		{"55 to a bad start of 3.6", "3.5.35", "3.6.3", "refuse: 3.5.35 → 3.6.3: go to 3.6.4 or later instead"},
		{"55 below the floor of 3.7", "3.6.10", "3.7.3", "refuse: 3.6.10 → 3.7.3: every member must first run 3.6.11 or later; with `path: Stepwise` quorate goes through 3.6.16"},
		{"55 below the floor of 3.4", "3.3.21", "3.4.45", "refuse: 3.3.21 → 3.4.45: every member must first run 3.3.22 or later; with `path: Stepwise` quorate goes through 3.3.27"},
		{"55 below the floor of 3.3", "3.2.28", "3.3.27", "refuse: 3.2.28 → 3.3.27: every member must first run 3.2.31 or later; with `path: Stepwise` quorate goes through 3.2.32"},
		{"55 3.4 not the latest", "3.4.34", "3.5.21", "warn: 3.4.34 → 3.5.21: every member should first run 3.4.45 or later"},
		{"53 unknown minor", "3.7.3", "3.8.0", "refuse: 3.7.3 → 3.8.0: this version of quorate does not support"},
		{"55 3.7 from the latest 3.6", "3.6.16", "3.7.3", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := texts(release.Hop(must(t, c.from), must(t, c.to)))
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Fatalf("got:\n%s\nwant %q", got, c.want)
			}
			if strings.HasPrefix(c.want, "warn") && strings.Contains(got, "refuse") {
				t.Fatalf("refused:\n%s", got)
			}
		})
	}
}

func TestHopLetsTheUsualPathThrough(t *testing.T) {
	path := []string{"3.4.34", "3.5.21", "3.5.35", "3.6.16", "3.7.3"}
	for i := 1; i < len(path); i++ {
		if findings := release.Hop(must(t, path[i-1]), must(t, path[i])); refused(findings) {
			t.Errorf("%s → %s:\n%s", path[i-1], path[i], texts(findings))
		}
	}
}

func TestProbes(t *testing.T) {
	for _, c := range []struct{ version, startup, readiness string }{
		{"3.3.27", "/health", "/health"},
		{"3.4.28", "/health", "/health"},
		{"3.4.29", "/livez", "/readyz"},
		{"3.5.0", "/health?serializable=true", "/health"},
		{"3.5.10", "/health?serializable=true", "/health"},
		{"3.5.11", "/livez", "/readyz"},
		{"3.6.0", "/livez", "/readyz"},
		{"3.7.3", "/livez", "/readyz"},
	} {
		startup, readiness := release.Probes(must(t, c.version))
		if startup != c.startup || readiness != c.readiness {
			t.Errorf("%s: got %s, %s", c.version, startup, readiness)
		}
	}
}

func TestNearest(t *testing.T) {
	candidates := []string{"heartbeat-interval", "election-timeout", "metrics"}
	for word, want := range map[string]string{
		"heartbeat-intervall": "heartbeat-interval", "electionTimeout": "election-timeout", "metric": "metrics",
		"banana": "", "": "", strings.Repeat("metrics", 100): "",
	} {
		if got := release.Nearest(word, candidates); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", word, got, want)
		}
	}
}

func TestOldestLog(t *testing.T) {
	for v, want := range map[string]string{"3.4.45": "", "3.6.16": "", "3.7.0": "3.6", "3.7.3": "3.6", "3.7.99": "3.6"} {
		if line, limited := release.OldestLog(must(t, v)); line != want || limited != (want != "") {
			t.Errorf("%s reads the log of %q and later, %t, want %q", v, line, limited, want)
		}
	}
}

func TestWritesOld(t *testing.T) {
	for v, want := range map[string]bool{"3.4.45": true, "3.5.99": true, "3.6.0": false, "3.7.3": false} {
		if got := release.WritesOld(must(t, v)); got != want {
			t.Errorf("%s writes what a later one cannot read: %t", v, got)
		}
	}
}

// A release starts on data of its own minor and of the one before.
func TestStartsOn(t *testing.T) {
	for data, test := range map[string]struct {
		version string
		want    bool
	}{
		"3.6.1": {"3.6.16", true}, "3.5.35": {"3.6.16", true}, "3.4.34": {"3.6.16", false}, "3.7.3": {"3.6.16", false},
		"4.6.1": {"3.6.16", false}, "": {"", false}, "3.6.2": {"", false}, "3.6": {"3.6.16", false},
	} {
		if got := release.StartsOn(data, test.version); got != test.want {
			t.Errorf("%q on data of %q: %t", test.version, data, got)
		}
	}
}
