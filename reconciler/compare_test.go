package reconciler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// passUntilApplied makes passes, and nothing else, until what Git says is applied.
func passUntilApplied(w *reconcilertest.World) {
	w.Helper()
	passUntil(w, "what Git says is applied", func() bool {
		v := w.Look()
		return v.Observed.Record.Applied != nil && v.Observed.Record.Applied.SpecHash == v.Desired.SpecHash
	})
}

// passUntil makes passes, and nothing else, until a condition holds after one.
func passUntil(w *reconcilertest.World, what string, holds func() bool) {
	w.Helper()
	for range 300 {
		wait, err := w.Pass()
		if err != nil {
			w.Fatal(err)
		}
		if holds() {
			return
		}
		time.Sleep(wait)
	}
	w.Fatalf("not within 300 passes: %s:\n%s", what, w.Log)
}

// 286: a whole roll compares the members' data once, before the first restart, and one to
// another release once more before its backup and when all run it. A quorate that starts again in the middle
// compares no more often.
func TestARollComparesTheDataOnce(t *testing.T) {
	settings := func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"} }
	for name, c := range map[string]struct {
		from   string
		change func(*schema.EtcdCluster)
		want   int
	}{
		"settings":        {"3.6.12", settings, 1},
		"another release": {"3.6.12", clustertest.SetVersion("3.6.16"), 3},
		"one more member": {"3.6.12", clustertest.SetReplicas(4), 0},
		"a member less":   {"3.6.12", clustertest.SetReplicas(2), 1},
		// These do not compare themselves as they start.
		"settings of 3.5":        {"3.5.33", settings, 3},
		"another release of 3.5": {"3.5.33", clustertest.SetVersion("3.5.35"), 5},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				time.Sleep(time.Hour) // the members have long joined
				deep := w.CountDeep()
				w.Commit(c.change)
				for range 12 {
					if _, err := w.Pass(); err != nil {
						t.Fatal(err)
					}
				}
				w.Restart()
				passUntilApplied(w)
				if *deep != c.want {
					t.Errorf("the data was compared %d times, not %d:\n%s", *deep, c.want, w.Log)
				}
			}, clustertest.SetVersion(c.from))
		})
	}
}

// 421: a leader that hands over for its hash does not hand over to the member that stops
// next: else that one hands it on, all are compared again, and the roll or the removal never
// comes to its end.
func TestAComparisonThatMovesTheLeaderEnds(t *testing.T) {
	for name, c := range map[string]struct {
		from   string
		change func(*schema.EtcdCluster)
	}{
		"a roll in which each restart is compared": {"3.5.33", clustertest.SetVersion("3.5.35")},
		"a removal of two":                         {"3.6.12", clustertest.SetReplicas(1)},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				time.Sleep(time.Hour) // the members have long joined
				w.Etcd.HandsOver = true
				w.Commit(c.change)
				passUntilApplied(w)
				moved := 0
				for _, did := range w.Lines("step done", "action") {
					if strings.HasPrefix(did, "move the leader") {
						moved++
					}
				}
				if moved > 3 {
					t.Errorf("the leader was moved %d times:\n%s", moved, w.Log)
				}
			}, clustertest.SetVersion(c.from))
		})
	}
}

// 422: members are a moment behind after their data was compared. That is asked again in the
// same pass: the next one would have to compare the data once more, after a long wait.
func TestMembersSettleAfterAComparison(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		time.Sleep(time.Hour) // the members have long joined
		members := &slow{Members: w.Etcd, takes: 30 * time.Second}
		w.Ask(members)
		behind := 0
		w.Etcd.Change = func(r *state.Round) {
			switch m := r.Member("orders-0"); {
			case r.Deep:
				behind = 3
			case behind > 0 && m != nil:
				behind--
				m.AppliedIndex--
			}
		}
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"} })
		passUntilApplied(w)
		if n := len(members.ended); n != 1 {
			t.Errorf("the data was compared %d times:\n%s", n, w.Log)
		}
	})
}

