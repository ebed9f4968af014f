package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// killed is a cluster without a quorum: Kubernetes keeps some of its members from
// running, by the word of kubelets that report, and their volumes are whole.
func killed(ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		s.Observed.Volumes = memberVolumes(int32(len(s.Observed.Record.Members)))
		for i := range s.Observed.Rounds {
			s.Observed.Rounds[i] = state.Round{At: s.Observed.Rounds[i].At, Problem: "no endpoint answers"}
		}
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Ready = false
		}
		for _, i := range ordinals {
			p := podAt(s, i)
			p.Trouble, p.Barred, p.Reported, p.Ran = "etcd: OOMKilled: it needs more than its memory limit of 64Mi", true, true, true
			p.DownSince = s.Now.Add(-10 * time.Minute)
		}
	}
}

// podOfMember changes a pod.
func podOfMember(ordinal int32, change func(*state.Pod)) mutation {
	return func(s *situation.Situation) { change(podAt(s, ordinal)) }
}

// answersAlone lets a member answer for itself, and follow nobody.
func answersAlone(ordinal int32) mutation {
	return func(s *situation.Situation) {
		p := podAt(s, ordinal)
		p.Trouble, p.Barred = "", false
		for i := range s.Observed.Rounds {
			r := &s.Observed.Rounds[i]
			r.Members = append(r.Members, state.Member{Name: p.Name, ID: s.Observed.Record.Members[p.Name], Version: p.Version})
		}
	}
}

// given lets the StatefulSet and some pods have what Git asks for.
func given(ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		s.Observed.Set.Template, s.Observed.Set.Version = s.Desired.Template, s.Desired.Spec.Version
		for _, i := range ordinals {
			podAt(s, i).Template, podAt(s, i).Version = s.Desired.Template, s.Desired.Spec.Version
			podAt(s, i).Created = s.Now.Add(-time.Minute)
		}
	}
}

// emptied lets the volume of a member be empty.
func emptied(ordinal int32) mutation {
	return podOfMember(ordinal, func(p *state.Pod) { p.Damage = state.DamageEmpty })
}

// young lets a pod be made a moment ago.
func young(ordinal int32) mutation {
	return podOfMember(ordinal, func(p *state.Pod) { p.Created, p.DownSince = noon.Add(-10*time.Second), time.Time{} })
}

// claimOf changes the claim of a member.
func claimOf(ordinal int32, change func(*state.Volume)) mutation {
	return func(s *situation.Situation) { change(s.Observed.Volume(podAt(s, ordinal).Name)) }
}

// runsFor lets the etcd of a member run for a while, and answer nobody: as long as no quorum
// runs, it has found no leader.
func runsFor(ordinal int32, d time.Duration) mutation {
	return podOfMember(ordinal, func(p *state.Pod) { p.Trouble, p.Barred, p.RunsSince = "", false, noon.Add(-d) })
}

