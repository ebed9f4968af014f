package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// damaged takes a member away permanently, since some time.
func damaged(ordinal int32, damage string, age time.Duration) mutation {
	return with(down(ordinal), func(s *situation.Situation) {
		podAt(s, ordinal).Damage, podAt(s, ordinal).DamageSince = damage, noon.Add(-age)
		if l := s.Observed.Round().Leader(); l != nil && l.Name == podAt(s, ordinal).Name {
			leads((ordinal + 1) % int32(len(s.Observed.Pods)))(s)
		}
	})
}

// 388: what was there before is unknown without a StatefulSet, so that what sounds corrupt is.
func TestWithoutAStatefulSetACorruptMemberIsLost(t *testing.T) {
	s := healthy(3)
	with(damaged(1, state.DamageCorrupt, time.Minute), func(s *situation.Situation) { s.Observed.Set = nil })(s)
	if loss := s.LossOf(*podAt(s, 1)); loss == nil || loss.Why != "the data of orders-1 is corrupt" {
		t.Errorf("got %+v", loss)
	}
}

// savedFor records a backup for a purpose.
func savedFor(purpose state.Purpose) mutation {
	return func(s *situation.Situation) {
		s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: purpose, Time: noon.Add(-time.Minute)}
	}
}

// keeps lets the volumes be there, on one of which a recovery has put aside what was left.
func keeps(ordinal int32) mutation {
	return func(s *situation.Situation) {
		s.Observed.Volumes = memberVolumes(int32(len(s.Observed.Record.Members)))
		s.Observed.Volume(naming.Member("orders", ordinal)).Keeps = "c0"
	}
}

// silentFor is a member whose volume only one node has, which has not reported for some time.
func silentFor(d time.Duration) mutation {
	return with(down(1), savedFor("repair orders-1"), func(s *situation.Situation) {
		podAt(s, 1).NodeGone, podAt(s, 1).NodeGoneSince = true, noon.Add(-d)
	})
}