// 422: a voter that does not answer as the others are compared, and does a moment later, has
// not been compared: nothing stops before it is.
func TestAVoterThatMissesTheComparisonIsCompared(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		time.Sleep(time.Hour) // the members have long joined
		compared := 0
		w.Etcd.Change = func(r *state.Round) {
			m := r.Member("orders-1")
			if !r.Deep || m == nil || m.Problem != "" {
				return
			}
			if compared++; compared <= 2 {
				m.Problem = "status: deadline exceeded"
			}
		}
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"} })
		uids := w.PodUIDs()
		passUntil(w, "all members are compared", func() bool {
			if compared < 3 && w.PodUIDs() != uids {
				t.Fatalf("a member was restarted after %d comparisons without orders-1:\n%s", compared, w.Log)
			}
			return compared >= 3
		})
		passUntilApplied(w)
	})
}

// 286: where the file takes etcd's own check away, the data is compared before each
// restart.
func TestMembersThatDoNotCheckThemselvesAreComparedBeforeEachRestart(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		deep := w.CountDeep()
		w.Commit(func(c *schema.EtcdCluster) {
			c.Spec.Etcd.Options = map[string]string{"feature-gates": "InitialCorruptCheck=false"}
		})
		passUntilApplied(w)
		if *deep != 3 {
			t.Errorf("the data was compared %d times, not 3", *deep)
		}
	})
}

// 346: a cluster that quorate only observes is told what quorate would do, and its members
// are not stopped to find out.
func TestAClusterThatIsObservedIsNotCompared(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		deep := w.CountDeep()
		w.Commit(func(c *schema.EtcdCluster) {
			c.Spec.Mode = schema.ModeObserve
			c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"}
		})
		w.Running(func(r reconcilertest.Running) { r.Minute() })
		w.WantHold(decision.ObserveOnly, "observe", "quorate would ")
		if *deep != 0 {
			t.Errorf("the data was compared %d times", *deep)
		}
	})
}

// slow are members whose data takes a while to compare.
type slow struct {
	reconciler.Members
	takes time.Duration
	// ended are the times at which a comparison has ended.
	ended []time.Time
}

func (s *slow) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	begun := time.Now()
	if deep {
		time.Sleep(s.takes)
		s.ended = append(s.ended, time.Now())
	}
	r := s.Members.Round(ctx, cluster, members, deep)
	r.At = begun
	return r
}

// 290: under the alarm CORRUPT a comparison that takes longer than an answer counts ends in
// the replacement of the member that differs, and until then the data is compared now and
// then, not all the time.
func TestSlowHashesDoNotKeepACorruptMember(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		members := &slow{Members: w.Etcd, takes: 20 * time.Second}
		w.Ask(members)
		w.Etcd.Change = func(r *state.Round) {
			r.Alarms = []state.Alarm{{Kind: state.Corrupt, MemberID: state.UnknownMember}}
			if m := r.Member("orders-1"); r.Deep && m != nil {
				m.Hash++
			}
		}
		begun := time.Now()
		for w.Record().Leaving == nil {
			wait, err := w.Pass()
			if err != nil {
				t.Fatal(err)
			}
			if time.Since(begun) > 2*time.Hour {
				t.Fatalf("it is never replaced:\n%s", w.Log)
			}
			time.Sleep(wait)
		}
		if l := w.Record().Leaving; l.Member != "orders-1" {
			t.Errorf("%s is replaced", l.Member)
		}
		hashing := time.Duration(len(members.ended)) * members.takes
		if took := time.Since(begun); len(members.ended) < 2 || took > 10*time.Minute && hashing > took/2 {
			t.Errorf("of %s the data was compared for %s", took, hashing)
		}
	})
}

// 290: what cannot be compared holds a roll by its name, and is not tried all the time.
func TestARollWaitsForAComparison(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		deep := 0
		w.Etcd.Change = func(r *state.Round) {
			if r.Deep {
				deep++
				r.Incomparable = "orders-1: hash of its keys: not done in 10s"
			}
		}
		uids := w.PodUIDs()
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"} })
		w.Running(func(r reconcilertest.Running) {
			r.Minute()
			deep = 0
			if r.Minute(); deep == 0 || deep > 3 {
				t.Errorf("the data is compared %d times in a minute", deep)
			}
		})
		if _, why := w.Status(schema.KindCluster, "orders").Phase(); why.Reason != string(decision.Confirm) || !strings.Contains(why.Message, "orders-1: hash of its keys") {
			t.Errorf("it is told as %s: %s", why.Reason, why.Message)
		}
		if w.PodUIDs() != uids {
			t.Error("a member was restarted all the same")
		}
	})
}
