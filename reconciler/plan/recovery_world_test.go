package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// lossWorld is a cluster of three that has lost its quorum, of which orders-0 is
// left, small enough to walk through every state. People ask for its recovery, take
// that back, and bring back a member or lose it again.
type lossWorld struct {
	// asked: Git asks for the recovery. whole: the quorum is there. refused: the
	// record says that it stood in Git while that was so.
	asked, whole, refused bool
	// blind: quorate reaches no member. stale: the quorum is lost, and Kubernetes has not
	// noticed yet.
	blind, stale bool
	// backup: what Git asks for is a backup, and not what orders-0 has.
	backup bool

	begun, adopted bool
	ended          int8
	replicas, pods int8
	job            state.RestoreState
	restored       bool
	// low: the restored volume is at the revision that it was saved at.
	low      bool
	failures int8
	// again: the recovered cluster has three members, and has lost two of them, too.
	again bool
}

// oneShot is the recovery that Git asks for.
func (w *lossWorld) oneShot() string {
	if w.backup {
		return "c1 from backup " + backupURL
	}
	return "c1 from member orders-0"
}

func (w *lossWorld) observe() *situation.Situation {
	s := healthy(3)
	if !w.whole {
		leftAlone(0)(s)
	}
	if w.blind {
		unseen(s.Observed.Round())
	}
	for i := range s.Observed.Pods {
		s.Observed.Pods[i].Ready = w.whole || w.stale
	}
	if w.asked {
		asksFor("c1", "orders-0", "")(s)
		if w.backup {
			asksFor("c1", "", backupURL)(s)
		}
	}
	s.Observed.Volumes = []state.Volume{{Claim: "data-orders-0", UID: "claim-0", Member: "orders-0"}}
	r := s.Observed.Record
	if w.begun {
		r.Recovering = &state.Recovering{OneShot: w.oneShot(), ClusterID: "c1", NewClusterID: "c2", NewMemberID: "n0", Member: "orders-0", Revision: 1000, Since: noon}
	}
	if w.refused {
		r.RefusedRecovery = w.oneShot()
	}
	if w.ended > 0 {
		r.Recovering, r.Recovered = nil, []state.Recovered{{OneShot: w.oneShot(), ClusterID: "c1"}}
	}
	if w.again {
		r.ClusterID = "c2"
		return s
	}
	s.Observed.Restore = state.Restore{State: w.job, Job: "restore"}
	s.Observed.Set.Replicas = int32(w.replicas)
	for i := int32(2); i >= int32(w.pods); i-- {
		withoutPod(i)(s)
	}
	if w.adopted {
		w.showRecovered(s)
	}
	return s
}

// showRecovered is the recovered cluster as it is seen.
func (w *lossWorld) showRecovered(s *situation.Situation) {
	m := state.Member{ID: "n0", Name: "orders-0", Leader: "n0", Revision: 1000 + state.RevisionBump}
	if w.low {
		m.Revision = 1000
	}
	s.Observed.Record.ClusterID, s.Observed.Record.Members = "c2", map[string]string{"orders-0": "n0"}
	*s.Observed.Round() = state.Round{At: noon, ClusterID: "c2", Members: []state.Member{m}}
	if w.pods > 0 {
		podAt(s, 0).Ready = true
	}
}

// judge says which invariant an action breaks, or "".
func (w *lossWorld) judge(a action.Action) string {
	switch a := a.(type) {
	case action.BeginRecovery:
		switch {
		case w.ended > 0 || w.begun:
			return "I13: the recovery begins once more"
		case !w.asked || w.whole || w.refused:
			return "I18: a recovery begins that nobody has asked for since the quorum was lost"
		}
	case action.ResizeSet:
		if a.To == 0 && w.whole {
			return "I18: members that have a quorum are stopped"
		}
		if a.To > 0 && !w.adopted {
			return "I21: members start while their volume is restored"
		}
	case action.RestoreVolume:
		switch {
		case !w.begun:
			return "I18: a volume is restored that nobody wants back"
		case w.pods > 0:
			return "I21: a volume is restored under a member"
		case w.restored:
			return "I13: a restored volume is restored once more"
		}
	case action.AdoptRecovery:
		if !w.restored {
			return "I5: the new identity comes before its volume"
		}
	case action.EndRecovery:
		if w.low || !w.adopted || w.pods == 0 {
			return "I8: the recovery is over, and the revisions may have gone back"
		}
	case action.RefuseRecovery:
	default:
		return fmt.Sprintf("I18: nobody asked to %s", a)
	}
	return ""
}

