package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/schema"
)

func TestBackup(t *testing.T) {
	skip := func(s *situation) { s.d.Spec.Upgrade.Backup = schema.BackupSkip }
	recorded := func(f func(*Backup)) mutation {
		return with(commit(newVersion), backedUp(time.Minute), func(s *situation) { f(s.o.Record.Backup) })
	}
	const take = "back up through orders-2: before 3.5.35 → 3.6.16"
	checkRule(t, backup, []ruleCase{
		{name: "17: no change needs none"},
		{name: "settings only need none", change: commit(oldVersion)},
		{name: "nor does what sleeps: the change waits until it wakes", change: with(commit(newVersion), state(schema.StateHibernated))},
		{name: "60: missing", change: commit(newVersion), want: take},
		{name: "53: a patch needs one, too", change: commit("3.5.34"), want: "back up through orders-2: before 3.5.35 → 3.5.34"},
		{name: "60: good", change: with(commit(newVersion), backedUp(15*time.Minute))},
		{name: "60: stale", change: with(commit(newVersion), backedUp(15*time.Minute+time.Second)), want: take},
		{name: "a roll that has begun keeps its backup", change: with(commit(newVersion), backedUp(time.Hour), begun)},
		{name: "60: of another cluster", change: recorded(func(b *Backup) { b.ClusterID = "c2" }), want: take},
		{name: "60: for another target", change: recorded(func(b *Backup) { b.For = "3.6.15" }), want: take},
		{name: "60: for another target, in the middle of a roll", change: with(commit(newVersion), backedUp(time.Minute), begun, rolled(newVersion, 2), func(s *situation) {
			s.d.Template, s.d.Spec.Version = "c", "3.6.15"
		}), want: "back up through orders-2: before 3.5.35 → 3.6.15"},
		{name: "60: Skip needs none", change: with(commit(newVersion), skip)},
		{name: "62: giving a roll up needs none", change: with(commit(newVersion), begun, rolled(newVersion, 2), func(s *situation) { s.d.Template, s.d.Spec.Version = "a", oldVersion })},
		{name: "60: no destination", change: with(commit(newVersion), func(s *situation) { s.d.BackupURL = "" }), want: "Refused: the upgrade needs a backup first, and nothing says where to put it; set spec.backup.destination.objectURLTemplate"},
		{name: "60: nobody to take it from", change: with(commit(newVersion), func(s *situation) { s.o.Rounds = nil }), want: "Refused: the upgrade needs a backup first, and no member can give one"},
	})
}

func TestABackupIsBoundToItsClusterAndTarget(t *testing.T) {
	s := healthy(3)
	commit(newVersion)(s)
	want := TakeBackup{Member: "orders-2", MemberID: "m2", ClusterID: "c1", For: newVersion, Why: "upgrade " + oldVersion + " → " + newVersion}
	if got := backup(s).step.Action; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
