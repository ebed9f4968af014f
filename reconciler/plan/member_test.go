package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

func TestSettled(t *testing.T) {
	rolling := with(commit(newVersion), begun)
	closing := with(youngPods, commit(newVersion), begun, rolled(newVersion, 0, 1, 2), func(s *situation.Situation) { s.Desired.Template = "c" })
	partition := func(p int32) mutation { return func(s *situation.Situation) { s.Observed.Set.Partition = p } }
	unsettled := func(s *situation.Situation) { s.Observed.Set.Settled = false }
	silent := func(i int) mutation {
		return looks(func(r *state.Round) { r.Members[i].Problem = "context deadline exceeded" })
	}
	checkRule(t, settled, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "an unformed cluster is the bootstrap's", change: with(unformed, func(s *situation.Situation) { s.Observed.Set.Settled = false })},
		{name: "67: a change that the controller has not seen", change: func(s *situation.Situation) { s.Observed.Set.Settled = false }, want: "Waiting: the StatefulSet controller has not seen the last change yet"},
		{name: "67: also where it is to let a member go", change: with(rolling, partition(2), unsettled), want: "Waiting: the StatefulSet controller has not seen the last change yet"},
		{name: "I2: which is taken back when another one is down meanwhile", change: with(rolling, partition(2), unsettled, down(0)), want: "start the roll 3.5.35 → 3.6.16: the StatefulSet controller has not let orders-2 go yet, and orders-0 is not well; the partition goes back above all of them"},
		{name: "I2: also by what the members say alone", change: with(rolling, partition(2), unsettled, silent(0)), want: "the StatefulSet controller has not let orders-2 go yet, and orders-0 is not well"},
		{name: "I2: the one that goes is no other", change: with(rolling, partition(2), unsettled, silent(2)), want: "Waiting: the StatefulSet controller has not seen the last change yet"},
		{name: "I2: nor one that is no member", change: with(rolling, partition(2), unsettled, looks(func(r *state.Round) {
			r.Members = append(r.Members, state.Member{ID: "m7", Name: "orders-7", Problem: "context deadline exceeded"})
		})), want: "Waiting: the StatefulSet controller has not seen the last change yet"},
		{name: "I2: without an answer the pods tell", change: with(rolling, partition(2), unsettled, func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "Waiting: the StatefulSet controller has not seen the last change yet"},
		{name: "I2: what Git no longer wants is taken back later", change: with(rolling, partition(2), unsettled, down(0), func(s *situation.Situation) { s.Desired.Template = "c" }), want: "Waiting: the StatefulSet controller has not seen the last change yet"},
		{name: "I2: nor where no member is to go", change: with(rolling, unsettled, silent(0)), want: "Waiting: the StatefulSet controller has not seen the last change yet"},
		{name: "I2: a cluster of two has no quorum without it", size: 2, change: with(rolling, partition(1), unsettled, silent(0)), want: "Waiting: the StatefulSet controller has not seen the last change yet"},
		{name: "43: a learner's pod that is not created is the join's, which has a deadline", change: with(joining("m3", 0), func(s *situation.Situation) { s.Observed.Set.Replicas = 4 })},
		{name: "a roll whose partition is above every pod", change: rolling},
		{name: "a pod that the partition lets go", change: with(rolling, partition(2)), want: "Waiting: the StatefulSet replaces orders-2"},
		{name: "I2: and not while another one is down", change: with(rolling, partition(2), down(0)), want: "the partition is 2 and would let orders-2 go while orders-0 is not well; it goes back above that"},
		{name: "I2: nor while another one shuts down", change: with(rolling, partition(2), func(s *situation.Situation) { podAt(s, 0).Terminating = true }), want: "would let orders-2 go while orders-0 is not well"},
		{name: "a pod of no member may be unwell", change: with(rolling, partition(2), func(s *situation.Situation) {
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{Name: "orders-3", Ordinal: 3})
		}), want: "Waiting: the StatefulSet replaces orders-2"},
		{name: "one that waits for another says for whom", size: 2, change: with(commit(newVersion), begun, rolled(newVersion, 1), partition(0), func(s *situation.Situation) {
			podAt(s, 1).Ready, s.Observed.Set.ChangedAt = false, noon.Add(-time.Hour)
		}), want: "Unhealthy: the StatefulSet replaces orders-0; find out why the pod of orders-1 is not ready: the StatefulSet waits for it first"},
		{name: "one that is not ready itself waits for none", change: with(rolling, partition(2), down(2), func(s *situation.Situation) { s.Observed.Set.ChangedAt = noon.Add(-time.Hour) }), want: "Unhealthy: the StatefulSet replaces orders-2; find out why: `kubectl -n db describe statefulset orders`"},
		{name: "nor does it wait for one below it", change: with(rolling, partition(2), gone(0), func(s *situation.Situation) {
			podAt(s, 0).Ready, s.Observed.Set.ChangedAt = false, noon.Add(-time.Hour)
		}), want: "Unhealthy: the StatefulSet replaces orders-2; find out why: `kubectl -n db describe statefulset orders`"},
		{name: "20: one that was let go for what Git no longer wants", change: with(rolling, partition(2), func(s *situation.Situation) { s.Desired.Template = "c" }), want: "set the StatefulSet's partition to 3: Git no longer wants what orders-2 was let go for"},
		{name: "20: a pod of no member was let go for nothing", change: with(rolling, partition(2), gone(2), func(s *situation.Situation) { s.Desired.Template = "c" })},
		{name: "50: nor is one taken back that another writer has scaled away", change: with(rolling, partition(2), func(s *situation.Situation) { s.Desired.Template, s.Observed.Set.Replicas = "c", 2 })},
		{name: "one that has gone", change: with(rolling, rolled(newVersion, 2), partition(2))},
		{name: "I2: a partition that lets two go", change: with(rolling, partition(1)), want: "start the roll 3.5.35 → 3.6.16: the partition is 1 and would let 2 members go at once"},
		{name: "360: one that lets stale ones go", change: with(rolling, rolled(newVersion, 1, 2), stale(1, 2), partition(1)), want: "the partition is 1 and would let 2 members go at once; it goes back above all of them"},
		{name: "360: also where every pod has the hash", change: with(rolling, rolled(newVersion, 0, 1, 2), stale(1, 2), partition(0)), want: "the partition is 0 and would let 2 members go at once"},
		{name: "360: a stale one was let go for what Git no longer wants", change: with(closing, stale(2), partition(2)), want: "Git no longer wants what orders-2 was let go for"},
		{name: "360: the controller closes no roll with a stale one", change: with(closing, stale(2))},
		{name: "a roll that the controller has not closed, and a new commit", change: closing, want: "Waiting: every pod has the last template; the StatefulSet controller closes that roll first"},
		{name: "I14: not even while the last one only starts", change: with(closing, down(0), func(s *situation.Situation) { podAt(s, 0).Created = noon.Add(-time.Minute) }), want: "Waiting: every pod has the last template"},
		{name: "a broken pod keeps no roll from being given up", change: with(closing, down(1), func(s *situation.Situation) {
			podAt(s, 1).Trouble, podAt(s, 1).Created = "CrashLoopBackOff", noon.Add(-30*time.Second)
		})},
		{name: "I14: whose trouble does not pass within seconds", change: with(closing, down(1), func(s *situation.Situation) {
			podAt(s, 1).Trouble, podAt(s, 1).Created = "CrashLoopBackOff", noon.Add(-29*time.Second)
		}), want: "Waiting: every pod has the last template"},
		{name: "nor does one that never comes", change: with(closing, down(1), func(s *situation.Situation) { podAt(s, 1).Created = noon.Add(-time.Hour) })},
		{name: "a place that nobody has is filled first", change: with(closing, gone(1), pending(1))},
		{name: "the highest, too", change: with(closing, gone(2), pending(2))},
		{name: "319: one that Git does not want waits until the members above it have left", change: with(closing, gone(1), pending(1), func(s *situation.Situation) { s.Desired.Spec.Replicas = 1 })},
		{name: "and its member joins before it is closed", change: with(closing, joining("m3", 0))},
		{name: "nor does a pod of no member keep one from being closed", change: with(closing, func(s *situation.Situation) {
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{Name: "orders-3", Ordinal: 3})
		}), want: "Waiting: every pod has the last template"},
		{name: "a roll that has not reached everybody is not over", change: with(closing, func(s *situation.Situation) {
			s.Observed.Set.CurrentTemplate, s.Observed.Set.Partition, podAt(s, 1).Template = "b", 0, "x"
		}), want: "Git no longer wants what orders-1 was let go for"},
		{name: "a roll that is over, but for its partition, and a new commit", change: with(closing, func(s *situation.Situation) { s.Observed.Set.CurrentTemplate, s.Observed.Set.Partition = "b", 0 }), want: "end the roll: every pod has the last template; the partition goes back above them all before the next roll"},
		{name: "I16: its last member soaks first", change: with(closing, func(s *situation.Situation) {
			s.Observed.Set.CurrentTemplate, s.Observed.Set.Partition, s.Desired.Spec.Upgrade.Soak, podAt(s, 0).ReadySince = "b", 0, seconds(10), noon.Add(-4*time.Second)
		}), want: "Waiting: orders-0 is back and soaks for 10s"},
		{name: "the same with its partition", change: with(closing, func(s *situation.Situation) { s.Observed.Set.CurrentTemplate, s.Observed.Set.Partition = "b", 3 })},
		{name: "a roll that is not over does not close", change: with(commit(newVersion), begun, rolled(newVersion, 2), func(s *situation.Situation) { s.Desired.Template = "c" })},
	})
}

