package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// neighbour is another cluster of the fleet.
func neighbour(name, why string) state.Neighbour { return state.Neighbour{Name: name, Why: why} }

// atMost lets so many clusters be disrupted, and some are.
func atMost(limit int, disrupted ...state.Neighbour) mutation {
	return func(s *situation.Situation) { s.Observed.Fleet.Limit, s.Observed.Fleet.Disrupted = limit, disrupted }
}

// behind puts the cluster into wave 2, and leaves others of lower waves to do.
func behind(unfinished ...state.Neighbour) mutation {
	return func(s *situation.Situation) { s.Desired.Spec.Upgrade.Wave, s.Observed.Fleet.Unfinished = 2, unfinished }
}

// checked puts the cluster into wave 2, and has checks of clusters of lower waves answer.
func checked(all ...state.Check) mutation {
	return func(s *situation.Situation) { s.Desired.Spec.Upgrade.Wave, s.Observed.Fleet.Checks = 2, all }
}

func TestFleet(t *testing.T) {
	upgrade := with(commit(newVersion), backedUp(0))
	rolls := neighbour("db/baskets", "it is being rolled")
	late := neighbour("db/test", "its file has not been applied yet")
	broken := neighbour("db/users", "2 of 3 members are ready")
	broken.Broken = true
	aged := func(n state.Neighbour, age time.Duration) state.Neighbour { n.Since = noon.Add(-age); return n }
	full := atMost(1, rolls)
	moving := with(stored, wantsClass(schema.ClassChangeReplace), func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" })
	ago := func(age time.Duration) time.Time { return noon.Add(-age) }
	good := state.Check{Cluster: "db/test", Name: "smoke", Since: noon}
	fails := state.Check{Cluster: "db/test", Name: "smoke", Problem: "HTTP 503 from https://test.example.com/healthz", Since: ago(time.Minute)}
	measured := state.Check{Cluster: "db/test", Name: "errors", Problem: "the query of http://prometheus.example.com is not 1", Detail: "one of 2 values is 0.5", Since: ago(time.Hour)}
	young := state.Check{Cluster: "db/test", Name: "bake", For: 10 * time.Minute, Since: ago(10*time.Minute - 1)}
	runless := state.Check{Cluster: "db/test", Name: "orders", Problem: "no run has begun", Do: "start one", Since: ago(time.Minute)}
	unasked := state.Check{Cluster: "db/test", Name: "smoke"}
	const notYet = "wave 2 begins when every lower wave is done; not yet: db/test (check "
	checkRule(t, fleet, []ruleCase{
		{name: "577: every check holds", change: with(upgrade, atMost(1), checked(good, good))},
		{name: "577: a check does not hold", change: with(upgrade, atMost(1), checked(good, fails)), want: "Waiting: " + notYet + "smoke: HTTP 503 from https://test.example.com/healthz, since 2026-03-01T11:59:00Z); look at what the check asks, and why it does not answer as it should; to go on without it, take it out of spec.upgrade.checks of that cluster"},
		{name: "577: for so long that a person should look", change: with(upgrade, checked(measured)), want: "Unhealthy: " + notYet + "errors: the query of http://prometheus.example.com is not 1, since 2026-03-01T11:00:00Z) (errors: one of 2 values is 0.5); look at what the check asks"},
		{name: "577: several do not", change: with(upgrade, checked(fails, measured, fails, fails)), want: "11:59:00Z) and 1 more"},
		{name: "577: what was measured of three is told", change: with(upgrade, checked(measured, measured, measured, measured)), want: "and 1 more (errors: one of 2 values is 0.5; errors: one of 2 values is 0.5; errors: one of 2 values is 0.5); look"},
		{name: "603: a check says what a person can do", change: with(upgrade, checked(good, runless, fails)), want: notYet + "orders: no run has begun, since 2026-03-01T11:59:00Z), db/test (check smoke: HTTP 503 from https://test.example.com/healthz, since 2026-03-01T11:59:00Z); start one; to go on without it, take it out of spec.upgrade.checks", lacks: "look at"},
		{name: "603: what is to be done about the first is told", change: with(upgrade, checked(fails, runless)), want: "); look at what the check asks, and why it does not answer as it should; to go on", lacks: "start one"},
		{name: "577: it has not held for long enough", change: with(upgrade, checked(good, young)), want: "Waiting: " + notYet + "bake holds since 2026-03-01T11:50:00Z, and must for 10m0s)", lacks: "look at"},
		{name: "577: and has then", change: with(upgrade, checked(with10m(young)))},
		{name: "577: one that fails is told before one that settles", change: with(upgrade, checked(young, fails)), want: notYet + "smoke: HTTP 503", lacks: "bake"},
		{name: "577: a plan that is only shown asks nothing", change: with(upgrade, checked(unasked)), want: "Waiting: " + notYet + "smoke is asked by the daemon, when everything else is done); look at what the check asks"},
		{name: "577: a cluster of a lower wave that is not done is told before a check", change: with(upgrade, checked(fails), behind(late)), want: "not yet: db/test (its file", lacks: "check"},
		{name: "577: a check is told before the places", change: with(upgrade, full, checked(fails)), want: notYet + "smoke"},
		{name: "577: a roll that has begun waits for no check", change: with(upgrade, begun, full, checked(fails))},
		{name: "577: a member that an abandoned roll broke is fixed whatever is asked", change: with(upgrade, begun, rolled(newVersion, 2), down(2), func(s *situation.Situation) { s.Desired.Template = "c" }, checked(fails))},
		{name: "nothing to do needs no place", change: full},
		{name: "no other cluster is disrupted", change: with(upgrade, atMost(1))},
		{name: "one who plans alone knows no limit", change: with(upgrade, atMost(0, rolls))},
		{name: "the places are taken", change: with(upgrade, full), want: "Waiting: at most 1 cluster may be disrupted at once (--max-disrupted), and now it is db/baskets (it is being rolled)"},
		{name: "350: what keeps a place for long is a person's to look at", change: with(upgrade, atMost(1, aged(rolls, time.Hour))), want: "Unhealthy: at most 1 cluster may be disrupted at once (--max-disrupted), and now it is db/baskets (it is being rolled); find out what keeps it"},
		{name: "350: a broken one keeps its place for a while", change: with(upgrade, atMost(1, aged(broken, 59*time.Minute))), want: "Waiting: at most 1 cluster may be disrupted at once (--max-disrupted), and now it is db/users (2 of 3 members are ready)"},
		{name: "350: and yields it then", change: with(upgrade, atMost(1, aged(broken, time.Hour)))},
		{name: "350: not where nobody knows since when", change: with(upgrade, atMost(1, broken)), want: "at most 1 cluster"},
		{name: "350: nor where more are broken than may be disrupted", change: with(upgrade, atMost(1, aged(broken, time.Hour), aged(broken, time.Hour))), want: "Unhealthy: at most 1 cluster"},
		{name: "350: beside it others take their turns", change: with(upgrade, atMost(1, aged(broken, time.Hour), rolls)), want: "and now it is db/baskets (it is being rolled)", lacks: "db/users"},
		{name: "350: a lower wave is never passed over", change: with(upgrade, behind(aged(broken, 24*time.Hour))), want: "Unhealthy: wave 2 begins when every lower wave is done; not yet: db/users (2 of 3 members are ready); find out what keeps it: its own status says; to go on without it, set its spec.mode to Observe"},
		{name: "one place is left", change: with(upgrade, atMost(2, rolls))},
		{name: "none is left of two", change: with(upgrade, atMost(2, rolls, neighbour("db/users", "2 of 3 members are ready"))), want: "at most 2 clusters may be disrupted at once (--max-disrupted), and now it is db/baskets (it is being rolled), db/users (2 of 3 members are ready)"},
		{name: "a change of settings disrupts as much", change: with(commit(oldVersion), full), want: "Waiting: at most 1"},
		{name: "a lower wave is not done", change: with(upgrade, atMost(1), behind(late)), want: "Waiting: wave 2 begins when every lower wave is done; not yet: db/test (its file has not been applied yet)"},
		{name: "many are not done", change: with(upgrade, behind(late, late, late, late, late)), want: "applied yet), db/test (its file has not been applied yet) and 2 more"},
		{name: "every lower wave is done", change: with(upgrade, atMost(1), behind())},
		{name: "a roll that has begun continues", change: with(upgrade, begun, full, behind(late))},
		{name: "a roll in the middle continues", change: with(upgrade, begun, rolled(newVersion, 2), full, behind(late))},
		{name: "a roll in the middle turns to a newer file", change: with(upgrade, begun, rolled(newVersion, 2), func(s *situation.Situation) { s.Desired.Template = "c" }, full, behind(late))},
		{name: "a roll in the middle is given up", change: with(upgrade, begun, rolled(newVersion, 2), func(s *situation.Situation) { s.Desired.Template = "a" }, full, behind(late))},
		{name: "a member that an abandoned roll broke is fixed", change: with(upgrade, begun, rolled(newVersion, 2), down(2), func(s *situation.Situation) { s.Desired.Template = "c" }, full, behind(late))},
		{name: "a member whose image cannot be had is fixed", change: with(upgrade, down(2), func(s *situation.Situation) {
			podAt(s, 2).Ran, podAt(s, 2).Unpulled, podAt(s, 2).Trouble = false, true, "ImagePullBackOff"
		}, full, behind(late))},
		{name: "a change of the number of members takes a place", change: with(full, func(s *situation.Situation) { s.Desired.Spec.Replicas = 5 }), want: "Waiting: at most 1"},
		{name: "5: so does one of the class of the volumes", change: with(moving, full), want: "Waiting: at most 1"},
		{name: "5: which the only member cannot begin", size: 1, change: with(moving, full)},
		{name: "a change of the number of members that has begun continues", change: with(full, func(s *situation.Situation) {
			s.Desired.Spec.Replicas = 5
			s.Observed.Record.Joining = &state.Joining{Member: "orders-3"}
		})},
		{name: "a member that was lost is replaced", change: with(full, func(s *situation.Situation) {
			delete(s.Observed.Record.Members, "orders-2")
			s.Observed.Record.Replacing = "orders-2"
		})},
		{name: "one that leaves continues", change: with(full, wanting(1), leaving(2, false))},
		{name: "a StatefulSet that is gone comes back", change: with(full, wanting(5), func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "91: a roll that ends an alarm continues", change: with(alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}), holds(90, 90, 100), raised(200), full)},
		{name: "etcd was told to go down", change: with(upgrade, full, func(s *situation.Situation) { s.Observed.Round().Downgrading = true })},
		{name: "a cluster that has never formed comes up", change: with(unformed, full, behind(late))},
	})
}

// with10m is a check that has held since ten minutes ago.
func with10m(c state.Check) state.Check {
	c.Since = noon.Add(-10 * time.Minute)
	return c
}

// The forecast supposes that the others get done.
func TestForecastGoesBeyondTheFleet(t *testing.T) {
	s := healthy(3)
	with(commit(newVersion), backedUp(0), atMost(1, neighbour("db/baskets", "it is being rolled")))(s)
	p := Make(s.Desired, s.Observed, noon)
	if p.Hold == nil || p.Hold.Rule != "fleet" || len(decision.Restarts(p.Steps)) != 3 {
		t.Errorf("got:\n%s", p.Text())
	}
}