func TestRepair(t *testing.T) {
	mode := func(m schema.RepairMode) mutation {
		return func(s *situation.Situation) { s.Desired.Spec.Repair.Mode = m }
	}
	lost := damaged(1, state.DamageEmpty, 6*time.Minute)
	five := with(damaged(1, state.DamageEmpty, 6*time.Minute), damaged(3, state.DamageCorrupt, 6*time.Minute), leads(0))
	// Measured: while the alarm stands, etcd calls no member ready.
	unready := func(s *situation.Situation) {
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Ready = false
		}
	}
	differs := with(compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m1"}), savedFor("repair orders-1"), unready)
	foreign := with(damaged(1, state.DamageForeign, time.Hour), func(s *situation.Situation) {
		podAt(s, 1).Found = "the volume of orders-1 belongs to member orders-1 of cluster token old, and this is cluster token new"
	})
	crashed := func(s *situation.Situation) { podAt(s, 0).Trouble = "etcd: panic" }
	sounds := with(commit(newVersion), begun, rolled(newVersion, 2), damaged(2, state.DamageCorrupt, time.Hour), leads(0))
	drained := func(s *situation.Situation) { podAt(s, 0).Terminating = true }
	checkRule(t, repair, []ruleCase{
		{name: "90: the one that differs is replaced, although no member is ready", change: differs, want: "write down that orders-1 leaves: orders-1 holds other data than the 2 others"},
		{name: "90: not while another one crashes", change: with(differs, crashed), want: "only 1 of the 2 others are healthy"},
		{name: "90: nor while another one shuts down", change: with(differs, drained), want: "only 1 of the 2 others are healthy"},
		{name: "90: nor where etcd has no reason to call no member ready", change: with(differs, alarmed()), want: "only 0 of the 2 others are healthy"},
		{name: "17: a quiet cluster passes"},
		{name: "86: an unformed cluster is the bootstrap's", change: unformed},
		{name: "75: a pod that is gone is the StatefulSet's", change: func(s *situation.Situation) { s.Observed.Pods = s.Observed.Pods[1:] }},
		{name: "86: also one that replaced somebody", change: with(unformed, func(s *situation.Situation) { s.Observed.Record.Replacing = "orders-1" })},
		{name: "85: a StatefulSet that is gone comes back first", change: with(lost, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "47: a pod of no member that is damaged is no loss", change: with(lost, gone(1))},
		{name: "81: one that is only down has its data", change: down(1)},
		{name: "81: out of memory is no loss", change: with(down(1), func(s *situation.Situation) { podAt(s, 1).Trouble = "OOMKilled" })},
		{name: "78: a wiped volume: the backup first", change: lost, want: "back up through orders-2: before orders-1 is replaced"},
		{name: "78: then the removal", change: with(lost, savedFor("repair orders-1")), want: "write down that orders-1 leaves: orders-1 has lost its data: its volume is empty; it is removed first"},
		{name: "303: what somebody else has removed already serves nobody", change: with(lost, unlisted(1), savedFor("repair orders-1")), want: "write down that orders-1 leaves"},
		{name: "I11: a backup for something else is none", change: with(lost, savedFor("repair orders-2")), want: "back up through"},
		{name: "Git goes without a backup", change: with(lost, func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip }), want: "write down that orders-1 leaves"},
		{name: "60: nowhere to put it", change: with(lost, func(s *situation.Situation) { s.Desired.BackupURL = "" }), want: "Refused: the repair of orders-1 needs a backup first, and no place for it is set"},
		{name: "79: corrupt data", change: with(damaged(1, state.DamageCorrupt, time.Hour), savedFor("repair orders-1")), want: "the data of orders-1 is corrupt"},
		{
			name: "389: what a recovery has put aside there does not go with it", change: with(lost, savedFor("repair orders-1"), keeps(1)),
			want: "Unhealthy: orders-1 has lost its data: its volume is empty; it is not replaced, because volume claim data-orders-1 keeps what orders-1 had in the lost cluster c0, and that would go with it; check whether that is still needed, and copy it if so: it is in a directory beside the data; then let it go: `kubectl -n db annotate pvc data-orders-1 quorate.dev/keeps-`",
		},
		{name: "389: not before the time of grace is over", change: with(damaged(1, state.DamageEmpty, time.Minute), keeps(1)), want: "Waiting: orders-1 has lost its data"},
		{name: "389: another's volume is no reason", change: with(lost, savedFor("repair orders-1"), keeps(2)), want: "write down that orders-1 leaves"},
		{name: "389: nor is a claim whose volume is gone", change: with(damaged(1, state.DamageLost, time.Hour), savedFor("repair orders-1"), keeps(1), claimOf(1, func(v *state.Volume) { v.Bound = false })), want: "write down that orders-1 leaves"},
		{name: "389: nor one that a person has deleted", change: with(lost, savedFor("repair orders-1"), keeps(1), claimOf(1, func(v *state.Volume) { v.Terminating = true })), want: "write down that orders-1 leaves"},
		{name: "389: who is too many may go, and what is kept stays", size: 5, change: with(wanting(3), damaged(4, state.DamageEmpty, 0), leads(0), keeps(4)), want: "write down that orders-4 leaves"},
		{name: "388: one that sounds corrupt with what a roll gave it may be whole", change: with(sounds, savedFor("repair orders-2"))},
		{name: "388: also in a roll to another minor that others wait for", change: with(sounds, savedFor("repair orders-2"), looks(func(r *state.Round) { r.ClusterVersion = "" }))},
		{name: "388: where its guard has found that, it is", change: with(sounds, savedFor("repair orders-2"), func(s *situation.Situation) { podAt(s, 2).Found = "the data of orders-2 is damaged" }), want: "write down that orders-2 leaves: the data of orders-2 is corrupt"},
		{name: "388: it is with what it ran before", change: with(sounds, savedFor("repair orders-2"), func(s *situation.Situation) { podAt(s, 2).Template = "a" }), want: "write down that orders-2 leaves: the data of orders-2 is corrupt"},
		{name: "388: it is where what it ran before cannot start any more", change: with(sounds, savedFor("repair orders-2"), looks(func(r *state.Round) { r.ClusterVersion = "3.6.0" })), want: "write down that orders-2 leaves: the data of orders-2 is corrupt"},
		{name: "388: it is where what it ran before is unknown", change: with(sounds, savedFor("repair orders-2"), func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "" }), want: "write down that orders-2 leaves: the data of orders-2 is corrupt"},
		{name: "388: one whose volume is empty has lost it whatever it runs", change: with(sounds, savedFor("repair orders-2"), func(s *situation.Situation) { podAt(s, 2).Damage = state.DamageEmpty }), want: "write down that orders-2 leaves: orders-2 has lost its data"},
		{name: "77: a volume that is gone", change: with(damaged(1, state.DamageLost, time.Hour), savedFor("repair orders-1")), want: "the volume behind the claim of orders-1 does not exist any more"},
		{name: "80: what an earlier member has left", change: with(damaged(1, state.DamageOutdated, time.Hour), savedFor("repair orders-1")), want: "write down that orders-1 leaves: the volume of orders-1 holds what an earlier member of that name has left"},
		{name: "411: its own volume of an earlier time", change: with(damaged(1, state.DamageOlder, time.Hour), savedFor("repair orders-1")), want: "write down that orders-1 leaves: the volume of orders-1 is older than what it had written, as if a snapshot was put back; it is removed first"},
		{name: "411: the newer one may come back", change: damaged(1, state.DamageOlder, time.Minute), want: "Waiting: the volume of orders-1 is older than what it had written, as if a snapshot was put back; it is replaced when that has lasted 5m0s, unless it comes back"},
		{name: "80: the volume of another is nobody's to delete", change: with(foreign, savedFor("repair orders-1")), want: "Unhealthy: volume claim data-orders-1 holds what is not the data of orders-1 in this cluster (guard: the volume of orders-1 belongs to member orders-1 of cluster token old, and this is cluster token new); quorate never deletes what may be the only copy; bring the right volume back under that claim; or if that data is not needed, or its PersistentVolume is set to Retain, delete the claim and its pod, and a new member takes its place"},
		{name: "80: after a restore in place its claim has another name", change: with(foreign, func(s *situation.Situation) { s.Observed.Record.ClaimPrefix = "data-ab12" }), want: "Unhealthy: volume claim data-ab12-orders-1 holds what is not the data of orders-1"},
		{name: "80: nor where Git wants one member after the other replaced", change: with(foreign, savedFor("repair orders-1"), mode(schema.RepairOneByOne)), want: "Unhealthy: volume claim data-orders-1"},
		{name: "80: nor where Git wants fewer members", change: with(foreign, savedFor("repair orders-1"), wanting(1)), want: "Unhealthy: volume claim data-orders-1"},
		{name: "80: nor that of a member that is being replaced", change: with(foreign, func(s *situation.Situation) { s.Observed.Record.Replacing = "orders-1" }), want: "Unhealthy: volume claim data-orders-1"},
		{name: "80: the only member has no other to join", size: 1, change: damaged(0, state.DamageForeign, time.Hour), want: "or restore a backup into a new cluster"},
		{name: "76: a node that is gone", change: with(down(1), savedFor("repair orders-1"), func(s *situation.Situation) {
			podAt(s, 1).NodeGone, podAt(s, 1).NodeStopped, podAt(s, 1).NodeGoneSince = true, true, noon.Add(-time.Hour)
		}), want: "write down that orders-1 leaves: the node that has the volume of orders-1 is gone"},
		{name: "76: a node that does not report may be back", change: silentFor(7 * time.Minute), want: "Waiting: the node that has the volume of orders-1 does not report; it is replaced when that has lasted 1h0m0s, unless it comes back; or sooner, once its Node object is deleted or tainted node.kubernetes.io/out-of-service"},
		{name: "76: a node that does not report for an hour is given up", change: silentFor(time.Hour), want: "write down that orders-1 leaves: the node that has the volume of orders-1 does not report"},
		{name: "76: the time is Git's", change: with(silentFor(7*time.Minute), func(s *situation.Situation) {
			s.Desired.Spec.Repair = schema.RepairSpec{After: &metav1.Duration{}, NodeTimeout: &metav1.Duration{Duration: 8 * time.Minute}}
		}), want: "it is replaced when that has lasted 8m0s"},
		{name: "303: one that answers is not lost with its node", change: with(cutOff(1), savedFor("repair orders-1"))},
		{name: "303: nor one that answered a moment ago", change: with(cutOff(1), savedFor("repair orders-1"), func(s *situation.Situation) { memberAt(s, 1).Problem = "timeout" })},
		{name: "303: nor one that its peers do not hear, and that answers", change: with(down(1), leads(0), cutOff(1), savedFor("repair orders-1"), func(s *situation.Situation) {
			memberAt(s, 1).Problem, memberAt(s, 1).Version = "linearizable read: etcdserver: no leader", oldVersion
		})},
		{name: "303: nor one that the leader hears", change: with(down(1), leads(0), cutOff(1), savedFor("repair orders-1"), seen(1, state.PeersLinked))},
		{name: "303: nor one whose data Kubernetes calls lost", change: with(damaged(1, state.DamageLost, time.Hour), savedFor("repair orders-1"), seen(1, state.PeersLinked))},
		{name: "303: nor one of which the leader says nothing", change: with(down(1), leads(0), cutOff(1), savedFor("repair orders-1"), seen(1, state.PeersUnknown)), want: "Unhealthy: the node that has the volume of orders-1 is gone; but the leader does not say whether it hears orders-1, which would mean that it serves; let quorate read /metrics"},
		{name: "303: the leader is asked first", change: with(down(1), leads(0), cutOff(1), savedFor("repair orders-1"), seen(1, state.PeersUnknown), func(s *situation.Situation) { s.Observed.Round().Listened = false }), want: "Confirm: that orders-1 does not serve counts when the leader was asked whether it hears it"},
		{name: "303: that is asked before the backup is taken", change: with(down(1), leads(0), cutOff(1), seen(1, state.PeersUnknown)), want: "Unhealthy: the node that has the volume of orders-1 is gone; but the leader does not say"},
		{name: "303: one that differs goes although it answers", change: with(differs, seen(1, state.PeersUnknown)), want: "write down that orders-1 leaves"},
		{name: "87: the time of grace", change: damaged(1, state.DamageEmpty, time.Minute), want: "Waiting: orders-1 has lost its data: its volume is empty; it is replaced when that has lasted 5m0s, unless it comes back"},
		{name: "87: as Git has it", change: with(damaged(1, state.DamageEmpty, time.Minute), func(s *situation.Situation) {
			s.Desired.Spec.Repair.After = &metav1.Duration{Duration: 30 * time.Second}
		}), want: "back up through"},
		{name: "87: one that is back passes", change: with(lost, func(s *situation.Situation) {
			podAt(s, 1).Ready = true
			memberAt(s, 1).Problem = ""
		})},
		{name: "Never only tells", change: with(lost, mode(schema.RepairNever)), want: "Unhealthy: orders-1 has lost its data: its volume is empty; spec.repair.mode is Never: set it to Automatic"},
		{name: "88: two candidates", size: 5, change: five, want: "Unhealthy: the data of orders-3 is corrupt, orders-1 has lost its data: its volume is empty; that two members are lost at once has mostly one cause"},
		{name: "90: one that is empty, too, is one candidate", change: with(compared(1, 2, 1), savedFor("repair orders-1"), func(s *situation.Situation) {
			podAt(s, 1).Ready, podAt(s, 1).Damage, podAt(s, 1).DamageSince = false, state.DamageEmpty, noon.Add(-time.Hour)
		}), want: "write down that orders-1 leaves"},
		{name: "90: who is no member cannot be replaced", change: with(compared(1, 2, 1), func(s *situation.Situation) { delete(s.Observed.Record.Members, "orders-1") })},
		{name: "90: one without a pod", change: with(compared(1, 2, 1), savedFor("repair orders-1"), withoutPod(1)), want: "write down that orders-1 leaves: orders-1 holds other data than the 2 others, seen twice; it is removed first, because a member that is down"},
		{name: "83: two of five, one at a time, when Git says so", size: 5, change: with(five, mode(schema.RepairOneByOne), savedFor("repair orders-3")), want: "write down that orders-3 leaves"},
		{name: "84: a majority: nothing automatic", change: with(lost, damaged(2, state.DamageEmpty, time.Hour), leads(0)), want: "Unhealthy: "},
		{name: "84: whatever the mode", change: with(lost, damaged(2, state.DamageEmpty, time.Hour), leads(0), mode(schema.RepairOneByOne), savedFor("repair orders-1")), want: "Unhealthy: "},
		{name: "86: the only member", size: 1, change: damaged(0, state.DamageEmpty, time.Hour), want: "Unhealthy: orders-0 has lost its data: its volume is empty, and it is the only member; nothing is left to repair it from"},
		{name: "I1: one of two", size: 2, change: with(damaged(1, state.DamageEmpty, time.Hour), leads(0), savedFor("repair orders-1")), want: "Unhealthy: orders-1 has lost its data: its volume is empty; only 1 of 2 members are healthy, and a quorum is 2"},
		{name: "I2: another one is down, too", size: 5, change: with(damaged(1, state.DamageEmpty, time.Hour), down(3), leads(0)), want: "it is replaced when the others are healthy, but orders-3: its pod is not ready yet"},
		{name: "I2: another one has no pod", size: 5, change: with(damaged(4, state.DamageEmpty, time.Hour), leads(0), withoutPod(1)), want: "it is replaced when the others are healthy, but the pod of orders-1 does not exist"},
		{name: "I15: seen twice", change: with(lost, oneLook), want: "Confirm: that the others can do without a member counts when it was seen twice"},
		{name: "I15: two looks apart", change: with(lost, func(s *situation.Situation) { s.Observed.Rounds[0].At = noon }), want: "Confirm: the two checks of the members were too close"},
		{name: "I15: another one was down a moment ago", change: with(lost, func(s *situation.Situation) { s.Observed.Rounds[0].Member("orders-0").Problem = "timeout" }), want: "Confirm: healthy now, but a moment ago"},
		{name: "41: of too many the unhealthy one goes first, at once and permanently", size: 5, change: with(wanting(3), damaged(4, state.DamageEmpty, 0), leads(0)), want: "write down that orders-4 leaves: of the members that are too many the unhealthy one goes first"},
		{name: "a list that cannot be had", change: with(lost, func(s *situation.Situation) { s.Observed.Round().Problem = "timeout" }), want: "Unhealthy: the members cannot be listed"},
	})
}

