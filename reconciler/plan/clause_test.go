package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// clauseCase is a case that hangs on one clause of a rule alone.
type clauseCase struct {
	eval func(*situation.Situation) verdict.Verdict
	ruleCase
}

func checkClauses(t *testing.T, cases []clauseCase) {
	t.Helper()
	for _, c := range cases {
		checkRule(t, c.eval, []ruleCase{c.ruleCase})
	}
}

// on changes the record.
func on(f func(*state.Record)) mutation { return func(s *situation.Situation) { f(s.Observed.Record) } }

// 345: single clauses about how clusters begin and end.
func TestClausesOfBeginningAndEnd(t *testing.T) {
	silent := func(s *situation.Situation) {
		joined(s)
		s.Observed.Round().Problem = "context deadline exceeded"
	}
	readyOnes := func(ordinals ...int32) mutation {
		return with(unformed, newPods(time.Minute, ""), silent, func(s *situation.Situation) {
			for _, i := range ordinals {
				podAt(s, i).Ready = true
			}
		})
	}
	halfRolled := with(asksState(schema.StateDeleted), commit(newVersion), begun, rolled(newVersion, 2), asksState(schema.StateDeleted), func(s *situation.Situation) {
		s.Desired.Spec.Deletion.Backup = schema.BackupSkip
	})
	sleeps := with(claimed(deletedClaim, "orders-0"), asksState(schema.StateHibernated), asleep)
	checkClauses(t, []clauseCase{
		{bootstrap, ruleCase{name: "345: volumes of which the record tells nothing", change: with(unformed, func(s *situation.Situation) { s.Observed.Set, s.Observed.Volumes = nil, memberVolumes(3) }), want: "create 3 members"}},
		{bootstrap, ruleCase{name: "345: a quorum is enough to be out of reach", change: readyOnes(0, 1), want: "Unreachable: "}},
		{bootstrap, ruleCase{name: "345: less than that is not", change: readyOnes(0), want: "Waiting: the cluster is forming"}},
		{deletion, ruleCase{name: "345: a roll ends first also without a backup", change: halfRolled}},
		{deletion, ruleCase{name: "345: what never formed holds nobody's data", change: with(unformed, asksState(schema.StateDeleted), func(s *situation.Situation) {
			s.Observed.Record.Deleted, s.Desired.Spec.Deletion.Volumes = true, schema.VolumesDelete
			s.Observed.Set, s.Observed.Objects, s.Observed.Volumes = nil, nil, memberVolumes(1)
			s.Observed.Volumes[0].Holds = ""
		}), want: "delete the volume claim data-orders-0"}},
		{deletion, ruleCase{name: "345: members that are still awake give a backup", change: with(asksState(schema.StateDeleted), asleep, func(s *situation.Situation) {
			s.Desired.Spec.Deletion.Volumes = schema.VolumesDelete
		}), want: "back up through orders-2"}},
		{deletion, ruleCase{name: "345: a volume of which nothing is known is told of", change: with(asksState(schema.StateDeleted), stopped, func(s *situation.Situation) {
			s.Observed.Record.Deleted, s.Desired.Spec.Deletion.Volumes = true, schema.VolumesDelete
			s.Observed.Set, s.Observed.Objects, s.Observed.Volumes = nil, nil, memberVolumes(1)
			s.Observed.Volumes[0].Holds = ""
		}), want: "Refused: volume claim data-orders-0 exists"}},
		{hibernated, ruleCase{name: "345: pods that go already are not called back", change: with(sleeps, func(s *situation.Situation) { s.Observed.Set.Replicas = 0 }), want: "Waiting: 3 pods shut down"}},
		{hibernated, ruleCase{name: "345: nor those that no StatefulSet has", change: with(sleeps, func(s *situation.Situation) { s.Observed.Set = nil }), want: "Waiting: 3 pods shut down"}},
		{objects.Drift, ruleCase{name: "345: the first Service for the members is no news for clients", change: on(func(r *state.Record) { r.Applied = nil }), want: ""}},
		{objects.Drift, ruleCase{name: "345: another Service that is gone is gone", change: with(on(func(r *state.Record) { r.Applied = nil }), func(s *situation.Situation) {
			s.Observed.Objects = []state.Object{{Kind: "Service", Name: "orders-peers", State: state.ObjectMissing}}
		}), want: "apply Service orders-peers: it is gone"}},
	})
}

