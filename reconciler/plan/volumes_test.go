package plan

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// stored gives a cluster volumes of 8 GiB of class fast, all as Git says.
func stored(s *situation.Situation) {
	class := "fast"
	s.Observed.Volumes = memberVolumes(s.Desired.Spec.Replicas)
	for i := range s.Observed.Volumes {
		s.Observed.Volumes[i].Class = class
	}
	s.Desired.Spec.Storage = schema.StorageSpec{Size: resource.MustParse("8Gi"), StorageClassName: &class}
	s.Observed.Set.ClaimSize, s.Observed.Set.ClaimClass = 8<<30, class
}

// wants is a commit that asks for another size.
func wants(size string) mutation {
	return func(s *situation.Situation) {
		s.Desired.Spec.Storage.Size, s.Desired.SpecHash = resource.MustParse(size), "b"
	}
}

// wantsClass is a commit that asks for another class, slow, which has been tried.
func wantsClass(change schema.ClassChange) mutation {
	return func(s *situation.Situation) {
		class := "slow"
		s.Observed.Trial.State = state.TrialDone
		s.Desired.Spec.Storage.StorageClassName, s.Desired.Spec.Storage.ClassChange, s.Desired.SpecHash = &class, change, "b"
	}
}

// ofVolume changes the volume of one member.
func ofVolume(ordinal int32, change func(*state.Volume)) mutation {
	return func(s *situation.Situation) { change(s.Observed.Volume(naming.Member("orders", ordinal))) }
}

// volumeWith gives a member a volume of so many bytes.
func volumeWith(ordinal int32, capacity int64) mutation {
	return func(s *situation.Situation) {
		s.Observed.Volumes = memberVolumes(3)
		ofVolume(ordinal, func(v *state.Volume) { v.Capacity = capacity })(s)
	}
}

// grown are volumes that were asked to have 16 GiB, and what they have of it.
func grown(capacity int64, ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		for _, i := range ordinals {
			ofVolume(i, func(v *state.Volume) { v.Size, v.Capacity = 16<<30, capacity<<30 })(s)
		}
	}
}

func TestEnlarge(t *testing.T) {
	larger := with(stored, wants("16Gi"))
	checkRule(t, volumes.Enlarge, []ruleCase{
		{name: "an unformed cluster", change: with(larger, func(s *situation.Situation) { s.Observed.Record = nil })},
		{name: "17: as Git says", change: stored},
		{name: "17: in other words", change: with(stored, wants("8192Mi"))},
		{name: "one after the other", change: larger, want: "grow the volume of orders-0 8Gi → 16Gi"},
		{name: "the next", change: with(larger, grown(8, 0)), want: "grow the volume of orders-1 8Gi → 16Gi"},
		{name: "all have been asked", change: with(larger, grown(8, 0, 1, 2))},
		{name: "6: never to less", change: with(stored, wants("4Gi"))},
		{name: "92: a full disk is no reason to wait", change: with(larger, down(1)), want: "grow the volume of orders-0"},
		{name: "one that cannot grow does not keep the others from it", change: with(larger, ofVolume(0, func(v *state.Volume) { v.NotExpandable = "no" })), want: "grow the volume of orders-1"},
		{name: "one that is being deleted is left alone", change: with(larger, ofVolume(0, func(v *state.Volume) { v.Terminating = true })), want: "grow the volume of orders-1"},
		{name: "one that has no volume yet has the size of its claim", change: with(larger, ofVolume(0, func(v *state.Volume) { v.Bound = false })), want: "grow the volume of orders-1"},
		{name: "I7: nor one with foreign data", change: with(larger, ofVolume(0, func(v *state.Volume) { v.Holds = state.HoldsForeign })), want: "grow the volume of orders-1"},
		{name: "48: one that no member has is left alone", change: with(larger, grown(16, 0, 1, 2), func(s *situation.Situation) {
			s.Observed.Volumes = append(s.Observed.Volumes, memberVolume("data-orders-3", 8<<30))
		})},
		{name: "34: nothing of an unformed cluster", change: with(larger, unformed)},
	})
}

