package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/times"
	records "github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestTimes(t *testing.T) {
	ahead := func(s *situation.Situation) { podAt(s, 1).Created = noon.Add(time.Hour) }
	noted := func(what string, at time.Time) mutation {
		return func(s *situation.Situation) {
			s.Observed.Record.Seen = append(s.Observed.Record.Seen, state.Seen{What: what, Stamp: noon.Add(time.Hour), At: at})
		}
	}
	const one = "note when quorate first saw the time of pod orders-1 (created): it lies ahead of the clock"
	checkRule(t, times.Note, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "a second ahead, as clocks are", change: func(s *situation.Situation) { podAt(s, 1).Created = noon.Add(time.Second) }},
		{name: "313: a time from the future", change: ahead, want: one},
		{name: "313: one that is noted", change: with(ahead, noted("pod orders-1 (created)", noon))},
		{name: "313: noted by a clock that was ahead itself", change: with(ahead, noted("pod orders-1 (created)", noon.Add(time.Hour))), want: one},
		{name: "313: two of them", change: with(ahead, func(s *situation.Situation) { podAt(s, 0).Created = noon.Add(time.Hour) }, noted("pod orders-1 (created)", noon)), want: "note when quorate first saw the time of pod orders-1 (created), and 1 more: it lies"},
		{name: "313: in whatever order", change: with(ahead, func(s *situation.Situation) { podAt(s, 0).Created = noon.Add(time.Hour) }, noted("pod orders-0 (created)", noon)), want: "note when quorate first saw the time of pod orders-"},
		{name: "what nothing waits for", change: func(s *situation.Situation) { s.Observed.Objects[0].ChangedAt = noon.Add(time.Hour) }},
		{name: "without a record there is nothing to note it in", change: with(ahead, func(s *situation.Situation) { s.Observed.Record = nil })},
		{name: "who only observes notes nothing", change: with(ahead, func(s *situation.Situation) { s.Desired.Spec.Mode = schema.ModeObserve })},
	})
}

// wait is a wait of the planner that begins with a time that another machine has noted,
// or quorate on another node.
type wait struct {
	name string
	// from sets the time that the wait begins with.
	from func(s *situation.Situation, at time.Time)
	// long is how long it is, and what the plan says when it is over.
	long time.Duration
	over string
}

// foreignWaits are the waits that end in a step.
func foreignWaits() []wait {
	rejoins := with(gone(1), func(s *situation.Situation) {
		s.Observed.Record.Replacing, s.Observed.Record.Retired, s.Observed.Volumes = "orders-1", nil, nil
	})
	return []wait{
		{"of a repair for data that is lost", func(s *situation.Situation, at time.Time) {
			with(damaged(1, state.DamageEmpty, 0), savedFor("repair orders-1"))(s)
			podAt(s, 1).DamageSince = at
		}, 5 * time.Minute, "write down that orders-1 leaves"},
		{"of a repair for a node that is gone", func(s *situation.Situation, at time.Time) {
			with(down(1), savedFor("repair orders-1"))(s)
			podAt(s, 1).NodeGone, podAt(s, 1).NodeStopped, podAt(s, 1).NodeGoneSince = true, true, at
		}, 5 * time.Minute, "write down that orders-1 leaves"},
		{"of a repair for a node that is silent", func(s *situation.Situation, at time.Time) {
			with(down(1), savedFor("repair orders-1"))(s)
			podAt(s, 1).NodeGone, podAt(s, 1).NodeGoneSince = true, at
		}, time.Hour, "write down that orders-1 leaves"},
		{"after a join that failed", func(s *situation.Situation, at time.Time) {
			rejoins(s)
			s.Observed.Record.FailedJoin = &state.FailedJoin{Member: "orders-1", At: at, Times: 1}
		}, rejoinAfter, "write down that orders-1 joins"},
		{"of a learner for its data", func(s *situation.Situation, at time.Time) {
			with(wanting(4), joining("m3", 0), withPod)(s)
			s.Observed.Record.Joining.Since = at
			for i := range s.Observed.Rounds {
				m := s.Observed.Rounds[i].Member("orders-3")
				m.Problem, m.Version, m.Leader = "connection refused", "", ""
			}
			podAt(s, 3).Ready = false
		}, 10 * time.Minute, "remove the learner orders-3"},
		{"of a restarted member that soaks", func(s *situation.Situation, at time.Time) {
			with(commit(newVersion), begun, rolled(newVersion, 2), backedUp(time.Minute), leads(0))(s)
			s.Desired.Spec.Upgrade.Soak = seconds(600)
			s.Observed.Set.Partition = 2
			podAt(s, 2).ReadySince = at
		}, 10 * time.Minute, "restart orders-1"},
	}
}