func TestRepairReplaces(t *testing.T) {
	replacing := with(gone(1), func(s *situation.Situation) { s.Observed.Record.Replacing = "orders-1" })
	onItsWayOut := func(s *situation.Situation) { s.Observed.Volumes[0].Terminating, s.Observed.Record.Retired = true, nil }
	cleared := func(s *situation.Situation) { s.Observed.Volumes, s.Observed.Record.Retired = nil, nil }
	// last is the end of an upgrade in which the last member has been lost.
	last := with(commit(newVersion), begun, rolled(newVersion, 1, 2), gone(0), cleared, func(s *situation.Situation) {
		s.Observed.Record.Replacing, s.Observed.Set.Partition = "orders-0", 1
		for r := range s.Observed.Rounds {
			s.Observed.Rounds[r].ClusterVersion = "3.6.0"
		}
	})
	checkRule(t, repair, []ruleCase{
		{name: "I6: the volume of the member that was removed goes", change: replacing, want: "delete the volume claim data-orders-1: orders-1 was removed from the cluster"},
		{name: "389: not with what a recovery has put aside there", change: with(replacing, func(s *situation.Situation) { s.Observed.Volumes[0].Keeps = "c0" }), want: "Refused: orders-1 does not join yet: its volume must go first, but volume claim data-orders-1 keeps what orders-1 had in the lost cluster c0"},
		{name: "389: one that was never a member of this cluster keeps it, and joins", change: with(replacing, func(s *situation.Situation) {
			s.Observed.Volumes[0].Keeps, s.Observed.Record.Retired = "c0", nil
			s.Observed.Record.Kept = map[string]bool{"orders-1": true}
		}), want: "write down that orders-1 joins"},
		{name: "306: not while etcd lists a voter whom an older record does not know", change: with(replacing, looks(func(r *state.Round) {
			r.Members = append(r.Members, state.Member{Name: "orders-1", ID: "m7", Leader: r.Members[0].Leader, Term: r.Members[0].Term})
		})), want: "Refused: etcd lists orders-1 (member m7), which the record does not know"},
		{name: "306: one that joins it knows", change: with(joining("m3", time.Minute), withPod, looks(func(r *state.Round) { r.Members[len(r.Members)-1].Learner = false })), lacks: "Refused"},
		{name: "I6: its pod lets it go", change: with(replacing, onItsWayOut), want: "delete the pod of orders-1: the old volume goes when no pod uses it"},
		{name: "I6: at once, as no drain waits for it", change: with(replacing, onItsWayOut, func(s *situation.Situation) { s.Observed.Volumes[0].GoingSince = noon }), want: "delete the pod of orders-1: the old volume goes when no pod uses it"},
		{name: "a pod of an earlier rollout goes before its volume", change: with(replacing, func(s *situation.Situation) { podAt(s, 1).Template = "z" }), want: "delete the pod of orders-1: an earlier rollout has left it"},
		{name: "the next pod is left alone", change: with(replacing, onItsWayOut, func(s *situation.Situation) { podAt(s, 1).Created = noon }), want: "Waiting: the volume of the former orders-1 is being deleted"},
		{name: "89: then it joins", change: with(replacing, cleared), want: "write down that orders-1 joins: it takes the place of the member that was removed"},
		{name: "I1: not by a list that is old", change: with(replacing, func(s *situation.Situation) { s.Observed.Round().At = noon.Add(-time.Minute) }), want: "Confirm: the members have not been asked"},
		{name: "I5: nor by that of another cluster", change: with(replacing, func(s *situation.Situation) { s.Observed.Round().ClusterID = "c2" }), want: "Refused: the members say that they are cluster c2"},
		{name: "a gap in the midst of a roll is filled, as the StatefulSet waits for its pod", change: with(commit(newVersion), begun, gone(1), pending(1)), want: "delete the volume claim data-orders-1"},
		{name: "a gap between two rolls waits its turn", change: with(gone(1), pending(1))},
		{name: "20: Git wants it no more", change: with(replacing, wanting(1)), want: "leave the place of orders-1 empty"},
		{name: "in the last step of an upgrade the new one gets the new release", change: last, want: "set the StatefulSet's partition to 0: the cluster version is 3.6.0, and a new member with etcd 3.5.35 could not start"},
		{name: "never as what Git has given up", change: with(last, func(s *situation.Situation) {
			s.Desired.Template, s.Observed.Set.Partition = "c", 0
			s.Observed.Round().ClusterVersion = "3.5.0"
		}), want: "set the StatefulSet's partition to 3: Git no longer wants the template that the new member would get"},
		{name: "before that step the old one", change: with(last, func(s *situation.Situation) { s.Observed.Round().ClusterVersion = "3.5.0" }), want: "write down that orders-0 joins"},
		{name: "what Git wants is no such template", change: with(last, func(s *situation.Situation) {
			s.Observed.Set.Partition, s.Observed.Round().ClusterVersion = 0, "3.5.0"
		}), want: "delete the pod of orders-0: an earlier rollout has left it"},
		{name: "nor is what it comes back with below the partition", change: with(last, func(s *situation.Situation) {
			s.Desired.Template, s.Observed.Round().ClusterVersion = "c", "3.5.0"
		}), want: "write down that orders-0 joins"},
		{name: "that of the others can be too old", change: with(last, func(s *situation.Situation) { s.Desired.Template, s.Observed.Set.Partition = "c", 0 }), want: "delete the pod of orders-0: an earlier rollout has left it"},
		{name: "a cluster version that is unknown moves nothing", change: with(last, func(s *situation.Situation) { s.Observed.Round().ClusterVersion = "" }), want: "write down that orders-0 joins"},
		{name: "a template of another minor does not fit", change: with(last, func(s *situation.Situation) { s.Observed.Set.Version = "3.7.3" }), want: "Refused: orders-0 cannot take its place"},
		{name: "I2: never past a member that would restart, too", change: with(last, func(s *situation.Situation) { s.Observed.Set.Template = "x" }), want: "start the roll 3.5.35 → 3.6.16: the others have this template already"},
		{name: "on the way down the newer one can start", change: with(last, func(s *situation.Situation) {
			s.Observed.Set.CurrentVersion = newVersion
			s.Observed.Round().ClusterVersion = "3.5.0"
		}), want: "write down that orders-0 joins"},
		{name: "I14: where no template fits, a person is asked", change: with(last, func(s *situation.Situation) { s.Observed.Set.Template, s.Desired.Template = "x", "x" }), want: "Refused: orders-0 cannot take its place: it would come back with etcd 3.5.35, and the cluster version is 3.6.0; take the last commit back"},
	})
}

