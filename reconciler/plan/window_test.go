package plan

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// windowOf is a maintenance window.
func windowOf(schedule, duration, zone string) schema.MaintenanceWindow {
	d, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	return schema.MaintenanceWindow{Schedule: schedule, Duration: metav1.Duration{Duration: d}, TimeZone: zone}
}

// only lets members restart in these windows.
func only(windows ...schema.MaintenanceWindow) mutation {
	return func(s *situation.Situation) { s.Desired.Spec.Maintenance = windows }
}

// 11 99: when a window is open, and when the next one opens.
func TestWindowsOpenAndClose(t *testing.T) {
	const berlin = "Europe/Berlin"
	for _, c := range []struct {
		name                     string
		schedule, duration, zone string
		now, want                string // in RFC 3339; want is "open" inside
	}{
		{"before it opens", "0 2 * * 6", "3h", "UTC", "2026-11-28T01:59:59Z", "2026-11-28T02:00:00Z"},
		{"as it opens", "0 2 * * 6", "3h", "UTC", "2026-11-28T02:00:00Z", "open"},
		{"in the middle", "0 2 * * 6", "3h", "UTC", "2026-11-28T03:30:00.5Z", "open"},
		{"its last moment", "0 2 * * 6", "3h", "UTC", "2026-11-28T04:59:59.999Z", "open"},
		{"as it closes", "0 2 * * 6", "3h", "UTC", "2026-11-28T05:00:00Z", "2026-12-05T02:00:00Z"},
		{"a zone", "0 2 * * 6", "3h", berlin, "2026-11-28T00:59:59Z", "2026-11-28T02:00:00+01:00"},
		{"a zone, inside", "0 2 * * 6", "3h", berlin, "2026-11-28T01:00:00Z", "open"},
		{"no zone is UTC", "0 2 * * 6", "3h", "", "2026-11-28T01:00:00Z", "2026-11-28T02:00:00Z"},
		{"over midnight, before", "0 23 * * *", "4h", "UTC", "2026-11-28T23:30:00Z", "open"},
		{"over midnight, after", "0 23 * * *", "4h", "UTC", "2026-11-29T02:59:00Z", "open"},
		{"over midnight, over", "0 23 * * *", "4h", "UTC", "2026-11-29T03:00:00Z", "2026-11-29T23:00:00Z"},
		{"over the end of a month and a year", "0 22 31 12 *", "24h", "UTC", "2027-01-01T21:59:00Z", "open"},
		{"the last day of a short month never comes", "0 2 31 * *", "1h", "UTC", "2026-11-01T00:00:00Z", "2026-12-31T02:00:00Z"},
		{"29 February", "0 2 29 2 *", "1h", "UTC", "2026-03-01T00:00:00Z", "2028-02-29T02:00:00Z"},
		{"29 February, inside", "0 2 29 2 *", "1h", "UTC", "2028-02-29T02:10:00Z", "open"},
		{"every minute for a week never closes", "* * * * *", "168h", "UTC", "2026-11-28T05:00:30Z", "open"},
		{"openings overlap", "0 * * * *", "90m", "UTC", "2026-11-28T05:59:59Z", "open"},
		{"clocks go forward over the opening: the first moment after", "30 2 * * *", "1h", berlin, "2026-03-29T00:59:59Z", "2026-03-29T03:00:00+02:00"},
		{"clocks go forward over the opening, inside", "30 2 * * *", "1h", berlin, "2026-03-29T01:00:00Z", "open"},
		{"clocks go forward over the opening, over after an hour", "30 2 * * *", "1h", berlin, "2026-03-29T02:00:00Z", "2026-03-30T02:30:00+02:00"},
		{"clocks go forward inside: three hours go by all the same", "0 1 29 3 *", "3h", berlin, "2026-03-29T02:59:59Z", "open"},
		{"clocks go forward inside, over", "0 1 29 3 *", "3h", berlin, "2026-03-29T03:00:00Z", "2027-03-29T01:00:00+02:00"},
		{"clocks go back inside: three hours go by all the same", "0 1 25 10 *", "3h", berlin, "2026-10-25T01:59:59Z", "open"},
		{"clocks go back inside, over", "0 1 25 10 *", "3h", berlin, "2026-10-25T02:00:00Z", "2027-10-25T01:00:00+02:00"},
		{"clocks go back over the opening: it opens at the first", "30 2 25 10 *", "15m", berlin, "2026-10-25T00:31:00Z", "open"},
		{"clocks go back over the opening: and at the second", "30 2 25 10 *", "15m", berlin, "2026-10-25T01:31:00Z", "open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, c.now)
			if err != nil {
				t.Fatal(err)
			}
			got, err := windowOf(c.schedule, c.duration, c.zone).Opening(now)
			if err != nil {
				t.Fatal(err)
			}
			text := got.Format(time.RFC3339)
			if got.Equal(now) {
				text = "open"
			}
			if text != c.want {
				t.Errorf("at %s: %s, want %s", c.now, text, c.want)
			}
		})
	}
}

