package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestPath(t *testing.T) {
	mixed := func(from, to string) mutation { return with(runs(from), commit(to), begun, rolled(to, 2)) }
	back := func(s *situation.Situation) {
		s.Desired.Template, s.Desired.SpecHash, s.Desired.Spec.Version = "a", "a", s.Observed.Set.CurrentVersion
	}
	clusterVersion := func(v string) mutation { return func(s *situation.Situation) { s.Observed.Round().ClusterVersion = v } }
	checkRule(t, path, []ruleCase{
		{name: "17: no change passes"},
		{name: "settings only pass", change: commit(oldVersion)},
		{name: "53: patch up passes", change: with(runs("3.5.34"), commit("3.5.35"))},
		{name: "53: patch down passes, with a warning elsewhere", change: commit("3.5.34")},
		{name: "53: a minor up passes", change: commit(newVersion)},
		{name: "53: two minors up are refused", change: with(runs("3.4.45"), commit(newVersion)), want: "Refused: orders-0 cannot go from 3.4.45 to 3.6.16: 3.4.45 → 3.6.16: etcd must not skip a minor"},
		{name: "53: a minor down passes where etcd has a way", change: with(runs(newVersion), commit(oldVersion))},
		{name: "53: a minor down is refused where it has none", change: with(runs(oldVersion), commit("3.4.45")), want: "Refused: orders-0 cannot go from 3.5.35 to 3.4.45: 3.5.35 → 3.4.45: etcd 3.5 has no downgrade: restore a backup from before the upgrade"},
		{name: "53: two minors down are refused", change: with(runs("3.7.3"), commit(oldVersion)), want: "etcd downgrades one minor at a time: go to a release of 3.6 first"},
		{name: "53: down from a release that cannot is refused", change: with(runs("3.7.1"), commit(newVersion)), want: "3.7.1 cannot be downgraded safely, every member must first run 3.7.3 or later; with `path: Stepwise` quorate goes through 3.7.3"},
		{name: "53: one member that cannot is enough", change: with(runs("3.7.3"), commit(newVersion), func(s *situation.Situation) { memberAt(s, 1).Version = "3.7.0" }), want: "Refused: orders-1 cannot go from 3.7.0 to 3.6.16"},
		{name: "53: down by steps from a release that cannot passes", change: with(runs("3.7.1"), commit(newVersion), stepwise)},
		{name: "55: below the floor of 3.6 is refused", change: with(runs("3.5.20"), commit(newVersion)), want: "every member must first run 3.5.32 or later"},
		{name: "55: below the floor of 3.7 is refused", change: with(runs("3.6.10"), commit("3.7.3")), want: "every member must first run 3.6.11 or later"},
		{name: "55: one member below the floor is enough", change: with(commit(newVersion), func(s *situation.Situation) { memberAt(s, 1).Version = "3.5.20" }), want: "Refused: orders-1 cannot go from 3.5.20"},
		{name: "53: Strict names the stops", change: with(runs("3.4.34"), commit("3.7.3")), want: "with `path: Stepwise` quorate goes through 3.5.35 and 3.6.16"},
		{name: "53: a stepwise path passes", change: with(runs("3.4.45"), commit(newVersion), stepwise)},
		{name: "53: a stepwise path to a bad release is refused at once", change: with(runs("3.4.45"), commit("3.6.1"), stepwise), want: "Refused: "},
		{name: "53: a stepwise path through an image that is not pinned is refused", change: with(runs("3.4.45"), commit(newVersion), stepwise, pins), want: "Refused: the way to 3.6.16 goes through 3.5.35, and spec.image.digest pins one image only; go there by two commits"},
		{name: "a pinned image of one step passes", change: with(commit(newVersion), stepwise, pins)},
		{name: "a flush at the release that runs needs no other image", change: with(runs(newVersion), commit("3.7.3"), exposedTo35, pins)},
		{name: "53: a stepwise path of one step passes", change: with(commit(newVersion), stepwise)},
		{name: "a bad release is refused", change: commit("3.5.1"), want: "Refused: 3.5.1 "},
		{name: "its settings may change where it runs", change: with(runs("3.5.1"), commit("3.5.1"))},
		{name: "one that a sleeping cluster is to wake with is refused then", change: with(commit("3.5.1"), asksState(schema.StateHibernated))},
		{name: "going back to a bad release is not", change: with(runs("3.5.1"), commit(oldVersion), begun, rolled(oldVersion, 2), back)},
		{name: "62: back while one member is old", change: with(mixed(oldVersion, newVersion), back)},
		{name: "63: not when every member is new", change: with(youngPods, commit(newVersion), begun, rolled(newVersion, 0, 1, 2), back), want: "Waiting: no member reports 3.5 any more, so the cluster version moves within seconds; then the way back is a downgrade"},
		{name: "63: not when every member is new and there is no way down", change: with(runs("3.4.45"), commit(oldVersion), begun, rolled(oldVersion, 0, 1, 2), back), want: "Refused: orders-0 cannot go from 3.5.35 to 3.4.45: no member reports 3.4 any more, so the cluster version is about to move"},
		{name: "63: nor when no member is listed", change: with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), back, func(s *situation.Situation) { s.Observed.Round().Members = nil }), want: "Refused: orders-0 cannot go from 3.6.16 to 3.5.35: no member reports 3.5 any more"},
		{name: "63: a downgrade when the cluster version has moved", change: with(mixed(oldVersion, newVersion), back, clusterVersion("3.6.0"))},
		{name: "63: refused when it has moved and there is no way down", change: with(runs("3.4.45"), mixedUp(oldVersion), back, clusterVersion("3.5.0")), want: "etcd 3.5 has no downgrade"},
		{name: "63: a downgrade under way continues", change: with(runs("3.7.3"), commit(newVersion), clusterVersion("3.6.0"), descends)},
		{name: "63: the cluster version is below both", change: with(mixed(oldVersion, newVersion), back, clusterVersion("3.4.0")), want: "the cluster version is 3.4.0, which is below both"},
		{name: "63: not when the cluster version is unknown", change: with(mixed(oldVersion, newVersion), back, clusterVersion("")), want: "Unhealthy: no member reports the cluster version, so whether 3.5.35 can still be reached is unknown"},
		{name: "63: and why no member reports it", change: with(mixed(oldVersion, newVersion), back, clusterVersion(""), now(func(r *state.Round) { r.Problem = "orders-0: status: refused" })), want: "can still be reached is unknown (orders-0: status: refused)"},
		{name: "53: up it may be unknown", change: with(commit(newVersion), clusterVersion(""))},
		{name: "63: in the middle of a downgrade, too", change: with(runs("3.7.3"), commit(newVersion), begun, rolled(newVersion, 2), clusterVersion("")), want: "Unhealthy: no member reports the cluster version, so whether 3.6.16"},
		{name: "63: not when no member was asked", change: with(mixed(oldVersion, newVersion), back, func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "Unhealthy: no member reports the cluster version"},
		{name: "63: an old member that does not answer does not count", change: with(commit(newVersion), begun, rolled(newVersion, 1, 2), down(0), back), want: "no member reports 3.5 any more"},
		{name: "69: what a member reports counts, not its pod", change: with(commit(newVersion), func(s *situation.Situation) { memberAt(s, 2).Version = "3.4.45" }), want: "Refused: orders-2 cannot go from 3.4.45"},
		{name: "62: one member alone whose new etcd never ran goes back", size: 1, change: with(commit(newVersion), begun, rolled(newVersion, 0), down(0), neverRan(0), back)},
		{name: "63: but not to another old release", size: 1, change: with(commit(newVersion), begun, rolled(newVersion, 0), down(0), neverRan(0), clusterVersion(""), func(s *situation.Situation) { s.Desired.Template, s.Desired.Spec.Version = "c", "3.5.34" }), want: "Unhealthy: no member reports the cluster version, so whether 3.5.34"},
		{name: "I14: a version that is unknown blocks", change: with(commit(newVersion), func(s *situation.Situation) { podAt(s, 1).Version, memberAt(s, 1).Version = "", "" }), want: "Refused: "},
		{name: "I14: unless it is that of no member", change: with(commit(newVersion), func(s *situation.Situation) {
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{Name: "orders-3", Ordinal: 3})
		})},
		{name: "I14: nor does a pod of no member count", change: with(commit(newVersion), func(s *situation.Situation) {
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{Name: "orders-3", Ordinal: 3, Version: "3.4.45"})
		})},
	})
}