func TestVolumes(t *testing.T) {
	larger := with(stored, wants("16Gi"))
	asked := with(larger, grown(8, 0, 1, 2))
	done := with(larger, grown(16, 0, 1, 2))
	checkRule(t, volumes.Grown, []ruleCase{
		{name: "17: as Git says", change: stored},
		{name: "a class that does not allow it", change: with(larger, ofVolume(0, func(v *state.Volume) {
			v.NotExpandable = "its StorageClass fast does not allow it (allowVolumeExpansion)"
		})), want: "Refused: the volume of orders-0 has 8Gi and cannot grow to 16Gi: its StorageClass fast does not allow it (allowVolumeExpansion); set spec.storage.size back, or let the StorageClass"},
		{name: "5: unless its member makes way for one of another class", change: with(larger, wantsClass(schema.ClassChangeReplace), grown(16, 1, 2), ofVolume(0, func(v *state.Volume) { v.NotExpandable = "no" })), want: "release the pods from the StatefulSet: new members would get volumes of class fast instead of class slow"},
		{name: "5: which the only member cannot", size: 1, change: with(larger, wantsClass(schema.ClassChangeReplace), ofVolume(0, func(v *state.Volume) { v.NotExpandable = "no" })), want: "Refused: the volume of orders-0 has 8Gi and cannot grow to 16Gi"},
		{name: "I7: what holds foreign data is not waited for", change: with(larger, grown(16, 1, 2), ofVolume(0, func(v *state.Volume) { v.Holds = state.HoldsForeign })), want: "release the pods"},
		{name: "the disk", change: asked, want: "Waiting: the volume of orders-0 grows from 8Gi to 16Gi"},
		{name: "the file system", change: with(asked, ofVolume(0, func(v *state.Volume) { v.Growing = "FileSystemResizePending: on the node" })), want: "Waiting: the volume of orders-0 grows from 8Gi to 16Gi (FileSystemResizePending: on the node)"},
		{name: "a provisioner that cannot", change: with(asked, ofVolume(0, func(v *state.Volume) { v.Trouble = "NodeResizeError: no" })), want: "Unhealthy: the volume of orders-0 grows from 8Gi to 16Gi, but NodeResizeError: no; check its claim data-orders-0"},
		{name: "one is still missing", change: with(done, grown(8, 2)), want: "Waiting: the volume of orders-2 grows"},
		{name: "then the StatefulSet", change: done, want: "release the pods from the StatefulSet: new members would get 8Gi instead of 16Gi: it is recreated around its pods, and none of them restarts"},
		{name: "not in the middle of a roll", change: with(done, commit(newVersion))},
		{name: "not while a pod is missing", change: with(done, func(s *situation.Situation) { s.Observed.Pods = s.Observed.Pods[1:] })},
		{name: "320: nor while a place is open, and the pod of a former member makes up the number", change: with(done, gone(1), withoutPod(1), func(s *situation.Situation) {
			s.Observed.Pods = append([]state.Pod{{Name: "orders-3", Ordinal: 3, Template: "a"}}, s.Observed.Pods...)
		})},
		{name: "320: nor while the pod of no member would be restarted", change: with(done, gone(1), func(s *situation.Situation) { podAt(s, 1).Template = "x" })},
		{name: "6: a smaller wish is not this rule's", change: with(stored, wants("4Gi"))},
		{name: "5: another class that Git does not insist on is not this rule's", change: with(stored, wantsClass(""))},
		{name: "5: another class by replacement", change: with(stored, wantsClass(schema.ClassChangeReplace)), want: "release the pods from the StatefulSet: new members would get volumes of class fast instead of class slow"},
		{name: "5: nor one that nobody names", change: with(stored, wantsClass(schema.ClassChangeReplace), func(s *situation.Situation) { s.Desired.Spec.Storage.StorageClassName = nil })},
		{name: "an unformed cluster", change: with(larger, unformed)},
		{name: "also one with volumes", change: with(done, func(s *situation.Situation) { s.Observed.Record = &state.Record{} })},
		{name: "no StatefulSet", change: with(done, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "one that goes anyhow is not waited for", change: with(done, grown(8, 2), ofVolume(2, func(v *state.Volume) { v.Terminating = true })), want: "release the pods"},
		{name: "nor one that has no disk yet", change: with(done, grown(8, 2), ofVolume(2, func(v *state.Volume) { v.Bound = false })), want: "release the pods"},
		{name: "an unknown size is not too small", change: with(done, func(s *situation.Situation) { s.Observed.Set.ClaimSize = 0 })},
	})
}

func TestReleasedPodsAreTakenOver(t *testing.T) {
	released := with(stored, wants("16Gi"), grown(16, 0, 1, 2), func(s *situation.Situation) { s.Observed.Set = nil })
	outgrown := with(stored, rolled(newVersion, 0, 1, 2), func(s *situation.Situation) { s.Observed.Set = nil })
	checkRule(t, objects.Drift, []ruleCase{
		{name: "by a new StatefulSet, although the spec was never carried out", change: released, want: "create 3 members: the StatefulSet is gone, and its pods are as Git wants them: a new one takes them over, and none restarts"},
		{name: "for as many members as there are", change: with(released, func(s *situation.Situation) { s.Desired.Spec.Replicas = 5 }), want: "create 3 members"},
		{name: "also when one pod has died meanwhile", change: with(released, func(s *situation.Situation) { s.Observed.Pods = s.Observed.Pods[1:] }), want: "create 3 members: the StatefulSet is gone, and its pods"},
		{name: "I25: not when a new commit would restart them", change: with(released, commit(newVersion)), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "I25: not when one of them has another template", change: with(released, func(s *situation.Situation) { podAt(s, 1).Template = "z" }), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "I14: not with a release that came while they slept", change: with(released, func(s *situation.Situation) {
			s.Observed.Pods, s.Observed.Record.Applied = nil, &state.Applied{SpecHash: "b", Version: "3.5.34"}
		}), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "I14: not as what the cluster has outgrown", change: with(outgrown, looks(func(r *state.Round) { r.ClusterVersion = "3.6.0" })), want: "Refused: the StatefulSet is gone, and the cluster version is 3.6, which etcd 3.5.35 does not start in; set spec.version to a release that the members run"},
		{name: "I14: nor as what no member runs any more", change: outgrown, want: "Refused: the StatefulSet is gone, and members run a newer minor than 3.5, and none reports that one"},
		{name: "I14: nor while nobody tells the cluster version", change: with(outgrown, of(0, func(m *state.Member) { m.Version = oldVersion }), looks(func(r *state.Round) { r.ClusterVersion = "" })), want: "Refused: the StatefulSet is gone, and members run a newer minor than 3.5"},
		{name: "I14: nor when all have gone in the midst of a downgrade", change: with(outgrown, func(s *situation.Situation) {
			s.Observed.Pods, s.Observed.Record.Downgrade = nil, &state.Downgrade{Minor: "3.5"}
		}), want: "Refused: the StatefulSet is gone, and etcd is being downgraded to 3.5, and no member is there to report how far it has come"},
		{name: "a roll may be given up while one member has the old minor", change: with(outgrown, of(0, func(m *state.Member) { m.Version = oldVersion })), want: "create 3 members: the StatefulSet is gone; its members continue"},
		{name: "I5: not when a volume is gone", change: with(released, func(s *situation.Situation) { s.Observed.Volumes = s.Observed.Volumes[1:] }), want: "Refused"},
		{name: "85: none is left, and the file has changed", change: with(released, func(s *situation.Situation) { s.Observed.Pods = nil }), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "not before the old one is gone", change: func(s *situation.Situation) { s.Observed.Set.Terminating, s.Observed.Set.Finalizers = true, "orphan" }, want: "Waiting: the StatefulSet is being deleted; its pods stay"},
	})
}

// I6: no member gives its volume up for one of a class that has not been seen to make any.
func TestAClassIsTriedBeforeAMemberLeavesForIt(t *testing.T) {
	moved := with(stored, wantsClass(schema.ClassChangeReplace))
	trial := func(t state.Trial) mutation { return func(s *situation.Situation) { s.Observed.Trial = t } }
	reshaped := func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" }
	backed := func(s *situation.Situation) {
		s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: "repair orders-2", Time: noon}
	}
	running := state.Trial{State: state.TrialRunning, Why: "not scheduled: unbound claims", Since: noon.Add(-time.Minute)}
	checkRule(t, volumes.Grown, []ruleCase{
		{name: "first of all", change: with(moved, trial(state.Trial{})), want: "try class slow with a volume of 8Gi: no member gives its volume up"},
		{name: "it runs", change: with(moved, trial(running)), want: "Waiting: a trial volume of class slow is being made, before a member gives its own up for one: not scheduled: unbound claims"},
		{name: "it has failed", change: with(moved, trial(state.Trial{State: state.TrialFailed, Why: "no pod had it within 15m0s", Job: "orders-trial-1"})), want: "Unhealthy: no member changes to a volume of class slow: a trial volume could not be used: no pod had it within 15m0s; set spec.storage.storageClassName back, or find out why with `kubectl -n db describe job orders-trial-1`"},
		{name: "there is no such class", change: with(moved, trial(state.Trial{Problem: "StorageClass slow does not exist"})), want: "Refused: no member changes to a volume of class slow: StorageClass slow does not exist; set spec.storage.storageClassName back, or name a class"},
		{name: "one that a member has needs none", change: with(moved, trial(state.Trial{}), reshaped, ofVolume(2, func(v *state.Volume) { v.Class = "slow" }))},
		{name: "the only member has no use for one", size: 1, change: with(moved, trial(state.Trial{})), want: "release the pods"},
	})
	checkRule(t, repair, []ruleCase{
		{name: "no member leaves before it", change: with(moved, reshaped, backed, trial(state.Trial{}))},
		{name: "nor while it runs", change: with(moved, reshaped, backed, trial(running))},
		{name: "nor after it has failed", change: with(moved, reshaped, backed, trial(state.Trial{State: state.TrialFailed}))},
		{name: "nor where the class is gone", change: with(moved, reshaped, backed, trial(state.Trial{State: state.TrialDone, Problem: "gone"}))},
		{name: "then one does", change: with(moved, reshaped, backed), want: "write down that orders-2 leaves"},
		{name: "the next ones need no other", change: with(moved, reshaped, trial(state.Trial{}), savedFor("repair orders-1"), ofVolume(2, func(v *state.Volume) { v.Class = "slow" })), want: "write down that orders-1 leaves"},
	})
}

