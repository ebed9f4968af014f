package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestDefragment(t *testing.T) {
	// Noon of 1 March 2026 is a Sunday.
	schedule := func(cron, zone string) mutation {
		return func(s *situation.Situation) {
			s.Desired.Spec.Defragmentation = schema.DefragmentationSpec{Schedule: cron, TimeZone: zone}
		}
	}
	last := func(age time.Duration, ordinals ...int32) mutation {
		return func(s *situation.Situation) {
			if s.Observed.Record.Defragmented == nil {
				s.Observed.Record.Defragmented = map[string]time.Time{}
			}
			for _, i := range ordinals {
				s.Observed.Record.Defragmented[naming.Member("orders", i)] = noon.Add(-age)
			}
		}
	}
	never := func(s *situation.Situation) { s.Desired.Spec.Defragmentation.Mode = schema.DefragmentationNever }
	closed := func(s *situation.Situation) {
		s.Desired.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("0 2 * * 6", "1h", "UTC")}
	}
	open := func(s *situation.Situation) {
		s.Desired.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("0 11 * * 0", "2h", "UTC")}
	}
	version := func(v string) mutation {
		return with(looks(func(r *state.Round) {
			for i := range r.Members {
				r.Members[i].Version = v
			}
		}), samePods(v))
	}
	small := holds(20, 15, 2048)
	roomy := holds(300, 50, 2048)
	checkRule(t, defragment, []ruleCase{
		{name: "17: small databases", change: small},
		{name: "160: more than 200Mi are free: the highest follower first", change: roomy, want: "defragment orders-1: much of its file is free (250Mi of 300Mi)"},
		{name: "160: not 200Mi", change: holds(300, 100, 2048)},
		{name: "160: 80 % of the quota, and some can be given back", change: holds(80, 70, 100), want: "defragment orders-1: its file comes near its quota of 100Mi, and some of it can be given back (10Mi of 80Mi)"},
		{name: "160: 80 % of the quota, and nothing can be", change: holds(80, 79, 100)},
		{name: "160: less than 80 %", change: holds(79, 20, 100)},
		{name: "160: the next follower", change: with(roomy, database(1, 50, 50)), want: "defragment orders-0"},
		{name: "160: the leader last, and it hands over first", change: with(small, database(2, 300, 50)), want: "move the leader orders-2 → orders-0: orders-2 is defragmented next"},
		{name: "160: the leader has handed over", change: with(small, database(2, 300, 50), leads(0)), want: "defragment orders-2"},
		{name: "160: a single member", size: 1, change: roomy, want: "defragment orders-0"},
		{name: "a size that is unknown", change: holds(300, 0, 2048)},
		{name: "Git says never", change: with(roomy, never)},
		{name: "not again at once", change: with(roomy, last(59*time.Minute, 0, 1, 2))},
		{name: "but after an hour", change: with(roomy, last(time.Hour, 0, 1, 2)), want: "defragment orders-1"},
		{name: "I26: thresholds keep to the windows", change: with(roomy, closed)},
		{name: "I26: inside of one", change: with(roomy, open), want: "defragment orders-1"},
		{name: "I26: windows that cannot be read are closed", change: with(roomy, func(s *situation.Situation) {
			s.Desired.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("often", "2h", "UTC")}
		})},
		{name: "the schedule waits for no window", change: with(small, closed, schedule("30 11 * * 0", "UTC")), want: "defragment orders-1: by spec.defragmentation.schedule: Sun 2026-03-01 11:30 UTC"},
		{name: "the schedule in its zone", change: with(small, schedule("30 12 * * 0", "Europe/Berlin")), want: "defragment orders-1: by spec.defragmentation.schedule: Sun 2026-03-01 12:30 CET"},
		{name: "the schedule has not struck", change: with(small, schedule("30 12 * * 0", "UTC"))},
		{name: "97: a time that was missed is not made good", change: with(small, schedule("59 10 * * 0", "UTC"))},
		{name: "the schedule takes each member once", change: with(small, schedule("30 11 * * 0", "UTC"), last(10*time.Minute, 1)), want: "defragment orders-0"},
		{name: "the time before does not count", change: with(small, schedule("30 11 * * 0", "UTC"), last(time.Hour, 0, 1, 2)), want: "defragment orders-1"},
		{name: "all have been taken", change: with(small, schedule("30 11 * * 0", "UTC"), last(10*time.Minute, 0, 1, 2))},
		{name: "the last of several times counts", change: with(small, schedule("*/20 * * * *", "UTC"), last(10*time.Minute, 0, 1, 2)), want: "by spec.defragmentation.schedule: Sun 2026-03-01 12:00 UTC"},
		{name: "I23: never without room for the copy", change: with(roomy, volumeWith(1, 471<<20)), want: "defragment orders-0"},
		{name: "I23: with just enough", change: with(roomy, volumeWith(1, 473<<20)), want: "defragment orders-1"},
		{name: "I23: a volume of unknown size is not judged", change: with(roomy, volumeWith(1, 0)), want: "defragment orders-1"},
		{name: "I23: also on a schedule", change: with(roomy, volumeWith(1, 471<<20), schedule("30 11 * * 0", "UTC")), want: "defragment orders-0"},
		{name: "I23: never on an unsafe release", change: with(roomy, version("3.5.22"))},
		{name: "I23: nor on one that is unknown", change: with(roomy, looks(func(r *state.Round) {
			for i := range r.Members {
				r.Members[i].Version = ""
			}
		}))},
		{name: "I23: never within a roll", change: with(roomy, commit(newVersion))},
		{name: "I23: not after one look", change: with(roomy, func(s *situation.Situation) { s.Observed.Rounds = s.Observed.Rounds[1:] }), want: "Confirm: health counts when it was seen twice"},
		{name: "I23: not while the one before has not caught up", change: with(roomy, of(1, func(m *state.Member) { m.AppliedIndex = 4999 })), want: "Confirm: orders-1 has not applied yet what the leader had committed (4999 of 5000 entries)"},
		{name: "I23: not after a sick moment", change: with(roomy, func(s *situation.Situation) { s.Observed.Rounds[0].Members[0].Problem = "timeout" }), want: "Confirm: healthy now, but a moment ago"},
		{name: "an unformed cluster", change: unformed},
		{name: "also one whose members answer", change: with(roomy, func(s *situation.Situation) { s.Observed.Record = &state.Record{} })},
		{name: "no StatefulSet", change: with(roomy, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "a member that does not answer", change: with(small, database(0, 300, 50), down(0))},
		{name: "a file that is unknown", change: with(small, schedule("30 11 * * 0", "UTC"), last(10*time.Minute, 1, 2), database(0, 0, 0))},
		{name: "a schedule that cannot be read", change: with(small, schedule("at noon", "UTC"))},
		{name: "a zone that is unknown", change: with(small, schedule("30 11 * * 0", "Mars/Olympus"))},
		{name: "no member was asked", change: func(s *situation.Situation) { s.Observed.Rounds = nil }},
	})
	tight := healthy(3)
	with(roomy, volumeWith(1, 400<<20))(tight)
	if got := tight.NotDefragmented(); len(got) != 1 || !strings.Contains(got[0].Text, "its volume of 400Mi has no room for a copy beside the file and the log, "+
		"and a full disk stops etcd; grow spec.storage.size to 4.25Gi") {
		t.Errorf("%q", got)
	}
	for name, change := range map[string]mutation{
		"a cluster that has not formed": with(roomy, version("3.5.22"), func(s *situation.Situation) { s.Observed.Record = &state.Record{} }),
		"a release that is unknown":     with(roomy, version("")),
		"members that do not answer":    with(roomy, version("3.5.22"), everyMember(func(m *state.Member) { m.Problem = "timeout" })),
	} {
		s := healthy(3)
		if change(s); len(s.NotDefragmented()) != 0 {
			t.Errorf("%s: %q", name, s.NotDefragmented())
		}
	}
	s := healthy(3)
	with(roomy, version("3.5.22"))(s)
	if p := Make(s.Desired, s.Observed, noon); p.Hold != nil || len(p.Steps) != 0 || len(p.Warnings) != 3 ||
		!strings.Contains(p.Warnings[0].Text, "orders-0 is not defragmented, although much of its file is free: a defragmentation of 3.5.22 may corrupt its data") || p.Warnings[0].Detail != "250Mi of 300Mi" {
		t.Errorf("plan:\n%s", p.Text())
	}
}

// A roll that is due comes before a defragmentation that is.
func TestRollComesBeforeDefragmentation(t *testing.T) {
	s := healthy(3)
	with(holds(300, 50, 2048), commit(newVersion))(s)
	p := Make(s.Desired, s.Observed, noon)
	if len(p.Steps) == 0 || !strings.HasPrefix(p.Steps[0].String(), "back up") {
		t.Errorf("plan:\n%s", p.Text())
	}
}
