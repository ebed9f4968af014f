package plan

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/schema"
)

func TestUndoOfAStep(t *testing.T) {
	restart := func(name, from, to string) action.RestartMember {
		return action.RestartMember{Member: name, From: from, To: to}
	}
	rolled := func(ordinals ...int32) mutation {
		return func(s *situation.Situation) {
			for _, o := range ordinals {
				podAt(s, o).Version, memberAt(s, o).Version = newVersion, newVersion
			}
		}
	}
	for _, c := range []struct {
		name   string
		change mutation
		action action.Action
		want   string
	}{
		{"a backup", nil, action.TakeBackup{}, "nothing to take back: a backup only reads"},
		{"a leader move", nil, action.MoveLeader{}, "nothing to take back: the next roll"},
		{"a note", nil, action.RecordApplied{}, "nothing to take back: it only writes down"},
		{"the end of a roll", nil, action.EndRoll{}, "nothing to take back: it only writes down"},
		{"the IDs of a new cluster", unformed, action.RecordFormed{}, "nothing to take back: it only writes down"},
		{"the record of a new cluster", unformed, action.CreateRecord{}, "nothing to take back: no member runs yet"},
		{"a Service of a new cluster", unformed, action.ApplyObject{}, "nothing to take back: no member runs yet"},
		{"a new cluster", unformed, action.CreateSet{}, "not reversible by a revert: a cluster whose file is gone is left running"},
		{"130: a lost StatefulSet", nil, action.CreateSet{}, "nothing to take back: it brings back"},
		{"a Service that drifted", nil, action.ApplyObject{}, "reversible at any time by reverting the commit"},
		{"a template", nil, action.StartRoll{}, "reversible at any time by reverting the commit"},
		{"53: a patch", nil, restart("orders-0", oldVersion, "3.5.36"), "reversible at any time by reverting the commit"},
		{"53: a setting", nil, restart("orders-0", oldVersion, oldVersion), "reversible at any time by reverting the commit"},
		{"62: a member in a minor upgrade", nil, restart("orders-2", oldVersion, newVersion), "reversible by reverting the commit until the last member runs 3.6.16"},
		{"62: all but one in a minor upgrade", with(commit(newVersion), rolled(2)), restart("orders-1", oldVersion, newVersion), "reversible by reverting the commit until"},
		{"63: the last in a minor upgrade that etcd can take back", with(commit(newVersion), rolled(1, 2)), restart("orders-0", oldVersion, newVersion), "reversible by reverting the commit, but as a downgrade: the cluster version is 3.6 then"},
		{"63: the last in one that it cannot", with(runs(oldVersion), commit("3.5.35")), restart("orders-0", "3.4.45", oldVersion), "not reversible by a revert: after it the cluster version is 3.5; the way back is a restore of the backup"},
		{"63: the last without a backup", with(runs(oldVersion), commit("3.5.35"), func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip }), restart("orders-0", "3.4.45", oldVersion), "no backup was asked for"},
		{"a member in a downgrade", with(runs("3.7.3"), commit(newVersion), descends), restart("orders-2", "3.7.3", newVersion), "reversible at any time by reverting the commit: until the last member runs 3.6.16 that cancels the downgrade"},
		{"a downgrade is enabled", with(runs("3.7.3"), commit(newVersion)), action.EnableDowngrade{From: "3.7", To: "3.6"}, "reversible by reverting the commit until the last member runs 3.6.16: that cancels"},
		{"a downgrade is cancelled", nil, action.CancelDowngrade{Minor: "3.6"}, "reversible at any time"},
		{"entries that touch no key", nil, action.ForceSnapshot{}, "nothing to take back"},
		{"the members have saved their state", nil, action.RecordFlushed{}, "nothing to take back: it only writes down"},
		{"a setting on a bad release", nil, restart("orders-2", "3.5.0", "3.5.0"), "reversible at any time"},
		{"62: back to the older minor", nil, restart("orders-2", newVersion, oldVersion), "reversible at any time"},
		{"a patch that leaves a bad release", nil, restart("orders-2", "3.5.0", oldVersion), "reversible by reverting the commit until the last member runs 3.5.35; after it the way back is refused: "},
		{"a cluster that never formed", unformed, restart("orders-2", oldVersion, newVersion), "nothing to take back: the cluster has never formed"},
		{"a version that is unknown", nil, restart("orders-2", "", newVersion), "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(3)
			if c.change != nil {
				c.change(s)
			}
			if got := c.action.Undo(s).Text; !strings.HasPrefix(got, c.want) && !strings.Contains(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// What each restart of a whole plan says is true at its time: only the last one
// of a minor upgrade cannot be taken back.
func TestUndoOfAWholeUpgrade(t *testing.T) {
	for _, n := range []int32{1, 2, 3, 5} {
		s := healthy(n)
		with(runs("3.4.45"), commit(oldVersion))(s)
		var undos []action.Undo
		for _, step := range Make(s.Desired, s.Observed, noon).Steps {
			if step.Undo.Text == "" {
				t.Errorf("%d members: %s does not say how it is taken back", n, step.Action)
			}
			if step.Action.Disruptive() {
				undos = append(undos, step.Undo)
			}
		}
		if len(undos) != int(n) {
			t.Fatalf("%d members: %d restarts", n, len(undos))
		}
		for i, undo := range undos {
			if final := undo.Kind == action.UndoFinal; final != (i == len(undos)-1) {
				t.Errorf("%d members, restart %d: %s", n, i+1, undo.Text)
			}
		}
	}
}

// 62 63: what a restart says of its undo is what a revert after it gets: a
// reversible one is taken back, a final one refused. 3.4 → 3.5 has no way back.
func TestUndoIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int8{1, 3}).Draw(t, "members")
		from := rapid.SampledFrom([]int8{0, 1, 4}).Draw(t, "from")
		w := runningWorld(n, from)
		w.leader, w.ask.variant = rapid.Int8Range(0, n-1).Draw(t, "leader"), rapid.SampledFrom([]int8{1, 2}).Draw(t, "to")
		stop := rapid.Int8Range(1, n).Draw(t, "restarts")
		var undo action.Undo
		for passes := 0; stop > 0; passes++ {
			before := w
			p := Make(w.desired(), w.observed(&before), w.now())
			if p.Idle() || p.Hold != nil && p.Hold.Kind == decision.Refused {
				return // there was nothing to restart
			}
			if passes > 400 {
				t.Fatalf("no restart: %s", p.Text())
			}
			if p.Hold == nil {
				undo = p.Steps[0].Undo
				if p.Steps[0].Action.Disruptive() {
					stop--
				}
				w.carryOut(p.Steps[0].Action)
			}
			moveOn(&w)
		}
		for range 20 {
			moveOn(&w) // what was begun comes to its end
		}
		w.ask.variant = from
		for range 200 {
			before := w
			if p := Make(w.desired(), w.observed(&before), w.now()); p.Hold == nil && len(p.Steps) > 0 {
				w.carryOut(p.Steps[0].Action)
			}
			moveOn(&w)
		}
		back := true
		for i := range n {
			back = back && w.pods[i].template == from
		}
		if final := undo.Kind == action.UndoFinal; final == back {
			t.Fatalf("the last restart says %q, and a revert gets back: %t\n%+v", undo.Text, back, w)
		}
	})
}