// lossJudged are the invariants that an action is held against.
func lossJudged(a action.Action) invariants {
	switch a.(type) {
	case action.BeginRecovery:
		return those(13, 18)
	case action.ResizeSet:
		return those(18, 21)
	case action.RestoreVolume:
		return those(13, 18, 21)
	case action.AdoptRecovery:
		return those(5)
	case action.EndRecovery:
		return those(8)
	}
	return 0
}

// carryOut does what an action does.
func (w *lossWorld) carryOut(a action.Action) {
	switch a := a.(type) {
	case action.BeginRecovery:
		w.begun = true
	case action.ResizeSet:
		w.replicas = int8(a.To)
	case action.RestoreVolume:
		w.job = state.RestoreRunning
	case action.AdoptRecovery:
		w.adopted = true
	case action.EndRecovery:
		w.ended, w.begun = w.ended+1, false
	case action.RefuseRecovery:
		w.refused, w.begun = a.OneShot != "", false
	}
}

// moves are what may happen without quorate; what people do comes last.
func (w lossWorld) moves() (all []lossWorld, byItself int) {
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
	if w.job == state.RestoreRunning {
		change(func(w *lossWorld) { w.job, w.restored = state.RestoreDone, true })
		change(func(w *lossWorld) { w.job, w.restored, w.low = state.RestoreDone, true, true })
		if w.failures < 2 {
			change(func(w *lossWorld) { w.job, w.failures = state.RestoreFailed, w.failures+1 })
		}
	}
	if w.stale {
		change(func(w *lossWorld) { w.stale = false })
	}
	byItself = len(all)
	if w.job == state.RestoreFailed { // a person mends the cause and deletes the Job
		change(func(w *lossWorld) { w.job = state.RestoreNone })
	}
	if !w.begun && w.ended == 0 {
		change(func(w *lossWorld) { w.whole, w.stale = !w.whole, false })
		change(func(w *lossWorld) { w.blind = !w.blind })
		if w.whole {
			change(func(w *lossWorld) { w.whole, w.stale = false, true })
		}
	}
	if w.begun && w.replicas == 3 {
		change(func(w *lossWorld) { w.whole = true })
	}
	if w.ended > 0 {
		change(func(w *lossWorld) { w.again = true })
	}
	change(func(w *lossWorld) { w.asked = !w.asked })
	return all, byItself
}

// lossWalk goes through every state of a lost quorum and of its recovery.
type lossWalk struct {
	rules        []rule
	states, ends int
	judged       judgments
}

// explore returns the first invariant that is broken, or "".
func (k *lossWalk) explore() string {
	seen, queue := map[lossWorld]bool{}, []lossWorld{{replicas: 3, pods: 3}, {replicas: 3, pods: 3, backup: true}}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		if seen[w] {
			continue
		}
		seen[w] = true
		k.states++
		next, broken := k.successors(w)
		if broken != "" {
			return fmt.Sprintf("%s\nin %+v", broken, w)
		}
		queue = append(queue, next...)
	}
	return ""
}

// successors are the worlds that follow: quorate acts, or what it does is lost,
// and is repeated at its next look.
func (k *lossWalk) successors(w lossWorld) (next []lossWorld, broken string) {
	next, byItself := w.moves()
	v := first(k.rules, w.observe())
	switch {
	case w.ended > 0 && !w.again:
		k.ends++
	case v.Step == nil && !w.whole && byItself == 0 && (v.Hold == nil || !tellsAPerson(v.Hold)):
		return nil, "liveness: nothing goes on, and nobody is told what to do: " + words(v)
	}
	if v.Step == nil {
		return next, ""
	}
	k.judged.note(lossJudged(v.Step.Action))
	broken = w.judge(v.Step.Action)
	w.carryOut(v.Step.Action)
	return append(next, w), broken
}