// A claim without a volume that asks for what Git no longer does is worth nothing.
func TestAPlaceWithoutAVolumeIsFilledAsGitSays(t *testing.T) {
	// slipped is a cluster whose member orders-2 has left for a volume of a class that never came, and whose commit was reverted.
	slipped := with(stored, gone(2), func(s *situation.Situation) {
		s.Observed.Record.Replacing, s.Observed.Record.Retired = "orders-2", nil
		s.Observed.Set.ClaimClass = "typo"
		p := podAt(s, 2)
		p.Ready, p.Ran, p.Trouble = false, false, "not scheduled: unbound claims"
		v := s.Observed.Volume("orders-2")
		v.Class, v.Bound, v.Pending, v.Capacity, v.Holds = "typo", false, true, 0, ""
	})
	reshaped := func(s *situation.Situation) { s.Observed.Set.ClaimClass = "fast" }
	unnamed := func(s *situation.Situation) { s.Desired.Spec.Storage.StorageClassName = nil }
	older := func(s *situation.Situation) {
		s.Observed.Set.ClaimClass, s.Observed.Set.Created = "", noon.Add(-time.Minute)
		s.Observed.Volume("orders-2").Created = noon.Add(-time.Hour)
	}
	checkRule(t, repair, []ruleCase{
		{name: "the StatefulSet first", change: slipped, want: "release the pods from the StatefulSet: new members would get volumes of class typo instead of class fast"},
		{name: "then the claim", change: with(slipped, reshaped), want: "delete the volume claim data-orders-2: there is no volume behind it, and Git now asks for another one"},
		{name: "which its pod lets go", change: with(slipped, reshaped, ofVolume(2, func(v *state.Volume) { v.Terminating = true })), want: "delete the pod of orders-2"},
		{name: "then it joins", change: with(slipped, reshaped, ofVolume(2, func(v *state.Volume) { v.Class = "fast" })), want: "write down that orders-2 joins"},
		{name: "where Git names no class any more", change: with(slipped, unnamed), want: "release the pods from the StatefulSet: new members would get volumes of class typo instead of the default class"},
		{name: "then what the earlier StatefulSet has asked for", change: with(slipped, unnamed, older), want: "delete the volume claim data-orders-2"},
		{name: "but not what the new one has", change: with(slipped, unnamed, older, func(s *situation.Situation) { s.Observed.Set.Created = noon.Add(-2 * time.Hour) }), want: "write down that orders-2 joins"},
		{name: "not in the midst of a roll", change: with(slipped, commit(newVersion)), want: "Refused: orders-2 would get volumes of class typo instead of class fast: the StatefulSet is recreated for that when the pods of all others are as Git wants them, and that of orders-0 is not; revert what else the file says"},
	})
	joining := with(slipped, reshaped, func(s *situation.Situation) {
		s.Observed.Record.Replacing, s.Observed.Record.Joining = "", &state.Joining{Member: "orders-2", ID: "m9", Replace: true, Since: noon.Add(-time.Minute)}
		for i := range s.Observed.Rounds {
			s.Observed.Rounds[i].Members = append(s.Observed.Rounds[i].Members, state.Member{ID: "m9", Learner: true})
		}
	})
	checkRule(t, membership, []ruleCase{
		{name: "a learner that waits for such a volume joins no more", change: joining, want: "remove the learner orders-2: no volume was ever made for it, and Git now asks for another one"},
		{name: "one that waits for the right one does", change: with(joining, ofVolume(2, func(v *state.Volume) { v.Class = "fast" })), want: "Waiting: orders-2 joins"},
	})
}