// 345: single clauses about rolls.
func TestClausesOfRolls(t *testing.T) {
	descending := func(since time.Time) mutation {
		return with(runs("3.7.3"), commit("3.6.16"), descends, func(s *situation.Situation) {
			memberAt(s, 0).StorageVersion, memberAt(s, 1).StorageVersion, memberAt(s, 2).StorageVersion = "3.6.0", "3.7.0", "3.6.0"
			if !since.IsZero() {
				s.Observed.Record.Downgrade = &state.Downgrade{Minor: "3.6", Since: since}
			}
		})
	}
	toSleep := with(commit(newVersion), asksState(schema.StateHibernated))
	// arrived has every pod with what Git says, and a StatefulSet that has not.
	arrived := with(commit(newVersion), rolled(newVersion, 0, 1, 2))
	arrived2 := with(commit(newVersion), rolled(newVersion, 0, 1), begun, func(s *situation.Situation) {
		s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = "b", newVersion
	})
	checkClauses(t, []clauseCase{
		{start, ruleCase{name: "345: what is to sleep is not rolled", change: toSleep}},
		{compare, ruleCase{name: "345: nor compared for that", change: with(toSleep, uncompared)}},
		{leader, ruleCase{name: "345: nor does its leader move", change: toSleep}},
		{restart, ruleCase{name: "345: nor is anybody restarted", change: toSleep}},
		{applied, ruleCase{name: "345: one member is compared with nobody", size: 1, change: with(commit(newVersion), rolled(newVersion, 0), begun, uncompared), want: "record that 3.6.16 is applied"}},
		{end, ruleCase{name: "345: what has not formed has no roll", change: with(unformed, commit(newVersion))}},
		{applied, ruleCase{name: "345: two members are compared", size: 2, change: with(arrived2, uncompared), want: "Confirm: the members' data has not been compared yet"}},
		{restart, ruleCase{name: "345: a pod that would come back as it is", change: with(commit(newVersion), begun, down(0), func(s *situation.Situation) {
			podAt(s, 0).Ran, podAt(s, 0).Unpulled, podAt(s, 0).Trouble = false, true, "no such image"
		}), want: "Refused: orders-0 cannot start (no such image), and a new pod for it would be the same"}},
		{comparedFirst, ruleCase{name: "345: who cannot be asked is not waited for", size: 2, change: with(commit(newVersion), begun, uncompared, down(1), func(s *situation.Situation) {
			podAt(s, 1).Template, podAt(s, 1).Ran, podAt(s, 1).Unpulled, podAt(s, 1).Trouble = "x", false, true, "no such image"
		})}},
		{comparedFirst, ruleCase{name: "345: three can be asked", size: 3, change: with(commit(newVersion), begun, uncompared, down(1), func(s *situation.Situation) {
			podAt(s, 1).Template, podAt(s, 1).Ran, podAt(s, 1).Unpulled, podAt(s, 1).Trouble = "x", false, true, "no such image"
		}), want: "Confirm: "}},
		{compare, ruleCase{name: "345: nobody restarts next", change: arrived}},
		{leader, ruleCase{name: "345: nobody restarts next", change: arrived}},
		{downgrade, ruleCase{name: "345: since when is unknown", change: descending(time.Time{}), want: "Waiting: orders-1 brings its storage down to 3.6; check the log"}},
		{downgrade, ruleCase{name: "345: it takes its time", change: descending(noon.Add(-time.Minute)), want: "Waiting: orders-1 brings its storage down", lacks: "check the log"}},
		{resize, ruleCase{name: "345: when somebody has scaled it", change: func(s *situation.Situation) {
			s.Observed.Set.Replicas, s.Observed.Set.ScaledBy, s.Observed.Set.ScaledAt = 1, "kubectl", noon.Add(-time.Hour)
		}, want: "another writer has set it to 1 (kubectl), and the members are in the record, not there (at 2026-03-01T11:00:00Z)"}},
	})
}