// runs lets the whole cluster run one version, as template "a".
func runs(version string) mutation {
	return func(s *situation.Situation) {
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Version = version
		}
		for r := range s.Observed.Rounds {
			for m := range s.Observed.Rounds[r].Members {
				s.Observed.Rounds[r].Members[m].Version = version
			}
			s.Observed.Rounds[r].ClusterVersion = state.Minor(version) + ".0"
		}
		s.Observed.Record.BornOn = state.Minor(version)
		s.Observed.Set.Version, s.Observed.Set.CurrentVersion, s.Observed.Record.Applied.Version, s.Desired.Spec.Version = version, version, version, version
	}
}

// stepwise lets the file ask for a walk through the releases in between.
func stepwise(s *situation.Situation) { s.Desired.Spec.Upgrade.Path = schema.PathStepwise }

// pins lets the file name the digest of its image.
func pins(s *situation.Situation) { s.Desired.Spec.Image.Digest = "sha256:feed" }

// exposedTo35 is a cluster of which it is unknown whether 3.5 ever ran.
func exposedTo35(s *situation.Situation) { s.Observed.Record.BornOn = "" }

// mixedUp is a roll to another minor after two of three members.
func mixedUp(to string) mutation { return with(commit(to), begun, rolled(to, 1, 2)) }

