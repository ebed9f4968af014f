package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestShrink(t *testing.T) {
	checkRule(t, shrink, []ruleCase{
		{name: "17: what Git says passes"},
		{name: "20: an unformed cluster passes", change: with(unformed, wanting(1))},
		{name: "37: growing is the business of grow", change: wanting(5)},
		{name: "37: the highest ordinal", change: wanting(1), want: "write down that orders-2 leaves: Git wants 1 member; the highest ordinal goes first"},
		{name: "38: ten is higher than nine", size: 12, change: wanting(9), want: "write down that orders-11 leaves"},
		{name: "I2: not while a given-up roll has broken another one", change: with(commit(newVersion), begun, rolled(newVersion, 1), func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(1), leads(0), wanting(2))},
		{name: "49: before a roll, which then has fewer to restart", change: with(commit(newVersion), wanting(1)), want: "write down that orders-2 leaves"},
	})
}

func TestGrow(t *testing.T) {
	// left gives orders-3 a volume from an earlier life, known says whose it was, and
	// stands gives it a pod.
	left := func(edit func(*state.Volume)) mutation {
		return func(s *situation.Situation) {
			v := memberVolume(naming.Claim("", "orders-3"), 8<<30)
			edit(&v)
			s.Observed.Volumes = []state.Volume{v}
		}
	}
	known := func(s *situation.Situation) { s.Observed.Record.Retired = map[string]string{"orders-3": "m3"} }
	stands := func(edit func(*state.Pod)) mutation {
		return with(withPod, func(s *situation.Situation) { edit(podAt(s, 3)) })
	}
	leaves := func(v *state.Volume) { v.Terminating = true }
	fails := func(s *situation.Situation) {
		s.Observed.Record.FailedJoin = &state.FailedJoin{Member: "orders-3", At: noon.Add(-time.Hour), Times: 3}
	}
	checkRule(t, grow, []ruleCase{
		{name: "17: what Git says passes"},
		{name: "20: an unformed cluster passes", change: with(unformed, wanting(5))},
		{name: "37: up: the lowest free ordinal", change: wanting(5), want: "write down that orders-3 joins: Git wants 5 members, and there are 3"},
		{name: "13: a pod that an abandoned roll has left makes way", change: with(gone(1), func(s *situation.Situation) {
			s.Observed.Volumes, s.Observed.Record.Retired, podAt(s, 1).Template = nil, nil, "broken"
		}), want: "delete the pod of orders-1: an earlier rollout has left it"},
		{name: "89: a hole is filled before anything else grows", change: with(gone(1), func(s *situation.Situation) { s.Observed.Volumes, s.Observed.Record.Retired = nil, nil }, wanting(5)), want: "write down that orders-1 joins"},
		{name: "49: not within a roll", change: with(commit(newVersion), wanting(5))},
		{name: "48: the volume of a former member goes first", change: with(wanting(5), func(s *situation.Situation) {
			s.Observed.Record.Retired, s.Observed.Volumes = map[string]string{"orders-3": "m3"}, []state.Volume{memberVolume(naming.Claim("", "orders-3"), 8<<30)}
		}), want: "delete the volume claim data-orders-3: orders-3 was removed from the cluster"},
		{name: "48: one that is being deleted", change: with(wanting(5), func(s *situation.Situation) {
			v := memberVolume(naming.Claim("", "orders-3"), 8<<30)
			v.Terminating = true
			s.Observed.Volumes = []state.Volume{v}
		}), want: "Waiting: the volume of the former orders-3 is being deleted"},
		{name: "the volume of a lost cluster's member is kept, and used", change: with(wanting(5), func(s *situation.Situation) {
			s.Observed.Volumes = []state.Volume{memberVolume(naming.Claim("", "orders-3"), 8<<30)}
			s.Observed.Record.Kept = map[string]bool{"orders-3": true}
		}), want: "write down that orders-3 joins"},
		{name: "35: a volume that is unknown is never touched", change: with(wanting(5), func(s *situation.Situation) {
			s.Observed.Volumes = []state.Volume{memberVolume(naming.Claim("", "orders-3"), 8<<30)}
		}), want: "Refused: volume claim data-orders-3 holds the data of member m3, which is not in the record: it may be the only copy"},
		{name: "48: a known one that is being deleted", change: with(wanting(5), known, left(leaves)), want: "Waiting: the volume of the former orders-3 is being deleted"},
		{name: "48: one that its pod still holds, and lets go", change: with(wanting(5), left(leaves), stands(func(p *state.Pod) { p.Terminating = true })), want: "Waiting: the volume of the former orders-3 is being deleted"},
		{name: "48: one that its pod holds", change: with(wanting(5), left(leaves), stands(func(*state.Pod) {})), want: "delete the pod of orders-3: the old volume goes when no pod uses it"},
		{name: "48: one that a pod was just made beside", change: with(wanting(5), left(leaves), stands(func(p *state.Pod) { p.Created = noon.Add(-time.Second) })), want: "Waiting: the volume of the former orders-3 is being deleted"},
		{name: "13: a pod of another template that goes on its own", change: with(wanting(5), stands(func(p *state.Pod) { p.Template, p.Terminating = "broken", true })), want: "write down that orders-3 joins"},
		{name: "13: a pod that stands above the partition of no roll", change: with(wanting(5), stands(func(*state.Pod) {}), func(s *situation.Situation) { s.Observed.Set.CurrentTemplate, s.Observed.Set.Partition = "", 9 }), want: "write down that orders-3 joins"},
		{name: "35: behind a claim that is not bound there is nothing", change: with(wanting(5), left(func(v *state.Volume) { v.Bound, v.Holds = false, "" })), want: "write down that orders-3 joins"},
		{name: "35: a pod is there, and the guard in it will say whose the volume is", change: with(wanting(5), left(func(v *state.Volume) { v.Holds = "" }), stands(func(*state.Pod) {})), want: "write down that orders-3 joins"},
		{name: "I7: the guard has said that it is somebody's", change: with(wanting(5), left(func(v *state.Volume) { v.Holds = state.HoldsForeign }), stands(func(*state.Pod) {})), want: "Refused: volume claim data-orders-3 holds what is not the data of orders-3"},
		{name: "43: three tries have failed on a volume that is unknown", change: with(wanting(5), fails, left(func(v *state.Volume) { v.Holds = "" }), stands(func(*state.Pod) {})), want: "Refused: volume claim data-orders-3 exists, but no member"},
		{name: "43: three tries have failed on one of its own", change: with(wanting(5), fails, left(func(*state.Volume) {}), stands(func(*state.Pod) {})), want: "write down that orders-3 joins"},
		{name: "94: the record still speaks of a volume that is gone", change: with(wanting(5), func(s *situation.Situation) { s.Observed.Record.Retired = map[string]string{"orders-3": "m3"} }), want: "record that the volume claim data-orders-3 is gone"},
		{name: "43: after a failure not at once", change: with(wanting(5), func(s *situation.Situation) {
			s.Observed.Record.FailedJoin = &state.FailedJoin{Member: "orders-3", At: noon.Add(-time.Minute), Times: 1}
		}), want: "Stopped: orders-3 could not join, 1 time in a row; the next try is 10m0s after the last"},
		{name: "43: but later", change: with(wanting(5), func(s *situation.Situation) {
			s.Observed.Record.FailedJoin = &state.FailedJoin{Member: "orders-3", At: noon.Add(-11 * time.Minute), Times: 1}
		}), want: "write down that orders-3 joins"},
		{name: "43: and never rarer than every two hours", change: with(wanting(5), func(s *situation.Situation) {
			s.Observed.Record.FailedJoin = &state.FailedJoin{Member: "orders-3", At: noon.Add(-121 * time.Minute), Times: 99}
		}), want: "write down that orders-3 joins"},
	})
}