// 345: single clauses about members that are lost, replaced or out of reach.
func TestClausesOfLosses(t *testing.T) {
	answers := func(denied bool, ordinals ...int32) mutation {
		return with(outOfReach, func(s *situation.Situation) {
			for _, i := range ordinals {
				*s.Observed.Round().Member(podAt(s, i).Name) = state.Member{Name: podAt(s, i).Name, ID: s.Observed.Record.Members[podAt(s, i).Name], Denied: denied, Problem: "linearizable read: timeout"}
			}
		})
	}
	foreign := damaged(1, state.DamageForeign, time.Hour)
	lost, reborn := with(leftAlone(1), recovers), with(recovers, adopted)
	gap := with(commit(newVersion), begun, gone(1), pending(1))
	highest := with(gone(2), pending(2), wanting(3), on(func(r *state.Record) { r.Replacing = "orders-2" }), func(s *situation.Situation) {
		s.Desired.Template, s.Observed.Set.Replicas, s.Observed.Set.Partition = "c", 2, 2
		s.Observed.Pods = s.Observed.Pods[1:]
	})
	last := with(commit(newVersion), begun, rolled(newVersion, 1, 2), gone(0), looks(func(r *state.Round) { r.ClusterVersion = "3.6.0" }), func(s *situation.Situation) {
		s.Observed.Record.Replacing, s.Observed.Set.Partition, s.Observed.Volumes, s.Observed.Record.Retired = "orders-0", 1, nil, nil
	})
	reshaped := with(stored, wantsClass(schema.ClassChangeReplace), func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" })
	removed := with(gone(2), wanting(2), func(s *situation.Situation) {
		s.Observed.Pods, s.Desired.Spec.Storage.RemovedVolumes = s.Observed.Pods[1:], schema.VolumesDelete
	})
	checkClauses(t, []clauseCase{
		{membership, ruleCase{name: "345: a replacement goes on, whatever becomes of other claims", change: with(claimed(deletedClaim, "orders-0"), leaving(2, true), leads(0), on(func(r *state.Record) { r.Leaving.Serving = true })), want: "remove orders-2"}},
		{recovery.Reachable, ruleCase{name: "345: a member that answers says nothing of users", change: answers(false, 1), want: "Unreachable: quorate cannot reach the members"}},
		{recovery.Reachable, ruleCase{name: "345: one that is for users only says it for all", change: answers(true, 0), want: "Unreachable: the members answer quorate only as a user of etcd"}},
		{recovery.Reachable, ruleCase{name: "345: a quorum that answers is reached", change: answers(false, 0, 1)}},
		{recovery.Reachable, ruleCase{name: "345: an earlier refusal is no recovery", change: with(outOfReach, on(func(r *state.Record) { r.RefusedRecovery = "c0 from member orders-0" })), want: "Unreachable: "}},
		{recovery.Run, ruleCase{name: "345: a node that is gone since a moment", change: with(lost, allStopped, func(s *situation.Situation) {
			s.Observed.Pods = []state.Pod{{Name: "orders-2"}}
		}), want: "Waiting: the recovery waits for orders-2 to be gone", lacks: "force-delete"}},
		{recovery.Run, ruleCase{name: "345: a claim that is gone is none to continue from", change: with(lost, func(s *situation.Situation) { s.Observed.Volumes = nil }), want: "Unhealthy: the volume claim of orders-1, which the cluster is recovered from, is gone or being deleted, and its data goes"}},
		{bootstrap, ruleCase{name: "345: a restore stops whoever runs, whatever becomes of the claim", change: with(filling, func(s *situation.Situation) {
			s.Observed.Set.Replicas, s.Observed.Volumes = 2, []state.Volume{{Claim: "data-orders-0", UID: "v0", Member: "orders-0", Terminating: true}}
		}), want: "resize the StatefulSet 2 → 0"}},
		{recovery.Run, ruleCase{name: "345: a first member that has begun a moment ago", change: with(reborn, func(s *situation.Situation) {
			podAt(s, 1).Ready, podAt(s, 1).Created = false, noon.Add(-time.Second)
			s.Observed.Record.Recovering.Since = noon.Add(-time.Hour)
		}), want: "Waiting: orders-1, the first member of the recovered cluster, starts: its pod is not ready yet", lacks: "the old data is kept"}},
		{recovery.Run, ruleCase{name: "345: what a member has is not begun with another template", change: with(reborn, func(s *situation.Situation) {
			podAt(s, 0).Ran = false
			podAt(s, 1).Ran, podAt(s, 1).Ready, podAt(s, 1).Trouble, podAt(s, 1).Template = false, false, "no such image", "z"
		}), want: "Unhealthy: orders-1, the first member"}},
		{repair, ruleCase{name: "345: a gap waits for who leaves", change: with(gap, leaving(0, false))}},
		{repair, ruleCase{name: "345: and for who joins", change: with(gap, joining("m3", time.Minute))}},
		{repair, ruleCase{name: "345: a gap alone is filled", change: gap, want: "delete the volume claim data-orders-1"}},
		{repair, ruleCase{name: "345: also before the roll has begun", change: with(commit(newVersion), gone(1), pending(1)), want: "delete the volume claim data-orders-1"}},
		{repair, ruleCase{name: "345: or while the controller has yet to close it", change: with(commit(newVersion), begun, rolled(newVersion, 0, 2), gone(1), pending(1)), want: "delete the volume claim data-orders-1"}},
		{repair, ruleCase{name: "345: a partition that is above every pod stays", change: highest, want: "delete the volume claim data-orders-2"}},
		{repair, ruleCase{name: "345: I14: nobody has what Git wants", change: with(last, func(s *situation.Situation) {
			s.Observed.Set.Template, s.Desired.Template = "y", "x"
		}), want: "Refused: orders-0 cannot take its place"}},
		{repair, ruleCase{name: "345: one whose data differs is lost, whatever the class of its volume", change: with(reshaped, compared(1, 2, 1), savedFor("repair orders-1")), want: "write down that orders-1 leaves: orders-1 holds other data"}},
		{repair, ruleCase{name: "345: for the sake of its volume no member goes while another's claim does", change: with(reshaped, savedFor("repair orders-2"), ofVolume(0, deletedClaim))}},
		{remove, ruleCase{name: "345: a volume that goes already is left alone", change: with(removed, func(s *situation.Situation) { s.Observed.Volumes[0].Terminating = true })}},
		{remove, ruleCase{name: "345: the volume of a place that is filled again stays", change: with(gone(1), withoutPod(1), func(s *situation.Situation) {
			s.Desired.Spec.Storage.RemovedVolumes = schema.VolumesDelete
		})}},
		{remove, ruleCase{name: "345: what no member has left stays", change: with(removed, on(func(r *state.Record) { r.Retired = nil }))}},
		{restore, ruleCase{name: "345: what is under way is not complete, whatever the record says of its cluster", change: with(wishesRestore, deletedKept, restoredAs("back", "r1", "b1", false)), lacks: "complete"}},
		{restore, ruleCase{name: "345: later changes of a restore whose cluster was deleted", change: with(wishesRestore, deletedKept, restoredAs("back", "r0", "b1", true)), want: "later changes to it are ignored"}},
		{repair, ruleCase{name: "345: a guard that says no more", change: foreign, want: "Unhealthy: volume claim data-orders-1", lacks: "guard"}},
		{repair, ruleCase{name: "345: what was measured is told, too", change: with(compared(1, 2, 1), func(s *situation.Situation) { s.Desired.Spec.Repair.Mode = schema.RepairNever }), want: "(compared at revision"}},
		{repair, ruleCase{name: "345: of two that were not measured nothing is told", size: 5, change: with(damaged(1, state.DamageEmpty, time.Hour), damaged(3, state.DamageEmpty, time.Hour)), want: "that two members are lost at once", lacks: "("}},
		{repair, ruleCase{name: "345: what was measured of a loss", change: with(compared(1, 2, 1), savedFor("repair orders-1"), withoutPod(1)), want: "(compared at revision"}},
		{repair, ruleCase{name: "345: of one that was not measured nothing is told", change: with(damaged(1, state.DamageEmpty, time.Hour), savedFor("repair orders-1")), want: "write down that orders-1 leaves", lacks: "("}},
	})
}

// 345: single clauses of the questions that rules ask.
func TestClausesOfQuestions(t *testing.T) {
	ask := func(change mutation) *situation.Situation {
		s := healthy(3)
		change(s)
		return s
	}
	corruptSays := func(name string, old bool, accused ...state.Alarm) (string, bool) {
		s := ask(with(compared(map[string][]uint32{"orders-0": {2, 1, 1}, "orders-1": {1, 2, 1}}[name]...), alarmed(accused...)))
		if old {
			looks(func(r *state.Round) { r.Members[2].Version = "3.5.15" })(s)
		}
		why, proven := s.CorruptMember()
		return why.Text, proven
	}
	corrupt := func(id string) state.Alarm { return state.Alarm{Kind: state.Corrupt, MemberID: id} }
	for _, c := range []struct {
		name, odd string
		old       bool
		alarms    []state.Alarm
		proven    bool
	}{
		{"another alarm accuses nobody", "orders-1", false, []state.Alarm{{Kind: state.NoSpace, MemberID: "m0"}, corrupt("m1")}, true},
		{"etcd accuses the first by its ID, whatever the releases are", "orders-0", true, []state.Alarm{corrupt("m0")}, true},
		{"etcd accuses another one by its ID, whatever the releases are", "orders-1", true, []state.Alarm{corrupt("m1")}, true},
		{"no alarm and an old release prove nothing", "orders-1", true, nil, false},
		{"another alarm is no accusation", "orders-1", true, []state.Alarm{{Kind: state.NoSpace, MemberID: "m1"}}, false},
	} {
		if text, proven := corruptSays(c.odd, c.old, c.alarms...); proven != c.proven {
			t.Errorf("345: %s: proven %t: %s", c.name, proven, text)
		}
	}
	unknown := ask(with(compared(1, 2, 1), alarmed(corrupt("m1")), looks(func(r *state.Round) { r.Members[2].Version = "" })))
	if why, proven := unknown.CorruptMember(); proven {
		t.Errorf("345: proven with a release that is unknown: %s", why.Text)
	}
	differ := ask(compared(1, 2, 1))
	if differ.SameData(differ.Observed.Compared()) {
		t.Error("345: members with different hashes hold the same data")
	}
	unseen := ask(with(compared(1, 1, 1), func(s *situation.Situation) {
		s.Observed.Rounds[0].Members = s.Observed.Rounds[0].Members[:2]
		s.Observed.Rounds[1].Deep = false
	}))
	if unseen.Compactable() {
		t.Error("345: history is dropped by a comparison that has not seen the leader")
	}
	if text := situation.WhyDeleted(ask(wishesRestore)); text != "spec.state is Deleted; the volumes are kept; EtcdRestore back takes its place then" {
		t.Errorf("345: %s", text)
	}
	if why := ask(on(func(r *state.Record) { r.Downgrade = &state.Downgrade{Minor: "3.5"} })).Outgrown(); why != "" {
		t.Errorf("345: members that run tell how far a downgrade has come: %s", why)
	}
	for _, c := range []struct {
		name   string
		change mutation
		want   bool
	}{
		{"one template", func(*situation.Situation) {}, true},
		{"two templates", func(s *situation.Situation) { podAt(s, 1).Template = "b" }, false},
	} {
		if got := ask(c.change).OneTemplate(); got != c.want {
			t.Errorf("345: %s: %t", c.name, got)
		}
	}
	for change, want := range map[string]bool{oldVersion: true, "": false} {
		s := healthy(3)
		if change != "" {
			commit(change)(s)
		}
		if got := situation.Begins(s.Desired, s.Observed, noon); got != want {
			t.Errorf("345: a commit %q disrupts: %t", change, got)
		}
	}
	learns := ask(with(joining("m3", time.Minute), damaged(1, state.DamageEmpty, time.Hour)))
	if id := learns.DataSeen(*podAt(learns, 1)); id != "m1" {
		t.Errorf("345: while orders-3 joins, the volume of orders-1 is that of %s", id)
	}
	accused := ask(alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}))
	if about := accused.HealthProblem(accused.Observed.Round()); about.Member != "orders-1" {
		t.Errorf("345: the alarm of m1 is about %q", about.Member)
	}
	missing := ask(unlisted(1))
	if about := missing.HealthProblem(missing.Observed.Round()); about.Member != "orders-1" {
		t.Errorf("345: a list without orders-1 is about %q", about.Member)
	}
}

