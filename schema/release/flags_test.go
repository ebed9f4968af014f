package release_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

func TestFlags(t *testing.T) {
	base := release.Settings{QuotaBackendBytes: 2 << 30, AutoCompactionMode: "periodic", AutoCompactionRetention: "8h", SkipPeerSAN: true}
	for _, c := range []struct {
		name, version string
		settings      release.Settings
		want          string
	}{
		{"56 3.4", "3.4.34", base, "--auto-compaction-mode=periodic --auto-compaction-retention=8h --experimental-initial-corrupt-check=true " +
			"--experimental-peer-skip-client-san-verification=true --logger=zap --pre-vote=true --quota-backend-bytes=2147483648"},
		{"56 3.5", "3.5.35", base, "--auto-compaction-mode=periodic --auto-compaction-retention=8h --experimental-initial-corrupt-check=true " +
			"--experimental-peer-skip-client-san-verification=true --quota-backend-bytes=2147483648"},
		{"56 3.6", "3.6.16", base, "--auto-compaction-mode=periodic --auto-compaction-retention=8h --feature-gates=InitialCorruptCheck=true " +
			"--peer-skip-client-san-verification=true --quota-backend-bytes=2147483648"},
		{"56 3.7 nothing set", "3.7.3", release.Settings{}, "--feature-gates=InitialCorruptCheck=true"},
		{"56 3.2 counts in hours", "3.2.32", release.Settings{AutoCompactionMode: "periodic", AutoCompactionRetention: "8h"}, "--auto-compaction-retention=8"},
		{"56 old name on a new version", "3.6.16", options("experimental-compaction-batch-limit", "500"), "--compaction-batch-limit=500 --feature-gates=InitialCorruptCheck=true"},
		{"56 new name on an old version", "3.5.35", options("compaction-batch-limit", "500"), "--experimental-compaction-batch-limit=500 --experimental-initial-corrupt-check=true"},
		{"56 freelist on 3.4", "3.4.34", options("backend-bbolt-freelist-type", "map"), "--experimental-backend-bbolt-freelist-type=map --experimental-initial-corrupt-check=true --logger=zap --pre-vote=true"},
		{"56 flag becomes a gate", "3.6.16", options("experimental-compact-hash-check-enabled", "true"), "--feature-gates=CompactHashCheck=true,InitialCorruptCheck=true"},
		{"56 gate becomes a flag", "3.5.35", options("feature-gates", "CompactHashCheck=true"), "--experimental-compact-hash-check-enabled=true --experimental-initial-corrupt-check=true"},
		{"56 gates are merged", "3.7.3", options("feature-gates", "PriorityRequest=true, LeaseCheckpoint=true"), "--feature-gates=InitialCorruptCheck=true,LeaseCheckpoint=true,PriorityRequest=true"},
		{"56 all alpha gates", "3.6.16", options("feature-gates", "AllAlpha=true"), "--feature-gates=AllAlpha=true,InitialCorruptCheck=true"},
		{"56 the author wins in feature-gates", "3.6.16", options("feature-gates", "InitialCorruptCheck=false,CompactHashCheck=true"), "--feature-gates=CompactHashCheck=true,InitialCorruptCheck=false"},
		{"56 the author wins", "3.6.16", options("experimental-initial-corrupt-check", "false"), "--feature-gates=InitialCorruptCheck=false"},
		{"56 the author wins on 3.4", "3.4.34", options("pre-vote", "false"), "--experimental-initial-corrupt-check=true --logger=zap --pre-vote=false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			flags, findings := release.Flags(must(t, c.version), c.settings)
			if got := strings.Join(flags, " "); got != c.want || len(findings) > 0 {
				t.Fatalf("got  %s\nwant %s\n%s", got, c.want, texts(findings))
			}
		})
	}
}

// options is a pair of name and value as settings.
func options(name, value string) release.Settings {
	return release.Settings{Options: map[string]string{name: value}}
}