// A member whose claim was made anew has lost what the claim before had: no guard runs to say so.
func TestAMemberWhoseClaimWasMadeAnewIsLost(t *testing.T) {
	anew := with(stored, down(1), func(s *situation.Situation) {
		p := podAt(s, 1)
		p.Ran, p.Trouble = false, "not scheduled: unbound claims"
		v := s.Observed.Volume("orders-1")
		v.Bound, v.Pending, v.Capacity, v.Holds, v.Created = false, true, 0, "", noon.Add(-time.Hour)
	})
	checkRule(t, repair, []ruleCase{
		{name: "it is replaced", change: with(anew, savedFor("repair orders-1")), want: "write down that orders-1 leaves: volume claim data-orders-1 was made anew and has no volume: the data of orders-1 is gone with the one before"},
		{name: "after a while", change: with(anew, ofVolume(1, func(v *state.Volume) { v.Created = noon.Add(-time.Minute) })), want: "Waiting: volume claim data-orders-1 was made anew"},
		{name: "one that has run has not", change: with(anew, func(s *situation.Situation) { podAt(s, 1).Ran = true })},
		{name: "nor one whose claim had a volume", change: with(anew, ofVolume(1, func(v *state.Volume) { v.Pending = false }))},
		{name: "nor one whose claim goes", change: with(anew, ofVolume(1, func(v *state.Volume) { v.Terminating = true }))},
	})
}

