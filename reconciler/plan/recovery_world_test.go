package plan

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/schema"
)

// lossWorld is a lost cluster of three, of which orders-0 is left, small enough
// to walk through every state. Git asks for its recovery for ever.
type lossWorld struct {
	begun, adopted bool
	ended          int8
	replicas, pods int8
	job            RestoreState
	restored       bool
	failures       int8
}

func (w *lossWorld) observe() *situation {
	s := healthy(3)
	with(leftAlone(0), asksFor("c1", "orders-0", ""))(s)
	r := s.o.Record
	if w.begun {
		r.Recovering = &Recovering{
			OneShot: "c1 from member orders-0", ClusterID: "c1", NewClusterID: "c2", NewMemberID: "n0", Member: "orders-0", Revision: 1000, Since: noon,
		}
	}
	if w.ended > 0 {
		r.Recovering, r.Recovered = nil, []Recovered{{OneShot: "c1 from member orders-0", ClusterID: "c1"}}
	}
	s.o.Restore = Restore{State: w.job, Job: "restore"}
	s.o.Set.Replicas = int32(w.replicas)
	for i := int32(2); i >= int32(w.pods); i-- {
		withoutPod(i)(s)
	}
	if w.adopted {
		r.ClusterID, r.Members = "c2", map[string]string{"orders-0": "n0"}
		*s.o.round() = Round{At: noon, ClusterID: "c2", Members: []Member{{ID: "n0", Name: "orders-0", Leader: "n0", Revision: 1000 + RecoveryBump}}}
		if w.pods > 0 {
			s.pod(0).Ready = true
		}
	}
	return s
}

// carryOut does what an action does, and says which invariant that breaks, or "".
func (w *lossWorld) carryOut(a Action) string {
	switch a := a.(type) {
	case BeginRecovery:
		if w.begun || w.ended > 0 {
			return "I13: it begins a second time"
		}
		w.begun = true
	case ResizeSet:
		if a.To > 0 && !w.adopted {
			return "I21: members start while their volume is restored"
		}
		w.replicas = int8(a.To)
	case RestoreVolume:
		if w.pods > 0 || !w.begun {
			return "I21: a volume is restored under a member"
		}
		if w.restored {
			return "I13: a restored volume is restored again"
		}
		w.job = RestoreRunning
	case AdoptRecovery:
		if !w.restored {
			return "I5: the new identity comes before its volume"
		}
		w.adopted = true
	case EndRecovery:
		if !w.adopted || w.pods == 0 {
			return "I8: it is over before anybody looked"
		}
		w.ended++
	default:
		return fmt.Sprintf("I18: nobody asked to %s", a)
	}
	return ""
}

// moves are what may happen without quorate.
func (w lossWorld) moves() []lossWorld {
	var all []lossWorld
	change := func(f func(*lossWorld)) {
		next := w
		f(&next)
		all = append(all, next)
	}
	if w.pods > w.replicas {
		change(func(w *lossWorld) { w.pods-- })
	}
	if w.pods < w.replicas {
		change(func(w *lossWorld) { w.pods++ })
	}
	if w.job == RestoreRunning {
		change(func(w *lossWorld) { w.job, w.restored = RestoreDone, true })
		if w.failures < 2 {
			change(func(w *lossWorld) { w.job, w.failures = RestoreFailed, w.failures+1 })
		}
	}
	if w.job == RestoreFailed { // a person mends the cause and deletes the Job
		change(func(w *lossWorld) { w.job = RestoreNone })
	}
	return all
}

// 121, I13, I18, I21, I24: quorate may die before or after any action, and look at
// any moment. No order of events breaks an invariant, and each ends in a recovery
// that happened exactly once.
func TestEveryStateOfARecovery(t *testing.T) {
	start := lossWorld{replicas: 3, pods: 3}
	seen, queue := map[lossWorld]bool{}, []lossWorld{start}
	ends := 0
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		if seen[w] {
			continue
		}
		seen[w] = true
		next := w.moves()
		v := first([]rule{{"recovering", recovering}, {"recovery", recovery}}, w.observe())
		if v.step != nil && w.ended == 0 {
			after := w
			if broken := after.carryOut(v.step.Action); broken != "" {
				t.Fatalf("%s\nin %+v: %s", broken, w, v.step)
			}
			// It is done, or it was lost on its way: then the next look repeats it.
			next = append(next, after)
		}
		if w.ended > 0 {
			ends++
			if v.step != nil {
				if _, again := v.step.Action.(BeginRecovery); again {
					t.Fatalf("I13: again in %+v", w)
				}
			}
		}
		if len(next) == 0 && w.ended != 1 {
			t.Fatalf("stuck in %+v: %s", w, words(v))
		}
		queue = append(queue, next...)
	}
	if ends == 0 {
		t.Error("no world reaches the end")
	}
	t.Logf("%d states", len(seen))
}

// I18: without a word in Git no state of a loss leads to an action.
func TestNothingIsRecoveredByItself(t *testing.T) {
	for _, answering := range [][]int32{{}, {0}, {1}, {2}} {
		s := healthy(3)
		leftAlone(answering...)(s)
		s.d.Spec.Recovery = schema.RecoverySpec{}
		if p := Make(s.d, s.o, noon); len(p.Steps) > 0 || p.Hold == nil || p.Hold.Rule != "recovery" {
			t.Errorf("%v answer: %s", answering, p.Text())
		}
	}
}