// 314: no wait is cut short by a time that lies ahead of the clock, and none lasts
// until that time has come: it is as long as it is to be, from when quorate saw it. Where
// that time comes meanwhile it counts, so that no wait is longer than two.
func TestAWaitFromTheFutureIsAsLongAsAnyOther(t *testing.T) {
	const every = 10 * time.Second
	for _, w := range foreignWaits() {
		for _, ahead := range []time.Duration{0, 30 * time.Second, 2 * time.Minute, 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
			s := healthy(3)
			w.from(s, noon.Add(ahead))
			s.Desired = rendered(s.Desired, s.Observed)
			took, text := waited(s, every, w.long+time.Hour)
			if !strings.Contains(text, w.over) {
				t.Errorf("%s that began %s ahead of the clock is not over after %s: %s", w.name, ahead, took, text)
				continue
			}
			if most := w.long + max(0, min(ahead, w.long+time.Minute)) + 2*every; took < w.long || took > most {
				t.Errorf("%s that began %s ahead of the clock took %s, want from %s to %s", w.name, ahead, took, w.long, most)
			}
		}
	}
}

// waited makes a pass now and then, with rounds that are always new, and returns after
// how long there was another step than to note times.
func waited(s *situation.Situation, every, most time.Duration) (took time.Duration, text string) {
	o, rec := s.Observed, records.Record{}
	begun := o.Record.Backup
	for took = 0; took <= most; took += every {
		now := noon.Add(took)
		for i := range o.Rounds {
			o.Rounds[i].At = now.Add(state.Between * time.Duration(i-len(o.Rounds)+1))
		}
		if begun != nil { // its age is not what is waited for
			o.Record.Backup.Time = now.Add(-time.Minute)
		}
		p := Make(s.Desired, o, now)
		text = p.Text()
		if p.Hold != nil {
			continue
		}
		a, notes := p.Steps[0].Action.(action.NoteTimes)
		if !notes {
			return took, text
		}
		rec.NoteTimes(a, now)
		o.Record.Seen = rec.State().Seen
	}
	return most, text
}

// 315: a backup that is dated ahead of the clock may be of any age, and is no backup for
// what comes next.
func TestABackupFromTheFutureIsTakenAgain(t *testing.T) {
	for ahead, fresh := range map[time.Duration]bool{-16 * time.Minute: false, -time.Minute: true, 30 * time.Second: true, 2 * time.Minute: false, 24 * time.Hour: false} {
		s := healthy(3)
		with(commit(newVersion), backedUp(-ahead))(s)
		s = situation.Of(rendered(s.Desired, s.Observed), s.Observed, noon)
		if s.HasBackup() != fresh {
			t.Errorf("a backup of %s ahead of the clock counts: %v", ahead, s.HasBackup())
		}
		s = healthy(3)
		with(damaged(1, state.DamageEmpty, time.Hour), savedFor("repair orders-1"))(s)
		s.Observed.Record.Backup.Time = noon.Add(ahead)
		if text := said(repair, situation.Of(s.Desired, s.Observed, noon)); strings.HasPrefix(text, "write down") != fresh {
			t.Errorf("a backup of %s ahead of the clock: %s", ahead, text)
		}
	}
}
