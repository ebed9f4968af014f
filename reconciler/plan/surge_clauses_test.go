package plan

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// surgeCase is a question to package surge about one member or more, and the answer.
type surgeCase struct {
	name   string
	size   int32
	change mutation
	want   any
}

// checkSurge asks without the rest of the planner, which often asks only where the answer is clear.
func checkSurge(t *testing.T, ask func(*situation.Situation) any, cases []surgeCase) {
	t.Helper()
	for _, c := range cases {
		s := healthy(max(c.size, 1))
		c.change(s)
		if got := ask(s); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// newRelease has Git ask for another release of a member that is replaced by way of a second one.
func newRelease(changes ...mutation) mutation {
	return with(append([]mutation{surging, commit(newVersion), begun}, changes...)...)
}

// halfStale is a pod that admission would make otherwise by now.
func halfStale(change func(*state.Set)) mutation {
	return with(surging, func(s *situation.Situation) {
		podAt(s, 0).Stale = true
		change(s.Observed.Set)
	})
}

// 552: when there is to be a second member.
func TestASecondMemberIsDue(t *testing.T) {
	without := func(members ...string) mutation {
		return func(s *situation.Situation) {
			for _, m := range members {
				delete(s.Observed.Record.Members, m)
			}
		}
	}
	joining := func(member string) mutation {
		return func(s *situation.Situation) { s.Observed.Record.Joining = &state.Joining{Member: member} }
	}
	checkSurge(t, func(s *situation.Situation) any { return surge.Due(s.Desired, state.Waypoint{}, s.Observed) }, []surgeCase{
		{"for another release", 1, newRelease(), true},
		{"where it is there, and as Git wants it", 2, newRelease(rolled(newVersion, 1)), true},
		{"not where it is not", 2, newRelease(), false},
		{"not among three, even as Git wants it", 3, newRelease(rolled(newVersion, 1)), false},
		{"while it stands in for the first one", 2, newRelease(without("orders-0"), func(s *situation.Situation) { s.Observed.Pods = s.Observed.Pods[1:] }), true},
		{"not where neither is a member", 3, newRelease(without("orders-0", "orders-1")), false},
		{"not without a StatefulSet", 2, newRelease(without("orders-0"), func(s *situation.Situation) { s.Observed.Set = nil }), false},
		{"while it joins, also where the first one is not ready", 1, newRelease(joining("orders-1"), unready(0)), true},
		{"not while another one joins", 1, newRelease(joining("orders-2"), unready(0)), false},
		{"not for one that does not serve", 1, newRelease(unready(0)), false},
	})
}

// 554: why the first member does not stay.
func TestWhyTheFirstMemberGoes(t *testing.T) {
	const template = "orders-0 gets another template"
	checkSurge(t, func(s *situation.Situation) any { return surge.Goes(s.Desired, s.Observed) }, []surgeCase{
		{"another release", 1, newRelease(), "orders-0 gets etcd 3.6.16"},
		{"not by its label alone", 1, with(surging, func(s *situation.Situation) { podAt(s, 0).Version = newVersion }), ""},
		{"not without a StatefulSet", 1, newRelease(func(s *situation.Situation) { s.Observed.Set = nil }), ""},
		{"not without a pod", 1, newRelease(func(s *situation.Situation) { s.Observed.Pods = nil }), ""},
		{"what admission makes of it, in a roll", 1, halfStale(func(set *state.Set) { set.CurrentTemplate = "z" }), template},
		{"or one that is not closed", 1, halfStale(func(set *state.Set) { set.Partition = 0 }), template},
		{"at rest it stays", 1, halfStale(func(*state.Set) {}), ""},
		{"in a roll, too, where admission makes the same of it", 1, with(surging, func(s *situation.Situation) { s.Observed.Set.Partition = 0 }), ""},
		{"another volume", 1, with(surging, misplacedAt0), "orders-0 is to have a volume of class fast"},
		{"not one that is not there", 1, with(surging, misplacedAt0, func(s *situation.Situation) { s.Observed.Volumes = nil }), ""},
	})
	checkSurge(t, func(s *situation.Situation) any { return surge.Drains(s.Desired, s.Observed) }, []surgeCase{
		{"its node", 1, with(surging, drains), true},
		{"and another template", 1, newRelease(drains), false},
		{"no node", 1, surging, false},
		{"no pod", 1, with(surging, func(s *situation.Situation) { s.Observed.Pods = nil }), false},
	})
}

// I14 I22: what etcd allows only in place.
func TestWhatRestartsInPlace(t *testing.T) {
	mode := func(own, also, wanted schema.TLSMode) mutation {
		return with(surging, func(s *situation.Situation) {
			s.Observed.Transport, s.Desired.Spec.TLS.Mode = state.Transport{Own: own, Also: also}, wanted
		})
	}
	const changes = "spec.tls.mode changes"
	checkSurge(t, func(s *situation.Situation) any { return surge.InPlace(s.Desired, state.Waypoint{}, s.Observed) }, []surgeCase{
		{"nothing", 1, newRelease(), ""},
		{"3.6 reads every log", 1, newRelease(bornOn("")), ""},
		{"members that were not asked say nothing", 1, newRelease(func(s *situation.Situation) { s.Observed.Rounds = nil }), ""},
		{"members that listen to both", 1, mode(schema.TLSManaged, schema.TLSDisabled, schema.TLSManaged), changes},
		{"another mode", 1, mode(schema.TLSManaged, "", schema.TLSDisabled), changes},
		{"not the same mode", 1, mode(schema.TLSManaged, "", schema.TLSManaged), ""},
		{"not a mode that nobody knows", 1, mode("", "", schema.TLSManaged), ""},
	})
}

// 554: a member that was to leave stays.
func TestTheFirstMemberStaysAfterAll(t *testing.T) {
	left := func(change func(*state.Leaving)) func(*situation.Situation) any {
		l := state.Leaving{Member: "orders-0", ID: "m0", Replace: true, Serving: true}
		change(&l)
		return func(s *situation.Situation) any { return surge.Cancelled(s.Desired, s.Observed, l) }
	}
	asIs := left(func(*state.Leaving) {})
	checkSurge(t, asIs, []surgeCase{
		{"nothing asks for it any more", 2, surging, true},
		{"not while something does", 2, newRelease(rolled(newVersion, 1)), false},
		{"as Git wants neither", 2, newRelease(), true},
		{"not where Git wants more", 2, wanting(3), false},
		{"not among three", 3, wanting(1), false},
	})
	checkSurge(t, left(func(l *state.Leaving) { l.Replace = false }), []surgeCase{{"not one that goes for good", 2, surging, false}})
	checkSurge(t, left(func(l *state.Leaving) { l.Serving = false }), []surgeCase{{"not one that was lost", 2, surging, false}})
	checkSurge(t, left(func(l *state.Leaving) { l.Member = "orders-1" }), []surgeCase{{"not the second one", 2, surging, false}})
}
