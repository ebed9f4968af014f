package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestDowngrade(t *testing.T) {
	down37 := with(runs("3.7.3"), commit("3.6.16"))
	storage := func(versions ...string) mutation {
		return func(s *situation.Situation) {
			for i, v := range versions {
				memberAt(s, int32(i)).StorageVersion = v
			}
		}
	}
	recorded := func(age time.Duration) mutation {
		return func(s *situation.Situation) {
			s.Observed.Record.Downgrade = &state.Downgrade{Minor: "3.6", Since: noon.Add(-age)}
		}
	}
	git := func(version, template string) mutation {
		return func(s *situation.Situation) { s.Desired.Spec.Version, s.Desired.Template = version, template }
	}
	barred := func(s *situation.Situation) { s.Observed.Set.Partition = 4 }
	const late = "set the StatefulSet's partition to 4: a restart with etcd 3.6.16 may be late on its way, and finds another StatefulSet than it was made for; then the downgrade is "
	under := with(down37, descends, recorded(time.Minute))
	checkRule(t, downgrade, []ruleCase{
		{name: "17: no change passes"},
		{name: "53: a minor up passes", change: commit(newVersion)},
		{name: "53: a patch down passes", change: commit("3.5.34")},
		{name: "27: an unformed cluster is the bootstrap's", change: unformed},
		{name: "27: also one whose members answer", change: with(down37, func(s *situation.Situation) { s.Observed.Record = &state.Record{} })},
		{name: "27: and one that somebody sends down", change: with(runs("3.7.3"), descends, func(s *situation.Situation) { s.Observed.Record = &state.Record{} })},
		{name: "53: nothing is told before there is something to roll", change: with(runs("3.7.3"), func(s *situation.Situation) { s.Desired.Spec.Version = "3.6.16" })},
		{name: "53: a downgrade that is over is none under way", change: with(down37, descends, storage("3.7.0"), looks(func(r *state.Round) { r.Downgrading = false }))},
		{name: "no member was asked: the gate says so", change: with(down37, func(s *situation.Situation) { s.Observed.Rounds = nil })},
		{name: "53: etcd is told", change: down37, want: "enable the downgrade 3.7 → 3.6: the cluster version is 3.7, and no member starts with 3.6.16 before etcd brings its storage down"},
		{name: "53: there is no leader", change: with(down37, of(2, func(m *state.Member) { m.Leader = "" })), want: "Unhealthy: there is no leader to enable the downgrade"},
		{name: "62: an upgrade that is given up in the middle is none", change: with(runs("3.6.16"), commit("3.7.3"), begun, rolled("3.7.3", 2), git("3.6.16", "a"))},
		{name: "63: one that is given up too late is", change: with(runs("3.6.16"), commit("3.7.3"), begun, rolled("3.7.3", 0, 1, 2), git("3.6.16", "a"), now(func(r *state.Round) { r.ClusterVersion = "3.7.0" })), want: "enable the downgrade 3.7 → 3.6"},
		{name: "53: every storage is down", change: with(under, storage("3.6.0", "3.6.0", "3.6.0"))},
		{name: "53: one is not", change: with(under, storage("3.6.0", "3.7.0", "3.6.0")), want: "Waiting: orders-1 brings its storage down to 3.6"},
		{name: "53: the storage of one is unknown", change: with(under, storage("3.6.0", "3.6.0", "")), want: "Waiting: orders-2 brings its storage down to 3.6"},
		{name: "53: for long it is not", change: with(under, recorded(time.Hour), storage("3.6.0", "3.7.0", "3.6.0")), want: "check the log of orders-1: something that only 3.7 can do may be in use; revert the commit to cancel the downgrade"},
		{name: "53: a member that has the older minor need not say it", change: with(under, storage("3.6.0", "3.6.0", ""), begun, rolled("3.6.16", 2))},
		{name: "61: nor one that the roll has broken", change: with(under, storage("3.6.0", "3.6.0", ""), func(s *situation.Situation) { podAt(s, 2).Template = "x" }, down(2))},
		{name: "53: a downgrade that somebody has begun for Git is waited for, too", change: with(down37, descends, storage("3.6.0", "3.7.0", "3.6.0")), want: "Waiting: orders-1 brings"},
		{name: "20: Git goes back before a member stopped", change: with(under, git("3.7.3", "a")), want: "cancel the downgrade to 3.6: Git asks for 3.7.3 now"},
		{name: "20 413: Git goes back in the middle", change: with(under, begun, rolled("3.6.16", 2), git("3.7.3", "a")), want: late + "cancelled"},
		{name: "413: Git goes back when the roll has begun, and no member stopped", change: with(under, begun, git("3.7.3", "a")), want: late + "cancelled"},
		{name: "20: Git goes back in the middle, and no restart can be late", change: with(under, begun, rolled("3.6.16", 2), git("3.7.3", "a"), barred), want: "cancel the downgrade to 3.6"},
		{name: "413: a roll to the next minor is open", change: with(runs("3.6.16"), commit("3.7.3"), begun, git("3.5.35", "c")), want: "set the StatefulSet's partition to 4: a restart with etcd 3.7.3 may be late on its way, and finds another StatefulSet than it was made for; then the downgrade is enabled"},
		{name: "413: and no restart can be late", change: with(runs("3.6.16"), commit("3.7.3"), begun, git("3.5.35", "c"), barred), want: "enable the downgrade 3.6 → 3.5"},
		{name: "413: a roll to the same minor is", change: with(runs("3.6.16"), commit("3.6.17"), begun, git("3.5.35", "c")), want: "enable the downgrade 3.6 → 3.5"},
		{name: "413: the pod of a former member is of another minor", change: with(down37, func(s *situation.Situation) {
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{Name: "orders-3", Ordinal: 3, Version: "3.5.35"})
		}), want: "enable the downgrade 3.7 → 3.6"},
		{name: "20: Git goes back when all have the older minor", change: with(youngPods, under, begun, rolled("3.6.16", 0, 1, 2), git("3.7.3", "a")), want: "Waiting: every member runs 3.6; etcd ends the downgrade within"},
		{name: "20: there is no leader to be told so", change: with(under, git("3.7.3", "a"), of(2, func(m *state.Member) { m.Leader = "" })), want: "Unhealthy: there is no leader to cancel the downgrade"},
	})
}