func TestRemove(t *testing.T) {
	policy := func(p schema.VolumePolicy) mutation {
		return func(s *situation.Situation) { s.Desired.Spec.Storage.RemovedVolumes = p }
	}
	shrunk := with(gone(2), wanting(2), func(s *situation.Situation) { s.Observed.Pods = s.Observed.Pods[1:] })
	checkRule(t, remove, []ruleCase{
		{name: "17: a quiet cluster passes", change: policy(schema.VolumesDelete)},
		{name: "I6: without a word of Git the volume stays", change: shrunk},
		{name: "I6: Keep keeps it", change: with(shrunk, policy(schema.VolumesKeep))},
		{name: "Delete deletes it", change: with(shrunk, policy(schema.VolumesDelete)), want: "delete the volume claim data-orders-2: orders-2 was removed, and spec.storage.removedVolumes is Delete"},
		{name: "389: not with what a recovery has put aside there", change: with(shrunk, policy(schema.VolumesDelete), func(s *situation.Situation) { s.Observed.Volumes[0].Keeps = "c0" })},
		{name: "389: which no longer is there", change: with(shrunk, policy(schema.VolumesDelete), func(s *situation.Situation) {
			s.Observed.Volumes[0].Keeps, s.Observed.Volumes[0].Bound = "c0", false
		}), want: "delete the volume claim data-orders-2"},
		{name: "I6: not before its pod is gone", change: with(gone(2), wanting(2), policy(schema.VolumesDelete)), want: "Waiting: the pod of the former orders-2 shuts down"},
		{name: "I6: never that of a member", change: with(policy(schema.VolumesDelete), func(s *situation.Situation) { s.Observed.Volumes = memberVolumes(3) })},
	})
	// What a recovery has put aside is told only where it keeps Git from having its way.
	keeps := with(shrunk, func(s *situation.Situation) { s.Observed.Volumes[0].Keeps = "c0" })
	for _, c := range []struct {
		name   string
		change mutation
		told   bool
	}{
		{"389: Git wants it deleted", with(keeps, policy(schema.VolumesDelete)), true},
		{"389: Git wants it kept", with(keeps, policy(schema.VolumesKeep)), false},
		{"389: there is no record", with(keeps, policy(schema.VolumesDelete), func(s *situation.Situation) { s.Observed.Record = nil }), false},
		{"389: the record is of a cluster that has not formed", with(keeps, policy(schema.VolumesDelete), func(s *situation.Situation) { s.Observed.Record.ClusterID = "" }), false},
	} {
		s := healthy(3)
		c.change(s)
		if told := len(s.Warnings()) > 0; told != c.told {
			t.Errorf("%s: %q", c.name, s.Warnings())
		}
	}
}