func TestMember(t *testing.T) {
	// back is a member of a roll that was restarted some time ago.
	back := func(age time.Duration, changes ...mutation) mutation {
		return with(commit(newVersion), begun, rolled(newVersion, 2), with(changes...), func(s *situation.Situation) { podAt(s, 2).Created = noon.Add(-age) })
	}
	trouble := func(s *situation.Situation) { podAt(s, 2).Ready, podAt(s, 2).Trouble = false, "etcd: ImagePullBackOff" }
	stopping := func(s *situation.Situation) { podAt(s, 2).Terminating = true }
	checkRule(t, member, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "a finished cluster is the gate's", change: down(1)},
		{name: "an unformed cluster is the bootstrap's", change: unformed},
		{name: "65: a pod that shuts down", change: with(commit(newVersion), func(s *situation.Situation) { podAt(s, 2).Terminating = true }), want: "Waiting: orders-2 is shutting down"},
		{name: "also one with pods", change: with(stopping, func(s *situation.Situation) { s.Observed.Record = &state.Record{} })},
		{name: "65: in a quiet cluster that is the gate's", change: stopping},
		{name: "65: one that was made from another template", change: with(stopping, func(s *situation.Situation) { podAt(s, 0).Template = "x" }), want: "Waiting: orders-2 is shutting down"},
		{name: "65: one while members are to come", change: with(stopping, wanting(5)), want: "Waiting: orders-2 is shutting down"},
		{name: "65: one while a roll is closed", change: with(stopping, func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "x" }), want: "Waiting: orders-2 is shutting down"},
		{name: "a member that is back passes", change: back(time.Minute)},
		{name: "363: a container beside etcd keeps its pod from being ready", change: back(time.Minute, down(2), func(s *situation.Situation) { podAt(s, 2).Beside = "mesh: ImagePullBackOff" }), want: "Waiting: orders-2 starts with etcd 3.6.16: a container beside etcd has trouble (mesh: ImagePullBackOff)"},
		{name: "a pod that is not ready yet", change: back(time.Minute, down(2)), want: "Waiting: orders-2 starts with etcd 3.6.16: its pod is not ready yet"},
		{name: "a member that does not answer yet", change: back(time.Minute, down(2), func(s *situation.Situation) { podAt(s, 2).Ready = true }), want: "Waiting: orders-2 starts with etcd 3.6.16: it does not answer (connection refused)"},
		{name: "a member that is not listed", change: back(time.Minute, func(s *situation.Situation) { s.Observed.Round().Members = s.Observed.Round().Members[:2] }), want: "it is not in the member list"},
		{name: "20: a pod that only starts with what Git no longer wants", change: back(10*time.Second, down(2), func(s *situation.Situation) { s.Desired.Template = "c" }), want: "Waiting: orders-2 starts with etcd 3.6.16: its pod is not ready yet"},
		{name: "20: whether that broke it is known later", change: back(6*time.Minute, down(2), func(s *situation.Situation) { s.Desired.Template = "c" })},
		{name: "20: one that has ceased to be ready does not start", change: back(time.Minute, down(2), func(s *situation.Situation) {
			s.Desired.Template, podAt(s, 2).UnreadySince = "c", noon.Add(-time.Second)
		})},
		{name: "61: a trouble of a moment", change: back(20*time.Second, trouble), want: "Waiting: orders-2 starts with etcd 3.6.16: etcd: ImagePullBackOff"},
		{name: "61: a trouble that lasts stops the roll", change: back(31*time.Second, trouble), want: "Stopped: the roll stopped at orders-2, which does not come back with etcd 3.6.16: etcd: ImagePullBackOff; the other members are left alone; revert the commit"},
		{
			name: "388: one that sounds corrupt with what the roll gave it", change: back(6*time.Minute, damaged(2, state.DamageCorrupt, time.Minute), func(s *situation.Situation) { podAt(s, 2).Trouble = "etcd: wal: crc mismatch" }),
			want: "Stopped: the roll stopped at orders-2, which does not come back with etcd 3.6.16: etcd: wal: crc mismatch; the other members are left alone; revert the commit to go back: it is replaced only if its data is found damaged with what it ran before, too",
		},
		{name: "61: five minutes stop the roll without a trouble", change: back(6*time.Minute, down(2)), want: "Stopped: the roll stopped at orders-2"},
		{
			name: "382: a node that does not report is not mended by a commit", change: back(6*time.Minute, down(2), func(s *situation.Situation) { podAt(s, 2).NodeGone = true }),
			want: "does not come back with etcd 3.6.16: its node does not report; the other members are left alone; bring the node of orders-2 back", lacks: "revert",
		},
		{name: "an old member that is down is the gate's", change: back(time.Minute, down(0))},
		{name: "also one that has only just been created again as it was", change: back(time.Minute, down(0), created(0, 10*time.Second))},
		{name: "a list that cannot be had is not called a list without the member", size: 1, change: with(commit(newVersion), begun, rolled(newVersion, 0), func(s *situation.Situation) {
			podAt(s, 0).Created = noon.Add(-time.Minute)
			*s.Observed.Round() = state.Round{At: noon, Problem: "context deadline exceeded"}
		}), want: "Waiting: orders-0 starts with etcd 3.6.16: the members cannot be listed (context deadline exceeded)"},
	})
}

