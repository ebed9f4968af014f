package plan

import (
	"testing"

	"github.com/quorate/quorate/schema"
)

func TestPath(t *testing.T) {
	mixed := func(from, to string) mutation { return with(runs(from), commit(to), begun, rolled(to, 2)) }
	back := func(s *situation) { s.d.Template, s.d.SpecHash, s.d.Spec.Version = "a", "a", s.o.Set.CurrentVersion }
	clusterVersion := func(v string) mutation { return func(s *situation) { s.o.round().ClusterVersion = v } }
	checkRule(t, path, []ruleCase{
		{name: "17: no change passes"},
		{name: "settings only pass", change: commit(oldVersion)},
		{name: "53: patch up passes", change: with(runs("3.5.34"), commit("3.5.35"))},
		{name: "53: patch down passes, with a warning elsewhere", change: commit("3.5.34")},
		{name: "53: a minor up passes", change: commit(newVersion)},
		{name: "53: two minors up are refused", change: with(runs("3.4.45"), commit(newVersion)), want: "Refused: orders-0 cannot go from 3.4.45 to 3.6.16: 3.4.45 → 3.6.16: etcd must not skip a minor"},
		{name: "53: a minor down is refused", change: with(runs(newVersion), commit(oldVersion)), want: "Refused: orders-0 cannot go from 3.6.16 to 3.5.35: the cluster version is already 3.6.0"},
		{name: "55: below the floor of 3.6 is refused", change: with(runs("3.5.20"), commit(newVersion)), want: "every member must first run 3.5.32 or later"},
		{name: "55: below the floor of 3.7 is refused", change: with(runs("3.6.10"), commit("3.7.3")), want: "every member must first run 3.6.11 or later"},
		{name: "55: one member below the floor is enough", change: with(commit(newVersion), func(s *situation) { s.member(1).Version = "3.5.20" }), want: "Refused: orders-1 cannot go from 3.5.20"},
		{name: "53: a stepwise path is named, and not walked yet", change: with(runs("3.4.45"), commit(newVersion), stepwise), want: "Refused: orders-0 goes from 3.4.45 to 3.6.16 through 3.5.35, and this version of quorate does not walk"},
		{name: "53: a stepwise path of one step passes", change: with(commit(newVersion), stepwise)},
		{name: "a bad release is refused", change: commit("3.5.1"), want: "Refused: 3.5.1 "},
		{name: "going back to a bad release is not", change: with(runs("3.5.1"), commit(oldVersion), begun, rolled(oldVersion, 2), back)},
		{name: "62: back while one member is old", change: with(mixed(oldVersion, newVersion), back)},
		{name: "63: not when every member is new", change: with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), back), want: "no member reports 3.5 any more, so the cluster version is about to move"},
		{name: "63: not when the cluster version has moved", change: with(mixed(oldVersion, newVersion), back, clusterVersion("3.6.0")), want: "the cluster version is already 3.6.0"},
		{name: "63: not when the cluster version is unknown", change: with(mixed(oldVersion, newVersion), back, clusterVersion("")), want: "the cluster version is unknown"},
		{name: "63: not when nobody was asked", change: with(mixed(oldVersion, newVersion), back, func(s *situation) { s.o.Rounds = nil }), want: "the cluster version is unknown"},
		{name: "63: an old member that does not answer does not count", change: with(commit(newVersion), begun, rolled(newVersion, 1, 2), down(0), back), want: "no member reports 3.5 any more"},
		{name: "69: what a member reports counts, not its pod", change: with(commit(newVersion), func(s *situation) { s.member(2).Version = "3.4.45" }), want: "Refused: orders-2 cannot go from 3.4.45"},
		{name: "62: one member alone whose new etcd never ran goes back", size: 1, change: with(commit(newVersion), begun, rolled(newVersion, 0), down(0), neverRan(0), back)},
		{name: "I14: a version that nobody knows blocks", change: with(commit(newVersion), func(s *situation) { s.pod(1).Version, s.member(1).Version = "", "" }), want: "Refused: "},
	})
}

// runs lets the whole cluster run one version, as template "a".
func runs(version string) mutation {
	return func(s *situation) {
		for i := range s.o.Pods {
			s.o.Pods[i].Version = version
		}
		for r := range s.o.Rounds {
			for m := range s.o.Rounds[r].Members {
				s.o.Rounds[r].Members[m].Version = version
			}
			s.o.Rounds[r].ClusterVersion = line(version) + ".0"
		}
		s.o.Set.Version, s.o.Set.CurrentVersion, s.o.Record.Applied.Version, s.d.Spec.Version = version, version, version, version
	}
}

// stepwise lets the file ask for a walk through the releases in between.
func stepwise(s *situation) { s.d.Spec.Upgrade.Path = schema.PathStepwise }

// neverRan lets a pod wait for its image since it was made.
func neverRan(ordinal int32) mutation {
	return func(s *situation) { s.pod(ordinal).Ran, s.pod(ordinal).Trouble = false, "ImagePullBackOff" }
}

func TestLineOfAVersion(t *testing.T) {
	for text, want := range map[string]string{"3.6.16": "3.6", "3.10.0": "3.10", "": "", "not decided": ""} {
		if got := line(text); got != want {
			t.Errorf("line(%q) = %q, want %q", text, got, want)
		}
	}
}