// descends lets etcd go down to 3.6.
func descends(s *situation.Situation) {
	for i := range s.Observed.Rounds {
		s.Observed.Rounds[i].Downgrading, s.Observed.Rounds[i].DowngradeTarget, s.Observed.Rounds[i].ClusterVersion = true, "3.6", "3.6.0"
	}
}

// neverRan lets a pod wait for its image since it was made.
func neverRan(ordinal int32) mutation {
	return func(s *situation.Situation) {
		podAt(s, ordinal).Ran, podAt(s, ordinal).Trouble = false, "ImagePullBackOff"
	}
}

func TestLineOfAVersion(t *testing.T) {
	for text, want := range map[string]string{"3.6.16": "3.6", "3.10.0": "3.10", "": "", "not decided": ""} {
		if got := state.Minor(text); got != want {
			t.Errorf("line(%q) = %q, want %q", text, got, want)
		}
	}
}

// A smaller quota than a database comes near would let the first member that has it raise NOSPACE for all.
func TestASmallerQuotaIsRefusedWhereADatabaseComesNear(t *testing.T) {
	has := func(bytes int64) mutation {
		return of(1, func(m *state.Member) { m.DBSize, m.Quota = bytes, 8<<30 })
	}
	to := func(quota string) mutation {
		return with(commit(oldVersion), func(s *situation.Situation) { s.Desired.Spec.Etcd.QuotaBackendBytes = new(resource.MustParse(quota)) })
	}
	checkRule(t, quota, []ruleCase{
		{name: "at rest", change: has(3 << 30)},
		{name: "room enough", change: with(to("4Gi"), has(3<<30))},
		{name: "too little", change: with(to("4Gi"), has(7<<29)), want: "Refused: the database of orders-1 comes near the quota that Git asks for, 4Gi instead of 8Gi: with it the whole cluster would soon take no more writes (NOSPACE) (it has 3.5Gi); set spec.etcd.quotaBackendBytes back, or delete keys first"},
		{name: "too little, by leaving the field out", change: with(commit(oldVersion), has(7<<29)), want: "2Gi instead of 8Gi"},
		{name: "a larger quota never is", change: with(to("16Gi"), has(7<<30))},
		{name: "the same", change: with(to("8Gi"), has(7<<30))},
		{name: "nobody was asked", change: with(to("1Gi"), func(s *situation.Situation) { s.Observed.Rounds = nil })},
	})
}
