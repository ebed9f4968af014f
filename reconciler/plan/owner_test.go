package plan

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// The owners that the tables speak of.
func us() state.Owner {
	return state.Owner{Source: "https://git.example.com/etcd.git@main:clusters", Instance: "default"}
}

func them() state.Owner {
	return state.Owner{Source: "https://git.example.com/old.git@main", Instance: "default"}
}

// asks lets somebody ask for the plan.
func asks(o state.Owner) mutation { return func(s *situation.Situation) { s.Desired.Owner = o } }

// belongs writes an owner into the record, by its first claim or a later one.
func belongs(o state.Owner, claim int) mutation {
	return func(s *situation.Situation) {
		o.Claim = claim
		s.Observed.Record.Owner = &o
	}
}

func takeOver(from string) mutation {
	return func(s *situation.Situation) { s.Desired.Spec.TakeOver = from }
}

// 142: two daemons never act on one cluster.
func TestOwner(t *testing.T) {
	eu := us()
	eu.Instance = "eu"
	const old = "https://git.example.com/old.git@main#default"
	checkRule(t, owner, []ruleCase{
		{name: "somebody who only plans sees every cluster", change: belongs(them(), 1)},
		{name: "ours passes", change: with(asks(us()), belongs(us(), 1))},
		{name: "ours passes, whatever it was claimed for", change: with(asks(us()), belongs(us(), 7))},
		{name: "what was to be taken is ours already", change: with(asks(us()), belongs(us(), 2), takeOver(old+"/1"))},
		{name: "a new cluster gets its owner with its record", change: with(asks(us()), func(s *situation.Situation) { s.Observed.Record = nil })},
		{name: "a record from before there were owners is claimed", change: asks(us()), want: "claim the cluster for " + us().String() + "/1: its record names no owner yet"},
		{
			name: "another repository's is left alone, both are named", change: with(asks(us()), belongs(them(), 1)),
			want: "Refused: the cluster belongs to " + old + "/1, and this is https://git.example.com/etcd.git@main:clusters#default; remove the file here; or let go of the cluster there with mode: Observe, and write spec.takeOver: \"" + old + "/1\" here",
		},
		{name: "another instance's is left alone", change: with(asks(us()), belongs(eu, 1)), want: "Refused: the cluster belongs to " + eu.String() + "/1, and this is " + us().String()},
		{name: "a person's word takes it over", change: with(asks(us()), belongs(them(), 1), takeOver(old+"/1")), want: "take the cluster over from " + old + "/1: spec.takeOver names its owner"},
		{name: "the word does not work twice", change: with(asks(us()), belongs(them(), 3), takeOver(old+"/1")), want: "Refused: the cluster belongs to " + old + "/3, and this is " + us().String() + " (spec.takeOver names " + old + "/1, which does not own it)"},
		{name: "nor for somebody else's cluster", change: with(asks(us()), belongs(eu, 1), takeOver(old+"/1")), want: "Refused: "},
	})
}

// I13: each change of owner has a number of its own, so that two files that take
// a cluster from each other do not play ball with it.
func TestOwnersDoNotPlayBall(t *testing.T) {
	s := healthy(3)
	with(asks(us()), belongs(them(), 1), takeOver(them().String()+"/1"))(s)
	v := owner(s)
	if v.Step == nil {
		t.Fatal(words(v))
	}
	s = after(s, v.Step.Action)
	if got := s.Observed.Record.Owner.String(); got != us().String()+"/2" {
		t.Fatalf("the owner is %s", got)
	}
	with(asks(them()), takeOver(us().String()+"/2"))(s)
	if v = owner(s); v.Step == nil {
		t.Fatal(words(v))
	}
	s = after(s, v.Step.Action)
	with(asks(us()), takeOver(them().String()+"/1"))(s)
	if v = owner(s); v.Hold == nil {
		t.Errorf("the first word worked again: %s", words(v))
	}
}