// 89: a commit reaches the pod of the next member where that cannot start as it was, and no other.
func TestACommitReachesTheNextMember(t *testing.T) {
	tried := with(gone(2), leads(0), pending(2), func(s *situation.Situation) {
		r := s.Observed.Record
		s.Observed.Volumes, r.Retired, r.Replacing = nil, nil, "orders-2"
		r.FailedJoin = &state.FailedJoin{Member: "orders-2", At: noon.Add(-time.Minute), Times: 1}
	})
	mended := with(tried, commit(oldVersion))
	const pauses = "Stopped: orders-2 could not join, 1 time in a row"
	checkRule(t, repair, []ruleCase{
		{name: "what Git says of it is tried again later", change: tried, want: pauses},
		{name: "what else it says is given to the StatefulSet", change: mended, want: "start the roll on 3.5.35: orders-2 does not run as it was, and Git asks for something else"},
		{name: "and then to its pod", change: with(mended, begun), want: "set the StatefulSet's partition to 2: orders-2 does not run, so its pod is created as Git asks for"},
		{name: "one that has not failed comes as the others are", change: with(mended, func(s *situation.Situation) { s.Observed.Record.FailedJoin = nil }), want: "write down that orders-2 joins"},
		{name: "I14: not another release", change: with(tried, commit(newVersion)), want: pauses},
		{name: "I2: not past a member that would restart", change: with(gone(0), leads(2), pending(0), commit(oldVersion), func(s *situation.Situation) {
			r := s.Observed.Record
			s.Observed.Volumes, r.Retired, r.Replacing = nil, nil, "orders-0"
			r.FailedJoin = &state.FailedJoin{Member: "orders-0", At: noon.Add(-time.Minute), Times: 1}
		}), want: "Stopped: orders-0 could not join"},
		{name: "I1: nor while another one is down", change: with(mended, down(1)), want: "Stopped: orders-2 could not join"},
	})
}

// pending is a pod that does not get ready.
func pending(ordinal int32) mutation {
	return func(s *situation.Situation) { podAt(s, ordinal).Ready = false }
}
