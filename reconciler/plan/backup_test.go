package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestBackup(t *testing.T) {
	skip := func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip }
	recorded := func(f func(*state.Backup)) mutation {
		return with(commit(newVersion), backedUp(time.Minute), func(s *situation.Situation) { f(s.Observed.Record.Backup) })
	}
	// repaired is that a repair has taken a backup since.
	repaired := func(s *situation.Situation) {
		action.TakeBackup{ClusterID: "c1", For: state.ForRepair("orders-1")}.After(s)
	}
	const take = "back up through orders-2: before 3.5.35 → 3.6.16"
	checkRule(t, backup, []ruleCase{
		{name: "17: no change needs none"},
		{name: "settings only need none", change: commit(oldVersion)},
		{name: "nor does what sleeps: the change waits until it wakes", change: with(commit(newVersion), asksState(schema.StateHibernated))},
		{name: "60: missing", change: commit(newVersion), want: take},
		{name: "53: a patch needs one, too", change: commit("3.5.34"), want: "back up through orders-2: before 3.5.35 → 3.5.34"},
		{name: "60: good", change: with(commit(newVersion), backedUp(15*time.Minute))},
		{name: "60: stale", change: with(commit(newVersion), backedUp(15*time.Minute+time.Second)), want: take},
		{name: "a roll that has begun keeps its backup", change: with(commit(newVersion), backedUp(time.Hour), begun)},
		{name: "305: also where a repair has taken another", change: with(commit(newVersion), backedUp(time.Hour), repaired, begun)},
		{name: "305: and another one after that", change: with(commit(newVersion), backedUp(time.Hour), repaired, repaired, begun)},
		{name: "305: it does not get younger by that", change: with(commit(newVersion), backedUp(time.Hour), repaired), want: take},
		{name: "305: a repair's is none for a roll", change: with(commit(newVersion), repaired, begun), want: take},
		{name: "305: the backup of the next roll takes the place of that of the last", change: with(commit(newVersion), backedUp(time.Minute), repaired, begun, func(s *situation.Situation) {
			action.TakeBackup{ClusterID: "c1", For: state.ForUpgrade("3.6.15")}.After(s)
		}), want: take},
		{name: "60: of another cluster", change: recorded(func(b *state.Backup) { b.ClusterID = "c2" }), want: take},
		{name: "60: for another target", change: recorded(func(b *state.Backup) { b.For = "3.6.15" }), want: take},
		{name: "60: for another target, in the middle of a roll", change: with(commit(newVersion), backedUp(time.Minute), begun, rolled(newVersion, 2), func(s *situation.Situation) {
			s.Desired.Template, s.Desired.Spec.Version = "c", "3.6.15"
		}), want: "back up through orders-2: before 3.5.35 → 3.6.15"},
		{name: "60: Skip needs none", change: with(commit(newVersion), skip)},
		{name: "62: giving a roll up needs none", change: with(commit(newVersion), begun, rolled(newVersion, 2), func(s *situation.Situation) { s.Desired.Template, s.Desired.Spec.Version = "a", oldVersion })},
		{name: "60: no destination", change: with(commit(newVersion), func(s *situation.Situation) { s.Desired.BackupURL = "" }), want: "Refused: the upgrade needs a backup first, and no place for it is set; set spec.backup.destination.objectURLTemplate"},
		{name: "60: nobody to take it from", change: with(commit(newVersion), func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "Refused: the upgrade needs a backup first, and no member can give one"},
	})
}

func TestABackupIsBoundToItsClusterAndTarget(t *testing.T) {
	s := healthy(3)
	commit(newVersion)(s)
	want := action.TakeBackup{Member: "orders-2", MemberID: "m2", ClusterID: "c1", For: state.ForUpgrade(newVersion), Why: "upgrade " + oldVersion + " → " + newVersion}
	if got := backup(s).Step.Action; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