// noon is a Sunday in March.
func TestWindow(t *testing.T) {
	saturdays := windowOf("0 2 * * 6", "3h", "Europe/Berlin")
	closed := only(saturdays)
	// The year 2100 is no leap year: from 2096 on there is no 29 February for eight years.
	leapDay := windowOf("0 0 29 2 *", "1h", "UTC")
	century := func(s *situation.Situation) { s.Now = time.Date(2097, 1, 1, 0, 0, 0, 0, time.UTC) }
	const says = "Waiting: outside the maintenance window; the next one opens Sat 2026-03-07 02:00 CET"
	upgrade := with(commit(newVersion), backedUp(time.Minute))
	checkRule(t, window, []ruleCase{
		{name: "nothing to do needs no window", change: closed},
		{name: "a cluster that has not formed serves nobody", change: with(asksState(schema.StateHibernated), closed, func(s *situation.Situation) { s.Observed.Record = &state.Record{} })},
		{name: "nor does one without a StatefulSet", change: with(wanting(1), closed, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "without windows every time is good", change: upgrade},
		{name: "an open window", change: with(upgrade, only(saturdays, windowOf("0 12 * * 0", "1h", "UTC")))},
		{name: "outside", change: with(upgrade, closed), want: says},
		{name: "members that are too many leave in a window", change: with(wanting(1), closed), want: says},
		{name: "members that are too few join at any time", change: with(wanting(5), closed)},
		{name: "sleep waits, too", change: with(asksState(schema.StateHibernated), closed), want: says},
		{name: "settings wait like versions", change: with(commit(oldVersion), closed), want: says},
		{name: "the next of several windows", change: with(upgrade, only(saturdays, windowOf("0 23 * * 1", "1h", "UTC"))), want: "opens Mon 2026-03-02 23:00 UTC"},
		{name: "in any order", change: with(upgrade, only(windowOf("0 23 * * 1", "1h", "UTC"), saturdays)), want: "opens Mon 2026-03-02 23:00 UTC"},
		{name: "beside one that does not open for years", change: with(upgrade, century, only(saturdays, leapDay)), want: "the next one opens Sat 2097-"},
		{name: "for years is not now", change: with(upgrade, century, only(leapDay)), want: "Refused: spec.maintenance never opens: no window comes within five years"},
		{name: "a window that closes stops the roll between two members", change: with(upgrade, begun, rolled(newVersion, 2), closed), want: says},
		{name: "giving a roll up waits, too: it restarts members that are well", change: with(func(s *situation.Situation) {
			s.Observed.Set.Template, s.Observed.Set.Version = "x", newVersion
			podAt(s, 2).Template = "x"
		}, closed), want: says},
		{name: "a member that a roll has broken is fixed at any time", change: with(upgrade, closed, down(1), func(s *situation.Situation) {
			podAt(s, 1).Template, podAt(s, 1).Trouble = "x", "CrashLoopBackOff"
		})},
		{name: "the first backup of an upgrade does not wait", change: with(commit(newVersion), closed)},
		{name: "a backup that has become too old waits for the window", change: with(commit(newVersion), backedUp(time.Hour), closed), want: says},
		{name: "a backup for another target is none", change: with(commit(newVersion), backedUp(time.Hour), closed, func(s *situation.Situation) { s.Observed.Record.Backup.For = "3.5.36" })},
		{name: "without a backup the start waits", change: with(commit(newVersion), closed, func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip }), want: says},
		{name: "a schedule that cannot be read never counts as open", change: with(upgrade, only(windowOf("often", "1h", "UTC"))), want: "Refused: it is unknown when spec.maintenance[0] opens: "},
		{name: "nor does a zone that is unknown", change: with(upgrade, only(saturdays, windowOf("0 2 * * 6", "1h", "Mars/Olympus"))), want: "it is unknown when spec.maintenance[1] opens: "},
	})
}

// The words of the hold stay the same until the window opens, so that it is said
// once; and it is looked at again in time, and not too verdict.Rarely meanwhile.
func TestWindowHoldIsStableAndOnTime(t *testing.T) {
	s := healthy(3)
	with(commit(newVersion), backedUp(time.Minute), only(windowOf("0 14 * * *", "1h", "UTC")))(s)
	first := window(s).Hold
	for _, c := range []struct{ after, again time.Duration }{
		{0, verdict.Rarely}, {time.Hour, verdict.Rarely}, {2*time.Hour - 90*time.Second, 90 * time.Second}, {2*time.Hour - 1, 1},
	} {
		s.Now = noon.Add(c.after)
		h := window(s).Hold
		if h == nil || h.String() != first.String() || h.Again != c.again || !h.Since.IsZero() {
			t.Errorf("after %s: %+v, want again in %s: %s", c.after, h, c.again, first)
		}
	}
	s.Now = noon.Add(2 * time.Hour)
	if v := window(s); !v.Silent() {
		t.Errorf("as it opens: %+v", v.Hold)
	}
}

// What is done inside the window is forecast while it is awaited, the fresh
// backup included.
func TestForecastGoesOnBehindTheWindow(t *testing.T) {
	s := healthy(3)
	with(commit(newVersion), backedUp(time.Minute), only(windowOf("0 14 * * *", "1h", "UTC")))(s)
	p := Make(s.Desired, s.Observed, noon)
	if p.Hold == nil || p.Hold.Rule != "window" || len(p.Steps) == 0 {
		t.Fatalf("%s", p.Text())
	}
	if _, backup := p.Steps[0].Action.(action.TakeBackup); !backup || !strings.Contains(p.Text(), "restart orders-0") {
		t.Errorf("%s", p.Text())
	}
}