func TestSoak(t *testing.T) {
	since := func(age time.Duration) mutation {
		return with(commit(newVersion), begun, rolled(newVersion, 2), func(s *situation.Situation) {
			s.Desired.Spec.Upgrade.Soak, podAt(s, 2).ReadySince = seconds(10), noon.Add(-age)
		})
	}
	crashed := func(s *situation.Situation) { podAt(s, 2).Crashed = true }
	checkRule(t, soak, []ruleCase{
		{name: "17: a quiet cluster passes"},
		{name: "a member that is just back", change: since(4 * time.Second), want: "Waiting: orders-2 is back and soaks for 10s"},
		{name: "one that has soaked passes", change: since(10 * time.Second)},
		{name: "no soak passes at once", change: with(since(0), func(s *situation.Situation) { s.Desired.Spec.Upgrade.Soak = nil })},
		{name: "one whose etcd has crashed soaks for a minute", change: with(since(59*time.Second), crashed), want: "Waiting: orders-2 is back after a crash and soaks for 1m0s"},
		{name: "be the soak as short as it may", change: with(since(0), crashed, func(s *situation.Situation) { s.Desired.Spec.Upgrade.Soak = nil }), want: "Waiting: orders-2 is back after a crash and soaks for 1m0s"},
		{name: "and no longer", change: with(since(time.Minute), crashed)},
		{name: "but for as long as Git asks", change: with(since(time.Minute), crashed, func(s *situation.Situation) { s.Desired.Spec.Upgrade.Soak = seconds(90) }), want: "Waiting: orders-2 is back after a crash and soaks for 1m30s"},
		{name: "no member soaks without a roll", change: func(s *situation.Situation) { s.Desired.Spec.Upgrade.Soak, podAt(s, 2).ReadySince = seconds(10), noon }},
		{name: "an old member that has restarted on its own needs none", change: with(since(time.Minute), func(s *situation.Situation) { podAt(s, 0).ReadySince = noon })},
	})
	s := healthy(3)
	since(4 * time.Second)(s)
	if again := soak(s).Hold.Again; again != 6*time.Second {
		t.Errorf("looks again in %s, want the 6s that are left", again)
	}
}