// lossRules are the rules that a lost quorum is for.
func lossRules() []rule {
	return []rule{{"recovering", recovery.Run}, {"reachable", recovery.Reachable}, {"recovery", recovery.Lost}}
}

// 84, 121, I5, I8, I13, I18, I21, I24: quorate may die before or after any action,
// and look at any moment. No order of events breaks an invariant, and there is
// always somebody who can continue.
func TestEveryReachableStateOfARecovery(t *testing.T) {
	k, took := lossWalk{rules: lossRules()}, stopwatch()
	if broken := k.explore(); broken != "" {
		t.Fatal(broken)
	}
	if k.ends == 0 {
		t.Error("no world reaches the end")
	}
	k.judged.sawAll(t, ofRecovery)
	tellWalk("a quorum lost, and recovered when Git says so", k.states, took(), &tally{judged: k.judged})
}

// onceStopped spoils what is seen once all members are to stop.
func onceStopped(change mutation) mutation {
	return func(s *situation.Situation) {
		if s.Observed.Set.Replicas == 0 {
			change(s)
		}
	}
}

// lossMutants are rules of a recovery with one thing spoilt each.
func lossMutants() []mutant {
	return []mutant{
		{name: "a recovery ends without a look at the revision", breaks: "I8", table: blind("recovering", everyMember(func(m *state.Member) { m.Revision = 9 * state.RevisionBump }))},
		{name: "what was recovered is forgotten, and which cluster it was", breaks: "I13", table: blind("recovery", func(s *situation.Situation) {
			s.Observed.Record.Recovered, s.Observed.Record.ClusterID = nil, "c1"
		})},
		{name: "what was refused is forgotten", breaks: "I18", table: blind("recovery", func(s *situation.Situation) { s.Observed.Record.RefusedRecovery = "" })},
		{name: "a lost quorum is recovered unasked", breaks: "I18", table: blind("recovery", asksFor("c1", "orders-0", ""))},
		{name: "I17: what is ready and out of reach is lost", breaks: "I18", table: blind("reachable", func(s *situation.Situation) { s.Observed.Pods = nil })},
		{name: "a volume is restored before its members are gone", breaks: "I21", table: blind("recovering", onceStopped(func(s *situation.Situation) { s.Observed.Pods = nil }))},
		{name: "the new identity does not wait for its volume", breaks: "I5", table: blind("recovering", onceStopped(func(s *situation.Situation) { s.Observed.Restore.State = state.RestoreDone }))},
		{name: "a failed restore holds, and no person is told", breaks: "liveness", table: speechless},
	}
}

func TestEveryMutantOfARecoveryIsCaught(t *testing.T) {
	for _, m := range lossMutants() {
		t.Run(m.name, func(t *testing.T) {
			k := lossWalk{rules: m.table(lossRules())}
			broken := k.explore()
			caught := strings.HasPrefix(broken, m.breaks+":")
			tellMutant(m.breaks, caught)
			if !caught {
				t.Errorf("%s should break %s: %q", m.name, m.breaks, broken)
			}
		})
	}
}

// I18: without a word in Git no state of a loss leads to an action.
func TestNothingIsRecoveredByItself(t *testing.T) {
	for _, answering := range [][]int32{{}, {0}, {1}, {2}} {
		s := healthy(3)
		leftAlone(answering...)(s)
		s.Desired.Spec.Recovery = schema.RecoverySpec{}
		if p := Make(s.Desired, s.Observed, noon); len(p.Steps) > 0 || p.Hold == nil || p.Hold.Rule != "recovery" {
			t.Errorf("%v answer: %s", answering, p.Text())
		}
	}
}