func TestRemedy(t *testing.T) {
	all := killed(0, 1, 2)
	// scaledAway is an upgrade that stopped at its first member, whose image cannot be had; somebody scaled all members to 0 and back, so
	// that all have it now, and the commit was reverted.
	scaledAway := with(all, commit(newVersion), given(0, 1, 2), at(2), func(s *situation.Situation) {
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Ran, s.Observed.Pods[i].Unpulled = false, true
		}
		s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = s.Observed.Set.Template, s.Observed.Set.Version
		s.Desired.Template, s.Desired.Spec.Version = "a", oldVersion
	})
	checkRule(t, recovery.Remedy, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "an unformed cluster is the bootstrap's", change: with(all, unrecorded)},
		{
			name: "295: all killed for memory: the hold names the cause, and gives up nothing", change: all,
			want: "Unhealthy: there is no quorum: it takes 2 members, and these do not run, with their volumes whole: orders-2, orders-1, orders-0 (etcd: OOMKilled: it needs more than its memory limit of 64Mi); commit what lets them start",
		},
		{name: "295: a commit of settings begins", change: with(all, tuned), want: "start the roll on 3.5.35: there is no quorum, and Git asks for something else than what does not start"},
		{name: "295: goes to the highest first", change: with(all, tuned, given()), want: "set the StatefulSet's partition to 2: orders-2 does not run"},
		{name: "295: whose pod makes way", change: with(all, tuned, given(), at(2)), want: "restart orders-2 on 3.5.35: it does not run, and its pod makes way for one that Git asks for"},
		{name: "295: and has to start before the next one", change: with(all, tuned, given(2), at(2), podOfMember(2, func(p *state.Pod) { p.Trouble, p.Barred = "", false })), want: "Waiting: orders-2 starts with etcd 3.5.35"},
		{name: "295: shuts down before that", change: with(all, tuned, given(), at(2), podOfMember(2, func(p *state.Pod) { p.Terminating = true })), want: "Waiting: orders-2 is shutting down"},
		{name: "295: the next one follows when it answers", change: with(all, tuned, given(2), answersAlone(2), at(2)), want: "set the StatefulSet's partition to 1: orders-1 does not run"},
		{name: "295: and its pod goes, as the controller waits for one that is ready", change: with(all, tuned, given(2), answersAlone(2), at(1)), want: "restart orders-1 on 3.5.35"},
		{name: "295: with two that answer the rest is a roll", change: with(all, tuned, given(1, 2), answersAlone(2), answersAlone(1), at(1))},
		{
			name: "295: one that does not start with it stops there", change: with(all, tuned, given(2), at(2), podOfMember(2, func(p *state.Pod) { p.DownSince = noon.Add(-time.Minute) })),
			want: "Stopped: orders-2 does not start with what Git asks for, and the others are left alone; there is no quorum",
		},
		{
			name: "295: one that is made and never starts, too", change: with(all, tuned, given(2), at(2), podOfMember(2, func(p *state.Pod) { p.Trouble, p.Barred, p.Created = "", false, noon.Add(-time.Hour) })),
			want: "Unhealthy: there is no quorum, and orders-2, which has what Git asks for, does not start",
		},
		{name: "295: the next one follows when it runs: without a quorum none answers", change: with(all, tuned, given(2), at(2), runsFor(2, time.Minute)), want: "set the StatefulSet's partition to 1: orders-1 does not run"},
		{name: "295: also after hours", change: with(all, tuned, given(2), at(2), runsFor(2, 5*time.Hour), podOfMember(2, func(p *state.Pod) { p.Created, p.DownSince = noon.Add(-5*time.Hour), noon.Add(-5*time.Hour) })), want: "set the StatefulSet's partition to 1: orders-1 does not run"},
		{name: "295: not at once", change: with(all, tuned, given(2), at(2), runsFor(2, time.Second)), want: "Waiting: orders-2 starts with etcd 3.5.35"},
		{name: "295: with two that run the rest is for them", change: with(all, tuned, given(1, 2), runsFor(2, time.Minute), runsFor(1, time.Minute), at(1))},
		{name: "295: one that runs as it was waits for a quorum, and serves nobody", change: with(killed(0, 1), tuned, given(), podOfMember(2, func(p *state.Pod) { p.RunsSince, p.Reported = noon.Add(-time.Hour), true })), want: "set the StatefulSet's partition to 1"},
		{name: "I17: unless its node does not report", change: with(killed(0, 1), tuned, given(), podOfMember(2, func(p *state.Pod) { p.RunsSince = noon.Add(-time.Hour) })), want: "may serve: the pod of orders-2 has no trouble"},
		{name: "295: a revert goes the same way", change: with(all, tuned, given(0, 1, 2), at(0), func(s *situation.Situation) { s.Desired.Template = "a" }), want: "start the roll on 3.5.35: there is no quorum"},
		{name: "295: also where those below it do not start with what the revert gives them", change: with(all, tuned, given(2), at(2), func(s *situation.Situation) { s.Desired.Template = "a" }), want: "start the roll on 3.5.35: there is no quorum"},
		{name: "295: or are refused with it", change: with(podless(2, time.Hour), podless(1, time.Hour), killed(0), tuned, given(), at(2), forbidden(time.Minute), func(s *situation.Situation) { s.Desired.Template = "a" }), want: "start the roll on 3.5.35: there is no quorum"},
		{name: "295: two of three that are down are enough", change: with(killed(1, 2), answersAlone(0), tuned), want: "start the roll on 3.5.35: there is no quorum"},
		{name: "295: one of one", size: 1, change: with(killed(0), tuned), want: "start the roll on 3.5.35: there is no quorum"},

		{name: "295: also beside one that is lost and one that answers", change: with(killed(0, 1), answersAlone(2), emptied(0), tuned), want: "start the roll on 3.5.35: there is no quorum"},
		{name: "295: or one that runs and waits for a quorum", change: with(killed(1), emptied(0), tuned, runsFor(2, time.Hour), podOfMember(2, func(p *state.Pod) { p.Reported = true })), want: "start the roll on 3.5.35: there is no quorum"},
		{name: "I5: but not beside one that runs on data that is not its own", change: with(killed(1), emptied(0), tuned, runsFor(2, time.Hour), podOfMember(2, func(p *state.Pod) { p.Damage = state.DamageOlder }))},
		{name: "I5: nor beside one that has trouble and no volume", change: with(killed(1), emptied(0), tuned, runsFor(2, time.Hour), podOfMember(2, func(p *state.Pod) { p.Trouble = "etcd: the disk is gone" }), claimOf(2, func(v *state.Volume) { v.Bound = false }))},
		{name: "295: or one that shuts down", change: with(all, emptied(0), tuned, podOfMember(2, func(p *state.Pod) { p.Terminating, p.Trouble, p.Barred = true, "", false })), want: "Waiting: orders-2 is shutting down"},
		{name: "295: the next one follows when it is ready, too", change: with(killed(0, 1), tuned, given(2), at(2), podOfMember(2, func(p *state.Pod) { p.Ready = true })), want: "set the StatefulSet's partition to 1"},
		{name: "295: at rest none was given anything", change: killed(0, 1), want: "Unhealthy: there is no quorum: it takes 2 members, and these do not run, with their volumes whole: orders-1, orders-0 (etcd"},
		{name: "295: an image that cannot be had in a cluster of one is undone by the roll", size: 1, change: with(killed(0), commit(newVersion), given(0), podOfMember(0, func(p *state.Pod) { p.Ran, p.Unpulled = false, true }), reverts)},
		{name: "I3: the StatefulSet controller has to see the last change first", change: with(all, tuned, func(s *situation.Situation) { s.Observed.Set.Settled = false })},
		{name: "I2: one whose data is lost would be let go with it", change: with(all, emptied(2), tuned, given())},
		{name: "I2: or created with it", change: with(killed(0, 1), tuned, given(), withoutPod(2), func(s *situation.Situation) { s.Observed.Volumes = s.Observed.Volumes[:2] })},
		{name: "I2: or has it already", change: with(all, emptied(2), tuned, given(2), at(2)), want: "set the StatefulSet's partition to 1"},

		{name: "I17: one that is ready below one that is down stays", change: with(killed(1, 2), tuned, given(), podOfMember(0, func(p *state.Pod) { p.Ready = true })), want: "set the StatefulSet's partition to 2"},
		{name: "I17: nobody has asked the members", change: with(all, tuned, func(s *situation.Situation) { s.Observed.Rounds = nil })},
		{name: "I17: a list of the members is a quorum, whoever they are", change: with(all, tuned, looks(func(r *state.Round) { r.Problem, r.Members = "", []state.Member{{Name: "orders-0", ID: "x"}} }))},
		{name: "I17: of young pods it need not be known since when they are down", change: with(all, tuned, young(0), young(1))},
		{name: "I17: members that are ready are never stopped", change: with(all, tuned, podOfMember(0, func(p *state.Pod) { p.Ready = true }), podOfMember(1, func(p *state.Pod) { p.Ready = true }))},
		{name: "I17: nor one that is ready above one that is down", change: with(killed(0, 1), tuned, given(), podOfMember(2, func(p *state.Pod) { p.Ready = true })), want: "it is not applied, because it would restart orders-2, which may serve: orders-2 is ready"},
		{name: "I17: nor one that follows a leader", change: with(killed(0, 1), answersAlone(2), tuned, given(), func(s *situation.Situation) { s.Observed.Round().Member("orders-2").Leader = "m1" }), want: "may serve: orders-2 follows a leader"},
		{name: "I17: nor one of whose node nothing is heard", change: with(all, tuned, given(), podOfMember(2, func(p *state.Pod) { p.Reported = false })), want: "may serve: the node of orders-2 does not report"},
		{name: "I17: nor one without trouble", change: with(killed(0, 1), tuned, given()), want: "may serve: the pod of orders-2 has no trouble"},
		{name: "I17: also by the word of its kubelet, as long as its etcd does not run", change: with(killed(0, 1), tuned, given(), podOfMember(2, func(p *state.Pod) { p.Reported = true })), want: "may serve: the pod of orders-2 has no trouble"},
		{name: "I17: one that answers and follows nobody serves nobody", change: with(killed(0, 1), answersAlone(2), tuned, given()), want: "set the StatefulSet's partition to 1"},
		{name: "I17: crashes may pass", change: with(all, tuned, podOfMember(0, func(p *state.Pod) { p.Barred, p.DownSince = false, noon.Add(-time.Minute) }), podOfMember(1, func(p *state.Pod) { p.Barred, p.DownSince = false, noon.Add(-time.Minute) }))},
		{name: "I17: one that etcd itself ended names what is last", change: with(all, podOfMember(1, func(p *state.Pod) { p.Barred = false })), want: `only if their data is what keeps etcd from starting, commit spec.recovery: {clusterID: "c1", objectURL: the URL of a backup}`},

		{name: "399: the newest that one of them may have run", change: with(all, commit(newVersion), podOfMember(2, func(p *state.Pod) { p.Version = "3.7.3" })), want: "it may have run etcd 3.7.3; set spec.version to what the members run (3.7.3)"},
		{name: "399: whichever of them it is", change: with(killed(0, 1), commit(newVersion), podOfMember(2, func(p *state.Pod) { p.Version = "3.7.3" }), answersAlone(2)), want: "set spec.version to what the members run (3.7.3)"},
		{name: "399: also one that is to restart first", change: with(killed(0, 1), commit(newVersion), podOfMember(1, func(p *state.Pod) { p.Version = "3.7.3" }), answersAlone(2)), want: "set spec.version to what the members run (3.7.3)"},
		{name: "I14: another version is no remedy", change: with(all, commit(newVersion)), want: "Refused: there is no quorum, and orders-2 cannot come back with etcd 3.6.16, because nothing can be asked of it: it may have run etcd 3.5.35; set spec.version to what the members run (3.5.35)"},
		{name: "384: a pod that Kubernetes refuses may be admitted as it is", change: with(podless(2, time.Hour), podless(1, time.Hour), killed(0), commit(newVersion), forbidden(time.Minute)), want: `let Kubernetes admit its pod as it is (pods "orders-2" is forbidden: exceeded quota: db); or set spec.version`},
		{name: "I14: nor is an older binary", change: with(all, commit(newVersion), given(2), func(s *situation.Situation) { s.Desired.Spec.Version, s.Desired.Template = "3.5.35", "c" }), want: "Refused: there is no quorum, and orders-2 cannot come back with etcd 3.5.35, because nothing can be asked of it: it may have run etcd 3.6.16"},
		{name: "I14: in the midst of an upgrade the commit goes on with it", change: with(all, commit(newVersion), given(2), at(2), func(s *situation.Situation) { s.Desired.Template = "c" }), want: "start the roll 3.5.35 → 3.6.16: there is no quorum"},
		{name: "I14: a minor is not skipped", change: with(all, commit("3.7.3"), given(), func(s *situation.Situation) { s.Desired.Template = "c" }), want: "Refused: there is no quorum"},
		{name: "I14: nor what is unknown", change: with(all, tuned, podOfMember(2, func(p *state.Pod) { p.Version = "" })), want: "Refused: there is no quorum, and orders-2 cannot come back with etcd 3.5.35, because nothing can be asked of it: it is unknown which etcd it ran"},
		{name: "I14: an upgrade goes on", change: with(all, commit(newVersion), given(2), answersAlone(2), at(2)), want: "set the StatefulSet's partition to 1"},
		{name: "I14: not from a release that a roll would refuse", change: with(all, commit(newVersion), given(2), answersAlone(2), at(2), podOfMember(1, func(p *state.Pod) { p.Version = "3.5.20" })), want: "it may have run etcd 3.5.20"},
		{name: "I14: one that never left its place is no reason", change: with(all, commit(newVersion), begun, tuned, func(s *situation.Situation) { s.Desired.Spec.Version = oldVersion }), want: "start the roll on 3.5.35"},
		{name: "I14: nor where it is unknown what the StatefulSet had", change: with(all, commit(newVersion), begun, tuned, func(s *situation.Situation) {
			s.Desired.Spec.Version, s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = oldVersion, "", ""
		}), want: "start the roll on 3.5.35"},
		{name: "I14: a patch goes back to what was before it", change: with(all, commit("3.5.36"), given(0, 1, 2), at(0), reverts), want: "start the roll 3.5.36 → 3.5.35"},
		{name: "scaled to 0 in a stopped roll: one that never ran and goes serves nobody", change: with(scaledAway, given(2), at(1), runsFor(2, time.Minute), podOfMember(1, func(p *state.Pod) {
			p.Terminating, p.Trouble = true, ""
		})), want: "Waiting: orders-1 is shutting down"},
		{name: "a record of two minors before does not say what a roll began with", change: with(scaledAway, func(s *situation.Situation) {
			s.Observed.Record.Applied.Version, s.Desired.Spec.Version = "3.4.34", "3.4.34"
		}), want: "Refused: there is no quorum, and orders-2 cannot come back with etcd 3.4.34"},
		{name: "nor does an older record say more than a StatefulSet that remembers", change: with(all, commit(newVersion), given(2), at(2), func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Ran, s.Observed.Pods[i].Unpulled = false, true
			}
			s.Observed.Record.Applied = &state.Applied{Version: "3.4.34"}
			s.Desired.Template, s.Desired.Spec.Version = "z", "3.4.34"
		}), want: "Refused: there is no quorum, and orders-2 cannot come back with etcd 3.4.34"},
		{name: "scaled to 0 in a stopped roll: what never ran is reverted", change: scaledAway, want: "start the roll 3.6.16 → 3.5.35: there is no quorum"},
		{name: "one after the other", change: with(scaledAway, func(s *situation.Situation) {
			set := s.Observed.Set
			set.Template, set.Version = s.Desired.Template, s.Desired.Spec.Version
		}), want: "restart orders-2"},
		{name: "I14: not what has run", change: with(scaledAway, podOfMember(2, func(p *state.Pod) { p.Ran = true })), want: "it may have run etcd 3.6.16"},
		{name: "I14: nor where the lowest member may have", change: with(scaledAway, at(3)), want: "it may have run etcd 3.6.16"},
		{name: "I14: and to no other", change: with(all, commit("3.5.36"), given(0, 1, 2), at(0), tuned, func(s *situation.Situation) { s.Desired.Spec.Version = "3.5.34" }), want: "it may have run etcd 3.5.36"},
		{name: "I5: a claim without its volume", change: with(all, tuned, claimOf(0, func(v *state.Volume) { v.Bound = false }), claimOf(1, func(v *state.Volume) { v.Bound = false }))},
		{name: "I6: or one that is being deleted", change: with(all, tuned, claimOf(0, func(v *state.Volume) { v.Terminating = true }), claimOf(1, func(v *state.Volume) { v.Terminating = true }))},
		{name: "I5: what has lost its data needs more", change: with(all, tuned, func(s *situation.Situation) { s.Observed.Volumes = s.Observed.Volumes[:1] })},
		{name: "I5: so does damage", change: with(all, tuned, podOfMember(0, func(p *state.Pod) { p.Damage = state.DamageEmpty }), podOfMember(1, func(p *state.Pod) { p.Damage = state.DamageCorrupt }))},
		{name: "388: what sounds damaged only with what it was given does not", change: with(all, tuned, given(1, 2), at(1), podOfMember(0, func(p *state.Pod) { p.Damage = state.DamageEmpty }), podOfMember(1, func(p *state.Pod) { p.Damage, p.Barred = state.DamageCorrupt, false })), want: "Stopped: orders-2 does not start with what Git asks for"},
		{name: "I5: and what the guard does not let start", change: with(all, tuned, podOfMember(0, func(p *state.Pod) { p.Found = "the volume is empty" }), podOfMember(1, func(p *state.Pod) { p.Found = "the volume is empty" }))},
		{name: "I5: and a node that is gone", change: with(all, tuned, podOfMember(0, func(p *state.Pod) { p.NodeGone = true }), podOfMember(1, func(p *state.Pod) { p.NodeGone = true }))},
		{name: "I6: a claim that goes with its pod", change: with(killed(0, 1), answersAlone(2), tuned, given(), func(s *situation.Situation) { s.Observed.Volume("orders-2").Terminating = true }), want: "volume claim data-orders-2 is being deleted"},
		{name: "I18: a person has decided", change: with(all, asksFor("c1", "", backupURL))},
		{name: "I18: but not with what was refused before", change: with(all, asksFor("c1", "", backupURL), func(s *situation.Situation) { s.Observed.Record.RefusedRecovery = "c1 from backup " + backupURL }), want: "Unhealthy: there is no quorum"},

		{name: "I18: nor what was refused before and is gone from Git", change: with(all, func(s *situation.Situation) { s.Observed.Record.RefusedRecovery = "c1 from backup " + backupURL }), want: "Unhealthy: there is no quorum"},

		{
			name: "293: pods that Kubernetes refuses", change: with(podless(2, time.Hour), podless(1, time.Hour), killed(0), forbidden(time.Minute)),
			want: `orders-2, orders-1 (its pod cannot be created: pods "orders-2" is forbidden: exceeded quota: db)`,
		},
		{name: "293: a commit reaches them, the lowest first, as the controller creates none above it", change: with(podless(2, time.Hour), podless(1, time.Hour), killed(0), tuned, given(), forbidden(time.Minute)), want: "set the StatefulSet's partition to 1"},
		{name: "293: also where one above it would have it", change: with(podless(2, time.Hour), podless(1, time.Hour), killed(0), tuned, given(), at(2), forbidden(time.Minute)), want: "set the StatefulSet's partition to 1"},
		{name: "293: above one that may serve it does not", change: with(podless(1, time.Hour), killed(0), tuned, given(), forbidden(time.Minute), podOfMember(2, func(p *state.Pod) { p.Ready = true })), want: "may serve: orders-2 is ready"},
		{name: "293: and where they are refused with it, too, it stops", change: with(podless(2, time.Hour), podless(1, time.Hour), killed(0), tuned, given(), at(1), forbidden(time.Minute)), want: "Stopped: orders-2 does not start with what Git asks for"},
		{name: "I14: not one of another version", change: with(podless(2, time.Hour), podless(1, time.Hour), killed(0), forbidden(time.Minute), commit(newVersion)), want: "Refused: there is no quorum, and orders-1 cannot come back with etcd 3.6.16, because nothing can be asked of it: it may have run etcd 3.5.35"},
		{name: "293: pods that only do not exist yet", change: with(podless(2, time.Second), podless(1, time.Second), killed(0), tuned), want: "Waiting: the pod of orders-2 does not exist"},
	})
}
