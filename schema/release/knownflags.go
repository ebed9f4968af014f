package release

import (
	"fmt"
	"slices"
	"strings"
)

// KnownFlag says whether v takes the flag of that name, written without dashes.
func KnownFlag(v Version, name string) bool {
	since, ok := flagSince(v, name)
	return ok && !v.before(since)
}

// KnownFlags are the names of all flags that v takes, sorted.
func KnownFlags(v Version) []string {
	var names []string
	for _, group := range flagGroups() {
		if since, ok := group.since(v); ok && !v.before(since) {
			names = append(names, group.names...)
		}
	}
	slices.Sort(names)
	return names
}

// CheckFlag is nil when v takes the flag of that name. The error says since when
// there is such a flag, or what became of it.
func CheckFlag(v Version, name string) error {
	if KnownFlag(v, name) {
		return nil
	}
	group, ok := groupOf(name)
	if !ok {
		return fmt.Errorf("etcd has no flag %s%s", quoted(name), didYouMean(name, KnownFlags(v)))
	}
	first, last := group.first[0], group.first[len(group.first)-1]
	if since, ok := group.since(v); ok {
		return fmt.Errorf("%s does not take the flag %s, which came with %s: leave it out until then", v, name, since)
	}
	if v.before(first) {
		return fmt.Errorf("%s does not take the flag %s, which came with %s: leave it out until then", v, name, first)
	}
	if gone, ok := next(last); ok && !v.before(Version{gone.Major, gone.Minor, 0}) {
		return fmt.Errorf("%s does not take the flag %s, which etcd %s removed: %s", v, name, gone.Line(), instead(name))
	}
	return fmt.Errorf("%s does not take the flag %s", v, name)
}

// flagSince is the first release of v's line that takes the flag.
func flagSince(v Version, name string) (Version, bool) {
	group, ok := groupOf(name)
	if !ok {
		return Version{}, false
	}
	return group.since(v)
}

// groupOf finds the group of a flag.
func groupOf(name string) (flagGroup, bool) {
	for _, group := range flagGroups() {
		if slices.Contains(group.names, name) {
			return group, true
		}
	}
	return flagGroup{}, false
}

// since is the first release of v's line that takes the flags of the group.
func (g flagGroup) since(v Version) (Version, bool) {
	for _, first := range g.first {
		if first.sameLine(v) {
			return first, true
		}
	}
	return Version{}, false
}

// experimental is the prefix that a flag loses when it grows up.
const experimental = "experimental-"

// newestName is the name of a flag after it lost its prefix, if it ever did.
func newestName(name string) string {
	short, ok := strings.CutPrefix(name, experimental)
	if !ok {
		return name
	}
	if _, grown := groupOf(short); grown {
		return short
	}
	return name
}

// instead says what to write for a flag that is gone.
func instead(name string) string {
	for _, row := range goneRows() {
		if slices.Contains(row.names, name) {
			return row.instead
		}
	}
	if row, ok := gateOfFlag(name); ok {
		return fmt.Sprintf("write %s: %s=true", featureGatesFlag, row.gate)
	}
	if short := newestName(name); short != name {
		return "write " + short
	}
	return "leave it out"
}

// goneRow says what replaces flags that etcd removed.
type goneRow struct {
	names   []string
	instead string
}

// goneRows are the removed flags with a successor of another name. Source: the
// changelogs of 3.4 to 3.7 and the help text of the last release with the flag.
func goneRows() []goneRow {
	return []goneRow{
		{[]string{"ca-file"}, "write trusted-ca-file"},
		{[]string{"peer-ca-file"}, "write peer-trusted-ca-file"},
		{[]string{"debug"}, "write log-level: debug"},
		{[]string{"log-output"}, "write log-outputs"},
		{[]string{"log-package-levels"}, "write log-level for the whole process"},
		{[]string{"discovery", "discovery-proxy"}, "write discovery-endpoints and discovery-token"},
		{[]string{"enable-v2", "experimental-enable-v2v3"}, "the v2 API is gone, leave it out"},
		{[]string{"next-cluster-version-compatible"}, "it serves the way back from 3.5 only, leave it out"},
	}
}

// valueRow is a value that a flag no longer takes, although it is still there.
type valueRow struct {
	name, value string
	goneIn      Version
	instead     string
}

// valueRows are the removed values. Source: CHANGELOG-3.5.md (capnslog),
// CHANGELOG-3.6.md (v2-deprecation).
func valueRows() []valueRow {
	return []valueRow{
		{"logger", "capnslog", Version{3, 5, 0}, "write zap or leave it out"},
		{"v2-deprecation", "not-yet", Version{3, 6, 0}, "leave it out"},
	}
}

// featureGatesFlag lists feature gates, from 3.6 on.
const featureGatesFlag = "feature-gates"

// gateRow is a feature gate and the flag that it was before 3.6.
type gateRow struct {
	gate string
	// flag is "" for a gate that never was a flag.
	flag string
	// since is the first release with the gate.
	since Version
}

// gateRows are the feature gates. Source: server/features/etcd_features.go of
// v3.6.16 and v3.7.3.
func gateRows() []gateRow {
	v36, v37 := Version{3, 6, 0}, Version{3, 7, 0}
	return []gateRow{
		{"CompactHashCheck", "experimental-compact-hash-check-enabled", v36},
		{"FastLeaseKeepAlive", "", v37},
		{"InitialCorruptCheck", "experimental-initial-corrupt-check", v36},
		{"LeaseCheckpoint", "experimental-enable-lease-checkpoint", v36},
		{"LeaseCheckpointPersist", "experimental-enable-lease-checkpoint-persist", v36},
		{"PriorityRequest", "", v37},
		{"SetMemberLocalAddr", "", v36},
		{"StopGRPCServiceOnDefrag", "experimental-stop-grpc-service-on-defrag", v36},
		{"TxnModeWriteWithSharedBuffer", "experimental-txn-mode-write-with-shared-buffer", v36},
	}
}

// gateNames are the names of all feature gates, sorted.
func gateNames() []string {
	var names []string
	for _, row := range gateRows() {
		names = append(names, row.gate)
	}
	return names
}

// gateNamed finds a gate by its name.
func gateNamed(gate string) (gateRow, bool) {
	for _, row := range gateRows() {
		if row.gate == gate {
			return row, true
		}
	}
	return gateRow{}, false
}

// gateOfFlag finds the gate that a flag became.
func gateOfFlag(flag string) (gateRow, bool) {
	for _, row := range gateRows() {
		if row.flag == flag && flag != "" {
			return row, true
		}
	}
	return gateRow{}, false
}