// 345: single clauses of what a person can do about a member that is not well.
func TestClausesOfHealthChoices(t *testing.T) {
	broken := func(ordinals ...int32) mutation {
		return func(s *situation.Situation) {
			for _, i := range ordinals {
				podAt(s, i).Trouble, podAt(s, i).Ready = "CrashLoopBackOff", false
			}
		}
	}
	const check, back = "check the member named here", "comes back once the cause is fixed"
	for _, c := range []struct {
		name, about string
		size        int32
		change      mutation
		want        string
	}{
		{"the one that it is about", "orders-0", 3, broken(0, 1), "orders-0 " + back},
		{"one that is no member", "orders-2", 3, with(broken(2), on(func(r *state.Record) { delete(r.Members, "orders-2"); r.Members["orders-3"] = "m3" })), check},
		{"a roll that would reach another one first", "orders-0", 3, with(commit(newVersion), broken(0)), "what Git asks for would reach orders-2 first"},
		{"a roll that reaches it", "orders-2", 3, with(commit(newVersion), broken(2)), check},
		{"a roll that reaches nobody", "orders-0", 3, with(commit(newVersion), rolled(newVersion, 0, 1, 2), broken(0)), check},
		{"asleep nothing is rolled", "orders-0", 3, with(commit(newVersion), asksState(schema.StateHibernated), broken(0)), "orders-0 " + back},
		{"two members", "orders-0", 2, broken(0), check},
		{"somebody has removed it", "orders-1", 3, unlisted(1), "orders-1 was removed manually"},
		{"by a list that could not be had", "orders-1", 3, with(unlisted(1), func(s *situation.Situation) { s.Observed.Round().Problem = "timeout" }), check},
		{"by the list of another cluster", "orders-1", 3, with(unlisted(1), func(s *situation.Situation) { s.Observed.Round().ClusterID = "c2" }), check},
	} {
		s := healthy(c.size)
		c.change(s)
		s = situation.Of(s.Desired, s.Observed, noon)
		if got := s.HealthChoices(situation.Remark{Member: c.about}); !strings.HasPrefix(got, c.want) {
			t.Errorf("345: %s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// 345: what a restored cluster is recorded as is what the file says, where it is that one's.
func TestAnAdmittedClusterHasTheSpecOfItsRestore(t *testing.T) {
	for name, want := range map[string]string{"back": "r1", "other": "r0"} {
		s := healthy(3)
		with(wishesRestore, restoredAs(name, "r0", "b1", false))(s)
		if got := admit(s).Step.Action.(action.EndRestore).SpecHash; got != want {
			t.Errorf("345: EtcdRestore %s ends as %s, not %s", name, got, want)
		}
	}
}

// 345: two changes with one way out name it once.
func TestOneWayIsToldOnce(t *testing.T) {
	if h := explain(changesOf("spec.later", "spec.other")).Hold; h.Do != "revert that part of the file" {
		t.Error(h.Do)
	}
}

// 345: single clauses about which member is meant.
func TestClausesOfMembers(t *testing.T) {
	ask := func(change mutation) *situation.Situation {
		s := healthy(3)
		change(s)
		return s
	}
	span := func(upgraded ...int32) string {
		low, high, _ := ask(rolled(newVersion, upgraded...)).VersionSpan()
		return low.String() + " " + high.String()
	}
	for _, c := range []struct {
		name string
		got  any
		want any
	}{
		{"a cluster that is to sleep has no roll that broke it", func() bool {
			s := healthy(2)
			with(commit(newVersion), begun, asksState(schema.StateHibernated), down(1), func(s *situation.Situation) {
				podAt(s, 1).Template, podAt(s, 1).Ran, podAt(s, 1).Unpulled, podAt(s, 1).Trouble = "a", false, true, "no such image"
				s.Observed.Set.Template = "a"
			})(s)
			return s.Alone()
		}(), false},
		{"the quota of a member without a pod", ask(func(*situation.Situation) {}).QuotaOf(state.Member{Name: "orders-9"}), int64(2 << 30)},
		{"the newest version is that of the first pod", span(2), "3.5.35 3.6.16"},
		{"or of the last", span(0), "3.5.35 3.6.16"},
		{"or all but one have it", span(0, 1), "3.5.35 3.6.16"},
		{"pods that are ready block nobody", func() string { s := ask(func(*situation.Situation) {}); return s.Unblock(*podAt(s, 0)) }(), ask(func(*situation.Situation) {}).AskController()},
		{"every member has its pod", len(situation.MissingOf(ask(func(*situation.Situation) {})).Names), 0},
		{"a pod that shuts down", func() string {
			s := ask(func(s *situation.Situation) { podAt(s, 1).Terminating = true })
			return s.CauseOf(*podAt(s, 1)).Text
		}(), "its pod is shutting down"},
		{"a learner that has not started yet hides no other", ask(looks(func(r *state.Round) {
			r.Members = append(r.Members, state.Member{ID: "m8", Learner: true}, state.Member{ID: "m9", Name: "orders-9", Learner: true})
		})).OtherLearner("orders-8"), "orders-9"},
		{"before it has formed a cluster has as many members as it begins with", ask(unformed).MemberCount(), 3},
		{"nobody owns nothing", ask(func(*situation.Situation) {}).NextOwner(), state.Owner{}},
		{"more is what has more revisions, whatever its log has", situation.Ahead(&state.Member{Revision: 5, AppliedIndex: 10}, &state.Member{Revision: 6, AppliedIndex: 1}), false},
		{"a place without a pod waits for nobody", ask(func(*situation.Situation) {}).Vacant(5), ""},
		{"those below do not matter", ask(func(s *situation.Situation) { podAt(s, 0).Template = "b" }).OthersHave(1, "a"), true},
		{"that of the place itself does", ask(func(s *situation.Situation) { podAt(s, 1).Template = "b" }).OthersHave(1, "a"), false},
		{"a member that says nothing of itself", func() string {
			s := ask(looks(func(r *state.Round) { r.Members[1] = state.Member{Name: "orders-1"} }))
			return s.Remnant("orders-1", "m1").Why.Text
		}(), "its pod has no address yet"},
		{"without a record there are no clients to keep away", ask(func(s *situation.Situation) { s.Observed.Record = nil }).Withheld(state.Object{Kind: "Service", Name: "orders-client", State: state.ObjectMissing}), false},
	} {
		if c.got != c.want {
			t.Errorf("345: %s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	for range 20 { // members are asked in any order
		if name := situation.MissingOf(ask(with(withoutPod(2), withoutPod(0), withoutPod(1)))).Names[0]; name != "orders-0" {
			t.Fatalf("345: of the members without pods %s is named, which is not the lowest", name)
		}
	}
	broken := func(s *situation.Situation) {
		podAt(s, 1).Ready, podAt(s, 1).Trouble, podAt(s, 1).Template = false, "no such image", "x"
	}
	for name, c := range map[string]struct {
		change mutation
		found  bool
	}{
		"a template that nobody wants":    {broken, true},
		"one that shuts down comes back":  {with(broken, func(s *situation.Situation) { podAt(s, 1).Terminating = true }), false},
		"one with what Git wants":         {with(broken, func(s *situation.Situation) { s.Desired.Template = "x" }), false},
		"the pod of no member is no loss": {with(broken, on(func(r *state.Record) { delete(r.Members, "orders-1") })), false},
	} {
		if p := ask(c.change).BrokenByAbandonedRoll(); (p != nil) != c.found {
			t.Errorf("345: broken by an abandoned roll: %s: %v", name, p)
		}
	}
	pods := func(s *situation.Situation) { withoutPod(1)(s); s.Observed.Set.Replicas = 4 }
	checkClauses(t, []clauseCase{
		{missing, ruleCase{name: "345: a learner with its pod excuses no other that is missing", change: with(joining("m3", time.Minute), withPod, pods), want: "does not exist; the StatefulSet creates it"}},
		{missing, ruleCase{name: "345: nor does one that is no learner yet", change: with(joining("", time.Minute), withoutPod(1)), want: "the pod of orders-1 does not exist; the StatefulSet creates it"}},
	})
}

// 345: single clauses about sizes, classes and times.
func TestClausesOfVolumesAndTimes(t *testing.T) {
	ask := func(change mutation) *situation.Situation {
		s := healthy(3)
		change(s)
		return situation.Of(s.Desired, s.Observed, noon)
	}
	same := func(*situation.Situation) {}
	crowded := state.Member{Quota: 100, DBSize: 100, DBInUse: 80}
	aged := ask(func(s *situation.Situation) {
		podAt(s, 1).Created = noon.Add(-2 * time.Hour)
	})
	renewed := ask(func(s *situation.Situation) { podAt(s, 1).Created = noon.Add(-time.Minute) })
	full := func(quota int64) bool {
		return ask(with(holds(80, 80, 80), raised(quota), commit(oldVersion), alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}))).EndsNoSpace()
	}
	begunUpgrade := func(change mutation) *situation.Situation {
		return ask(with(holds(80, 80, 80), raised(200), commit(oldVersion), alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}), func(s *situation.Situation) {
			s.Observed.Set.Template, s.Observed.Set.Version = "c", newVersion
		}, change))
	}
	volumesOf := func(change mutation) int {
		return len(ask(with(func(s *situation.Situation) { s.Observed.Volumes = memberVolumes(5) }, change)).MemberVolumes())
	}
	moved := ask(with(stored, wantsClass(schema.ClassChangeReplace)))
	there := moved.Observed.Volumes[0]
	there.Class = *moved.Desired.Spec.Storage.StorageClassName
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"80 % is crowded", ask(same).Overfull(crowded), true},
		{"a tenth is worth it", situation.WorthDefragmenting(state.Member{DBSize: 100, DBInUse: 90}), true},
		{"of nothing nothing is", situation.WorthDefragmenting(state.Member{}), false},
		{"the oldest pod", aged.OldestPod(), noon.Add(-2 * time.Hour)},
		{"the newest pod", renewed.NewestPod(), noon.Add(-time.Minute)},
		{"80 % of the new quota is no way out", full(100), false},
		{"a little less is", full(101), true},
		{"385: so it is in an upgrade that no pod has", begunUpgrade(same).EndsNoSpace(), true},
		{"385: back from one that some have", begunUpgrade(func(s *situation.Situation) { podAt(s, 2).Version = newVersion }).EndsNoSpace(), true},
		{"385: not on from there", begunUpgrade(func(s *situation.Situation) {
			podAt(s, 2).Version, s.Observed.Set.CurrentVersion = newVersion, "3.4.34"
		}).EndsNoSpace(), false},
		{"no member was asked", ask(with(commit(oldVersion), func(s *situation.Situation) { s.Observed.Rounds = nil })).EndsNoSpace(), false},
		{"volumes of members", volumesOf(same), 3},
		{"and that which a restore fills", volumesOf(on(func(r *state.Record) { r.Recovering = &state.Recovering{Member: "orders-4"} })), 4},
		{"one of the former class makes way", moved.MakesWay(moved.Observed.Volumes[0]), true},
		{"one of the right class does not", moved.MakesWay(there), false},
		{"a class without a name", situation.ClassName(""), "the default class"},
		{"a class", situation.ClassName("fast"), "class fast"},
		{"only a Service leads clients", situation.ForClients(ask(same), state.Object{Kind: "Secret", Name: "orders-client"}), false},
		{"the clients' Service", situation.ForClients(ask(same), state.Object{Kind: "Service", Name: "orders-client"}), true},
		{"a claim without a record", ask(func(s *situation.Situation) { s.Observed.Record = nil }).Claim("orders-1"), "data-orders-1"},
		{"a pod of no member that is ready fills its place", ask(on(func(r *state.Record) { delete(r.Members, "orders-1") })).Vacant(3), ""},
		{"one that is not does not", ask(with(pending(1), on(func(r *state.Record) { delete(r.Members, "orders-1") }))).Vacant(3), "orders-1"},
		{"nothing at all is in the way", len(ask(nothing).InTheWay(true)), 0},
		{"a roll that was given up before it touched a pod", ask(func(s *situation.Situation) { s.Observed.Set.Version = newVersion }).Versioned(), true},
		{"no roll", ask(same).Versioned(), false},
	} {
		if c.got != c.want {
			t.Errorf("345: %s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	for range 20 { // members are asked in any order
		mixedUp := ask(with(runs("3.7.3"), func(s *situation.Situation) { memberAt(s, 1).Version = "3.7.1" }))
		mixedUp.Desired.Spec.Version, mixedUp.Desired.Spec.Upgrade.Path = "3.6.16", schema.PathStepwise
		if stops := situation.Waypoints(mixedUp.Desired.Spec, mixedUp.Observed); len(stops) != 2 || stops[0].Version != "3.7.3" {
			t.Fatalf("345: from 3.7.1 and 3.7.3 down by %v", stops)
		}
	}
	grown := with(stored, func(s *situation.Situation) {
		s.Observed.Set.ClaimSize, s.Desired.Spec.Storage.Size = 1<<30, resource.MustParse("8Gi")
	})
	foreign := with(unformed, newPods(time.Minute, ""), joined, func(s *situation.Situation) {
		s.Observed.Volumes = memberVolumes(3)
		podAt(s, 1).Damage = state.DamageForeign
	})
	checkClauses(t, []clauseCase{
		{volumes.Claims, ruleCase{name: "345: a claim that is there is not gone", change: with(claimed(nil), func(s *situation.Situation) { podAt(s, 1).Unclaimed = true })}},
		{volumes.Holdings, ruleCase{name: "345: nothing is written of what has not formed", change: foreign}},
		{volumes.Grown, ruleCase{name: "345: a StatefulSet is recreated", change: grown, want: "release the pods from the StatefulSet"}},
		{volumes.Grown, ruleCase{name: "345: not in a roll", change: with(commit(newVersion), begun, rolled(newVersion, 0, 1, 2), grown, func(s *situation.Situation) { podAt(s, 1).Template = "a" })}},
		{volumes.Grown, ruleCase{name: "345: what cannot grow is no matter in a roll", change: with(commit(newVersion), stored, func(s *situation.Situation) {
			s.Desired.Spec.Storage.Size = resource.MustParse("16Gi")
			s.Observed.Volumes[1].NotExpandable = "its class cannot"
		})}},
		{volumes.Grown, ruleCase{name: "345: not without its lowest pod", change: with(grown, withoutPod(0))}},
		{volumes.Grown, ruleCase{name: "345: not without any", change: with(grown, func(s *situation.Situation) { s.Observed.Set.Replicas, s.Observed.Pods = 0, nil })}},
	})
}

// 345: single clauses of what only warns.
func TestClausesOfWarnings(t *testing.T) {
	skip := func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip }
	for _, c := range []struct {
		name        string
		change      mutation
		want, lacks string
	}{
		{"a release that a new cluster should not begin with", with(unformed, func(s *situation.Situation) { s.Observed.Set, s.Desired.Spec.Version = nil, "3.7.1" }), "3.7.1 ", ""},
		{"other settings need no backup", with(commit(oldVersion), skip), "", "spec.upgrade.backup is Skip"},
		{"nor does one that is to sleep", with(commit(newVersion), asksState(schema.StateHibernated), skip), "", "spec.upgrade.backup is Skip"},
		{"an upgrade without one", with(commit(newVersion), skip), "spec.upgrade.backup is Skip: this upgrade", ""},
		{"a downgrade that etcd was told of", with(runs("3.7.3"), commit("3.6.16"), descends, skip), "spec.upgrade.backup is Skip: this downgrade", ""},
		{"a backup that no restore can read", on(func(r *state.Record) { r.Backup = &state.Backup{For: "3.6.16", Unreachable: "no key"} }), "no restore can read the last backup", ""},
	} {
		s := healthy(3)
		c.change(s)
		var texts []string
		for _, w := range situation.Of(s.Desired, s.Observed, noon).Warnings() {
			texts = append(texts, w.Text)
		}
		got := strings.Join(texts, "\n")
		if !strings.Contains(got, c.want) || (c.lacks != "" && strings.Contains(got, c.lacks)) {
			t.Errorf("345: %s: got %q, want %q without %q", c.name, got, c.want, c.lacks)
		}
	}
}

// 345: a member that is ready is not helped by a roll, and one of nobody holds none up.
func TestClausesOfRemedies(t *testing.T) {
	killed := with(commit(oldVersion), down(2), func(s *situation.Situation) { podAt(s, 2).Trouble = "OOMKilled" })
	for name, c := range map[string]struct {
		change mutation
		broken bool
	}{
		"killed for its memory":   {killed, true},
		"ready, whatever it says": {with(killed, func(s *situation.Situation) { podAt(s, 2).Ready = true }), false},
		"beside a pod of nobody": {with(killed, func(s *situation.Situation) {
			s.Observed.Pods = append([]state.Pod{{Name: "orders-3", Ordinal: 3, Template: "a", Version: oldVersion}}, s.Observed.Pods...)
		}), true},
		"beside a member that is not well": {with(killed, down(0)), false},
	} {
		s := healthy(3)
		c.change(s)
		if p := situation.Of(s.Desired, s.Observed, noon).BrokenByRoll(); (p != nil) != c.broken {
			t.Errorf("345: %s: %v", name, p)
		}
	}
}