func TestFlagsRefuses(t *testing.T) {
	for _, c := range []struct {
		name, version string
		settings      release.Settings
		want          string
	}{
		{"8 unknown flag", "3.6.16", options("heartbeat-intervall", "1"), "etcd has no flag \"heartbeat-intervall\", did you mean heartbeat-interval?"},
		{"56 removed flag with successor", "3.5.35", options("log-output", "stderr"), "which etcd 3.5 removed: write log-outputs"},
		{"56 removed flag without successor", "3.6.16", options("enable-v2", "true"), "which etcd 3.6 removed: the v2 API is gone"},
		{"56 flag of a later patch", "3.5.7", options("tls-min-version", "TLS1.2"), "came with 3.5.8"},
		{"56 flag of a later line", "3.5.35", options("max-learners", "2"), "came with 3.6.0"},
		{"56 removed value", "3.5.35", options("logger", "capnslog"), "not taken from etcd 3.5 on"},
		{"56 unknown gate", "3.6.16", options("feature-gates", "InitialCorruptChek=true"), "did you mean InitialCorruptCheck?"},
		{"56 gate of a later line", "3.6.16", options("feature-gates", "PriorityRequest=true"), "came with 3.7"},
		{"56 gate that never was a flag", "3.5.35", options("feature-gates", "SetMemberLocalAddr=true"), "came with 3.6"},
		{"56 gate without a value", "3.6.16", options("feature-gates", "InitialCorruptCheck"), "write a list"},
		{"56 gate with a wrong value", "3.6.16", options("feature-gates", "InitialCorruptCheck=yes"), "write true or false"},
		{"56 old name of a gate with a wrong value", "3.7.3", options("experimental-initial-corrupt-check", "on"), "experimental-initial-corrupt-check: write true or false"},
		{"56 two flags that clash", "3.4.34", release.Settings{Options: map[string]string{"log-output": "stderr", "log-outputs": "stderr"}}, "must not be set both: keep log-outputs"},
		{"56 unknown minor", "3.8.0", release.Settings{}, "update quorate first"},
		{"56 value of two lines", "3.7.3", options("log-level", "info\n--name=x"), "the value must be one line"},
		{"56 value with a NUL", "3.4.34", options("compaction-batch-limit", "1\x00"), "compaction-batch-limit: the value must be one line"},
		{"56 two names, two values", "3.6.16", release.Settings{Options: map[string]string{"compaction-batch-limit": "1", "experimental-compaction-batch-limit": "2"}}, "one setting with two values"},
		{"56 3.2 has no revision mode", "3.2.32", release.Settings{AutoCompactionMode: "revision", AutoCompactionRetention: "1000"}, "whole hours only"},
		{"56 3.2 has no minutes", "3.2.32", release.Settings{AutoCompactionMode: "periodic", AutoCompactionRetention: "30m"}, "whole hours only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, findings := release.Flags(must(t, c.version), c.settings)
			if got := texts(findings); !refused(findings) || !strings.Contains(got, c.want) {
				t.Fatalf("got:\n%s\nwant %q", got, c.want)
			}
		})
	}
}

// What is rendered for a version must be known to it, whatever was asked for:
// an unknown flag keeps etcd from starting.
func TestFlagsAreAlwaysKnown(t *testing.T) {
	lines := []string{"3.2.0", "3.3.27", "3.4.0", "3.4.45", "3.5.0", "3.5.35", "3.6.16", "3.7.3"}
	for _, from := range lines {
		for _, name := range release.KnownFlags(must(t, from)) {
			settings := options(name, "true")
			settings.AutoCompactionMode, settings.AutoCompactionRetention, settings.SkipPeerSAN = "periodic", "8h", true
			for _, line := range lines {
				v := must(t, line)
				flags, _ := release.Flags(v, settings)
				for _, flag := range flags {
					spelled, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
					if !release.KnownFlag(v, spelled) {
						t.Errorf("%s as an option gives %s the unknown flag %s", name, v, flag)
					}
				}
				if !slices.IsSorted(flags) {
					t.Errorf("%s: not sorted: %v", v, flags)
				}
			}
		}
	}
}

// Samples of the table, read off etcd's own help texts.
// 286: whether a member compares its data when it starts, by any spelling, in each minor.
func TestComparesAtStart(t *testing.T) {
	for _, c := range []struct {
		version, option, value string
		want                   bool
	}{
		{"3.4.34", "", "", false},
		{"3.5.35", "", "", false},
		{"3.6.16", "", "", true},
		{"3.7.3", "heartbeat-interval", "200", true},
		{"3.6.16", "experimental-initial-corrupt-check", "false", false},
		{"3.6.16", "feature-gates", "CompactHashCheck=true, InitialCorruptCheck=false", false},
		{"3.7.3", "feature-gates", "InitialCorruptCheck=true", true},
	} {
		v, err := release.Parse(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := release.ComparesAtStart(v, map[string]string{c.option: c.value}); got != c.want {
			t.Errorf("%s with %s=%s: %t", c.version, c.option, c.value, got)
		}
	}
}

func TestKnownFlag(t *testing.T) {
	for _, c := range []struct {
		version, flag string
		want          bool
	}{
		{"3.3.27", "ca-file", true},
		{"3.4.0", "ca-file", false},
		{"3.4.34", "debug", true},
		{"3.5.0", "debug", false},
		{"3.3.27", "logger", false},
		{"3.4.0", "logger", true},
		{"3.4.30", "next-cluster-version-compatible", false},
		{"3.4.31", "next-cluster-version-compatible", true},
		{"3.5.35", "next-cluster-version-compatible", false},
		{"3.5.35", "enable-v2", true},
		{"3.6.0", "enable-v2", false},
		{"3.5.35", "feature-gates", false},
		{"3.6.0", "feature-gates", true},
		{"3.6.16", "experimental-initial-corrupt-check", true},
		{"3.7.0", "experimental-initial-corrupt-check", false},
		{"3.6.16", "discovery", true},
		{"3.7.3", "discovery", false},
		{"3.7.3", "discovery-srv", true},
		{"3.5.10", "max-concurrent-streams", true},
		{"3.5.4", "max-concurrent-streams", false},
		{"3.8.0", "name", false},
	} {
		if got := release.KnownFlag(must(t, c.version), c.flag); got != c.want {
			t.Errorf("KnownFlag(%s, %s) = %v", c.version, c.flag, got)
		}
	}
	if n := len(release.KnownFlags(must(t, "3.7.3"))); n < 100 {
		t.Errorf("only %d flags of 3.7.3", n)
	}
}

// Every flag of every line either is known to a later line or the error says
// what became of it.
func TestCheckFlagExplains(t *testing.T) {
	for _, name := range release.KnownFlags(must(t, "3.4.45")) {
		v := must(t, "3.7.3")
		if err := release.CheckFlag(v, name); err != nil && !strings.Contains(err.Error(), "removed: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