// What etcd is told rests on a backup for just this, unless Git goes without.
func TestADowngradeIsBoundToItsBackup(t *testing.T) {
	s := healthy(3)
	with(runs("3.7.3"), commit("3.6.16"))(s)
	want := action.EnableDowngrade{Member: "orders-2", MemberID: "m2", From: "3.7", To: "3.6", Backup: "downgrade to 3.6.16"}
	if got := downgrade(situation.Of(s.Desired, s.Observed, noon)).Step.Action; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s.Desired.Spec.Upgrade.Backup, want.Backup = schema.BackupSkip, ""
	if got := downgrade(situation.Of(s.Desired, s.Observed, noon)).Step.Action; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// I11: a downgrade needs a backup of its own, also where a late revert asks for it,
// and keeps it once etcd was told.
func TestBackupBeforeADowngrade(t *testing.T) {
	late := with(runs("3.6.16"), commit("3.7.3"), begun, rolled("3.7.3", 0, 1, 2), func(s *situation.Situation) { s.Desired.Spec.Version, s.Desired.Template = "3.6.16", "a" }, now(func(r *state.Round) { r.ClusterVersion = "3.7.0" }))
	taken := func(purpose state.Purpose, age time.Duration) mutation {
		return func(s *situation.Situation) {
			s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: purpose, Time: noon.Add(-age)}
		}
	}
	down37 := with(runs("3.7.3"), commit("3.6.16"))
	early := with(runs("3.6.16"), commit("3.5.35"), begun, rolled("3.5.35", 2), now(func(r *state.Round) { r.ClusterVersion = "3.5.0" }), func(s *situation.Situation) {
		s.Observed.Record.Downgrade = &state.Downgrade{Minor: "3.5", Since: noon}
	})
	const take = "back up through orders-2: before 3.7.3 → 3.6.16"
	checkRule(t, backup, []ruleCase{
		{name: "53: down", change: down37, want: take},
		{name: "63: a late revert", change: late, want: take},
		{name: "60: that of an upgrade to the same version is none", change: with(down37, taken("3.6.16", time.Minute)), want: take},
		{name: "60: good", change: with(down37, taken("downgrade to 3.6.16", time.Minute))},
		{name: "60: stale", change: with(down37, taken("downgrade to 3.6.16", time.Hour)), want: take},
		{name: "60: kept once etcd was told", change: with(down37, descends, taken("downgrade to 3.6.16", time.Hour))},
		{name: "60: a StatefulSet that has the template already is no beginning", change: with(down37, begun, taken("downgrade to 3.6.16", time.Hour)), want: take},
		{name: "60: etcd was told of one to a release that the roll came from, too", change: with(down37, descends, func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "b" }), want: take},
		{name: "60: it is a downgrade once etcd was told, too", change: with(down37, descends, func(s *situation.Situation) { s.Desired.BackupURL = "" }), want: "Refused: the downgrade needs a backup first"},
		{name: "60: none although etcd was told", change: with(down37, descends), want: take},
		{name: "60: kept where a leader of 3.5 ends it before the last member went down", change: with(early, taken("downgrade to 3.5.35", time.Hour))},
		{name: "60: not before the roll has begun", change: with(early, taken("downgrade to 3.5.35", time.Minute), func(s *situation.Situation) { s.Observed.Set.Template = "a" }), want: "back up through orders-2: before 3.6.16 → 3.5.35"},
		{name: "60: not where the cluster version has gone up again", change: with(early, taken("downgrade to 3.5.35", time.Hour), now(func(r *state.Round) { r.ClusterVersion = "3.6.0" })), want: "back up through orders-2: before 3.6.16 → 3.5.35"},
		{name: "60: not where etcd was never told", change: with(early, taken("downgrade to 3.5.35", time.Minute), func(s *situation.Situation) { s.Observed.Record.Downgrade = nil }), want: "back up through orders-2: before 3.6.16 → 3.5.35"},
		{name: "60: not that of another downgrade", change: with(early, taken("downgrade to 3.5.35", time.Minute), func(s *situation.Situation) { s.Observed.Record.Downgrade.Minor = "3.4" }), want: "back up through orders-2: before 3.6.16 → 3.5.35"},
		{name: "60: not that of an upgrade", change: with(early, taken("3.6.16", time.Minute)), want: "back up through orders-2: before 3.6.16 → 3.5.35"},
		{name: "60: no destination", change: with(down37, func(s *situation.Situation) { s.Desired.BackupURL = "" }), want: "Refused: the downgrade needs a backup first"},
		{name: "60: Skip needs none", change: with(down37, func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip })},
	})
}