func TestMisplaced(t *testing.T) {
	moved := with(stored, wantsClass(schema.ClassChangeReplace))
	reshaped := with(moved, func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" })
	for _, c := range []struct {
		name   string
		change mutation
		want   []string
	}{
		{"17: as Git says", stored, nil},
		{"not before new members get the right class", moved, nil},
		{"then from the highest ordinal down", reshaped, []string{"orders-2", "orders-1", "orders-0"}},
		{"those that are left", with(reshaped, ofVolume(2, func(v *state.Volume) { v.Class = "slow" })), []string{"orders-1", "orders-0"}},
		{"not one whose volume goes anyhow", with(reshaped, ofVolume(2, func(v *state.Volume) { v.Terminating = true })), []string{"orders-1", "orders-0"}},
		{"nor one that has no disk yet", with(reshaped, ofVolume(2, func(v *state.Volume) { v.Bound = false })), []string{"orders-1", "orders-0"}},
		{"nor one of a third class before that", with(moved, ofVolume(2, func(v *state.Volume) { v.Class = "old" })), nil},
		{"nobody without Git's word", with(reshaped, wantsClass("")), nil},
		{"nobody without a class", with(reshaped, func(s *situation.Situation) { s.Desired.Spec.Storage.StorageClassName = nil }), nil},
		{"nobody without a StatefulSet", with(reshaped, func(s *situation.Situation) { s.Observed.Set = nil }), nil},
	} {
		s := healthy(3)
		c.change(s)
		if got := s.Misplaced(); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// 5: a change of the class replaces one member after the other, and no sooner than
// any other disturbance.
func TestMisplacedMembersAreReplaced(t *testing.T) {
	reshaped := with(stored, wantsClass(schema.ClassChangeReplace), func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" })
	backed := func(s *situation.Situation) {
		s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: "repair orders-2", Time: noon}
	}
	closed := func(s *situation.Situation) {
		s.Desired.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("0 2 * * 6", "1h", "UTC")}
	}
	checkRule(t, repair, []ruleCase{
		{name: "a backup first, from another one", change: reshaped, want: "back up through orders-0: before orders-2 is replaced"},
		{name: "then the highest", change: with(reshaped, backed), want: "write down that orders-2 leaves: the volume of orders-2 is of class fast, and Git asks for class slow; it is removed first, because no two members share a name"},
		{name: "not before new members get the right class", change: with(reshaped, backed, func(s *situation.Situation) { s.Observed.Set.ClaimClass = "fast" })},
		{name: "88: one that is lost is replaced alone", change: with(reshaped, damaged(1, state.DamageEmpty, time.Hour), savedFor("repair orders-1")), want: "write down that orders-1 leaves: orders-1 has lost its data"},
		{name: "I26: not outside the windows", change: with(reshaped, backed, closed)},
		{name: "I2: not in a roll", change: with(reshaped, backed, commit(newVersion))},
		{name: "I20: one that Git does not want goes in its turn", change: with(reshaped, wanting(1), ofVolume(0, func(v *state.Volume) { v.Class = "slow" }))},
		{name: "I28: not while as many clusters are disrupted as may be", change: with(reshaped, backed, atMost(1, neighbour("db/baskets", "it is being rolled")))},
		{name: "I25: not while another writer undoes what quorate does", change: with(reshaped, backed, fought("Service", time.Minute))},
		{name: "although nothing is to be repaired", change: with(reshaped, backed, func(s *situation.Situation) { s.Desired.Spec.Repair.Mode = schema.RepairNever }), want: "write down that orders-2 leaves"},
		{name: "I1: not while another one is down", change: with(reshaped, backed, down(0))},
		{name: "I15: nor while one does not answer", change: with(reshaped, backed, of(0, func(m *state.Member) { m.Problem = "timeout" }))},
		{name: "nor while no member was asked", change: with(reshaped, backed, func(s *situation.Situation) { s.Observed.Rounds = nil })},
		{name: "I2: not while a pod is not ready", change: with(reshaped, backed, func(s *situation.Situation) { podAt(s, 0).Ready = false })},
		{name: "the only member stays", size: 1, change: with(reshaped, backed)},
		{name: "all are in place", change: with(reshaped, backed, func(s *situation.Situation) {
			for i := range s.Observed.Volumes {
				s.Observed.Volumes[i].Class = "slow"
			}
		})},
	})
	checkRule(t, volumes.Grown, []ruleCase{
		{name: "outside the windows the rest waits", change: with(reshaped, closed), want: "Waiting: volumes of 3 members must change to class slow: orders-2, orders-1, orders-0, one at a time, once the maintenance window opens at Sat 2026-03-07 02:00 UTC"},
		{name: "also where others are to join", change: with(reshaped, closed, wanting(5)), want: "once the maintenance window opens"},
		{name: "inside of them repair replaces", change: reshaped},
		{name: "windows that cannot be read are said elsewhere", change: with(reshaped, func(s *situation.Situation) {
			s.Desired.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("often", "1h", "UTC")}
		})},
		{name: "381: others join first where Git asks for more", size: 1, change: with(reshaped, wanting(3))},
		{name: "the only member cannot", size: 1, change: reshaped, want: "Refused: volumes of 1 member must change to class slow: orders-0; there is no other member to replicate from; raise spec.replicas to 3 first"},
	})
}

// 79: a member that goes only because Git asks for another one stays where one is lost meanwhile,
// which no quorum could replace without it.
func TestOneThatIsLostComesBeforeAnotherVolume(t *testing.T) {
	asked := with(leaving(2, true), serving, leads(0), func(s *situation.Situation) { s.Observed.Record.Leaving.Asked = true })
	lost := damaged(1, state.DamageEmpty, time.Hour)
	checkRule(t, membership, []ruleCase{
		{name: "it goes", change: asked, want: "remove orders-2"},
		{name: "it stays for one that is lost", change: with(asked, lost), want: "keep orders-2 after all: orders-1 has lost its data: its volume is empty, and that comes first"},
		{name: "for one that holds other data", change: with(asked, compared(1, 2, 1), alarmed(state.Alarm{Kind: state.Corrupt, MemberID: state.UnknownMember})), want: "keep orders-2 after all: orders-1 holds other data"},
		{name: "and to be replaced for that, where it is the one", change: with(asked, compared(1, 1, 2)), want: "keep orders-2 after all: orders-2 holds other data"},
		{name: "not for one that is only down", change: with(asked, down(1)), want: "Unhealthy: orders-2 will be removed"},
		{name: "nor for the next one that moves", change: with(stored, wantsClass(schema.ClassChangeReplace), asked, func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" }), want: "remove orders-2"},
	})
}

// I15: of a member with which nothing is wrong, the copy that goes is the right one.
func TestWhoIsAskedToLeaveLeavesWhenItsDataWasCompared(t *testing.T) {
	reshaped := with(stored, wantsClass(schema.ClassChangeReplace), func(s *situation.Situation) { s.Observed.Set.ClaimClass = "slow" })
	backed := func(s *situation.Situation) {
		s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: "repair orders-2", Time: noon}
	}
	asked := func(ago time.Duration) mutation {
		return with(serving, func(s *situation.Situation) {
			s.Observed.Record.Leaving.Asked, s.Observed.Record.Leaving.Since = true, noon.Add(-ago)
		})
	}
	uncompared := looks(func(r *state.Round) { r.Deep = false })
	corrupt := alarmed(state.Alarm{Kind: state.Corrupt, MemberID: state.UnknownMember})
	const asks = "Confirm: the members' data has not been compared yet"
	checkRule(t, repair, []ruleCase{
		{name: "another volume waits for a comparison", change: with(reshaped, backed, uncompared), want: asks},
		{name: "data that differs is for health to tell", change: with(reshaped, backed, compared(1, 2, 3))},
	})
	highest := with(leaving(2, true), leads(0))
	first := second(leads(1), leaving(0, true))
	checkRule(t, membership, []ruleCase{
		{name: "it was compared when that was decided", change: with(highest, asked(time.Minute), uncompared), want: "remove orders-2"},
		{name: "which was long ago", change: with(highest, asked(time.Hour), uncompared), want: asks},
		{name: "which etcd contradicts", change: with(highest, asked(time.Minute), uncompared, corrupt), want: asks},
		{name: "what differs stays", change: with(highest, asked(time.Minute), compared(1, 2, 3)), want: "Unhealthy: orders-2 will be removed (Git wants fewer), but orders-1 and orders-0 hold different data, and it is not known yet which is right"},
		{name: "one with which something is wrong goes", change: with(highest, serving, uncompared, corrupt), want: "remove orders-2"},
		{name: "552: the only one goes for the second one", size: 2, change: with(first, asked(time.Minute), uncompared), want: "remove orders-0"},
		{name: "552: not where the two differ", size: 2, change: with(first, asked(time.Minute), compared(1, 2)), want: "Unhealthy: orders-0 will be removed (Git wants fewer), but orders-0 and orders-1 hold different data"},
		{name: "552: nor where etcd says so", size: 2, change: with(first, asked(time.Minute), uncompared, corrupt), want: asks},
	})
}

// I9: no backup of data that is not to be trusted, where there is another.
func TestBackupAvoidsTheMemberThatIsWrong(t *testing.T) {
	s := healthy(3)
	compared(1, 1, 2)(s)
	v := repair(s)
	if v.Step == nil || v.Step.Action.String() != "back up through orders-0" {
		t.Errorf("got %+v", v)
	}
	for name, unfit := range map[string]func(*state.Member){
		"who does not answer":                   func(m *state.Member) { m.Problem = "timeout" },
		"a learner, who may not have all of it": func(m *state.Member) { m.Learner = true },
		"one that has not started":              func(m *state.Member) { m.Name = "" },
	} {
		s := healthy(3)
		unfit(&s.Observed.Round().Members[0])
		if m := s.BackupMember("orders-2"); m == nil || m.Name != "orders-1" {
			t.Errorf("I9: a backup from %s: %+v", name, m)
		}
	}
}

// I25: growth restarts no member, and the forecast says so.
func TestGrowthRestartsNobody(t *testing.T) {
	s := healthy(3)
	with(stored, wants("16Gi"))(s)
	p := Make(s.Desired, s.Observed, noon)
	if len(p.Steps) != 6 || len(decision.Restarts(p.Steps)) != 0 {
		t.Errorf("plan:\n%s", p.Text())
	}
}
