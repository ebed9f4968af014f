package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// moveOn lets one thing happen in the world that is no fault.
func moveOn(w *world) {
	w.clock++
	if moves := w.moves(nil); len(moves) > 0 && !moves[0].fault() {
		w.apply(moves[0])
	}
}

// essence is an action without what only the real cluster can know, such as the
// ID that it will have.
func essence(a action.Action) string {
	switch a := a.(type) {
	case action.RecordFormed:
		return fmt.Sprintf("RecordFormed %v", slices.Sorted(maps.Keys(a.Members)))
	case action.StartRoll:
		return fmt.Sprintf("%s partition %d", a, a.Partition)
	case action.RestartMember:
		return fmt.Sprintf("%s partition %d by deletion %t", a, a.Partition, a.ByDeletion)
	}
	return a.String()
}

func essences(steps []decision.Step) []string {
	var texts []string
	for _, s := range steps {
		texts = append(texts, essence(s.Action))
	}
	return texts
}

// shown is a plan of a run, and how many steps had
// been applied before.
type shown struct {
	plan decision.Plan
	done int
}

// run makes passes without faults until nothing is left to do or to wait for,
// and returns what was applied and every plan that was shown.
func run(t *testing.T, w world) (executed []string, plans []shown) {
	t.Helper()
	for range 400 {
		before := w
		d, o := w.desired(), w.observed(&before)
		if w.ask.replicas > 2 { // of one or two members the budget keeps every pod in any case
			w.lookAtBudget(d, &o, w.now())
		}
		p := Make(d, o, w.now())
		plans = append(plans, shown{p, len(executed)})
		if p.Idle() {
			return executed, plans
		}
		if p.Hold == nil {
			executed = append(executed, essence(p.Steps[0].Action))
			if broken := w.carryOut(p.Steps[0].Action); broken != "" {
				t.Fatal(broken)
			}
		}
		moveOn(&w)
	}
	t.Fatalf("no end: %s", plans[len(plans)-1].plan.Text())
	return nil, nil
}

// wishes are worlds that have a way to go.
func wishes() map[string]world {
	upgrade := func(n, from, to, leader int8) world {
		w := runningWorld(n, from)
		w.ask.variant, w.leader = to, leader
		return w
	}
	soaking := upgrade(3, 1, 2, 2)
	soaking.ask.soak = 5
	skip := upgrade(3, 1, 2, 2)
	skip.ask.skip = true
	inTheMiddle := upgrade(3, 1, 2, 0)
	inTheMiddle.set.template, inTheMiddle.set.partition, inTheMiddle.record.backup = v36, 2, fakeBackup{there: true, purpose: wordOf("3.6.16")}
	inTheMiddle.pods[2].template = 2
	back := inTheMiddle
	back.ask.variant = 1
	return map[string]world{
		"27: a new cluster of 1":            newWorld(1),
		"28: a new cluster of 3":            newWorld(3),
		"17: nothing to do":                 runningWorld(3, 1),
		"53: a patch up":                    upgrade(3, 4, 1, 2),
		"53: a minor up":                    upgrade(3, 1, 2, 2),
		"53: a minor up of 1":               upgrade(1, 1, 2, 0),
		"64: the leader is in the middle":   upgrade(3, 1, 2, 1),
		"64: the leader is the lowest":      upgrade(3, 1, 2, 0),
		"60: without a backup":              skip,
		"I16: with a soak":                  soaking,
		"65: a roll that was in the middle": inTheMiddle,
		"62: a roll that is given up":       back,
	}
}

// 26: what the first plan shows is what happens, when nothing goes wrong.
func TestForecastIsWhatHappens(t *testing.T) {
	for name, w := range wishes() {
		t.Run(name, func(t *testing.T) {
			executed, plans := run(t, w)
			if want := essences(plans[0].plan.Steps); !slices.Equal(executed, want) {
				t.Errorf("shown    %q\nexecuted %q", want, executed)
			}
		})
	}
}

// 26: every later plan, behind a hold or not, shows what is left to happen.
func TestEveryPlanOfARunShowsTheRest(t *testing.T) {
	for name, w := range wishes() {
		t.Run(name, func(t *testing.T) {
			executed, plans := run(t, w)
			for _, s := range plans {
				if got, want := essences(s.plan.Steps), executed[s.done:]; !slices.Equal(got, want) {
					t.Fatalf("after %d steps\n%sshould show %q", s.done, s.plan.Text(), want)
				}
			}
		})
	}
}

// 61: a cluster that could not form is started over, and then just forms.
func TestForecastOfAReform(t *testing.T) {
	w := newWorld(3)
	w.ask.variant = 3 // an image that does not exist
	for range 30 {
		before := w
		if p := Make(w.desired(), w.observed(&before), w.now()); p.Hold == nil && len(p.Steps) > 0 {
			w.carryOut(p.Steps[0].Action)
		}
		moveOn(&w)
	}
	w.ask.variant = 2
	before := w
	p := Make(w.desired(), w.observed(&before), w.now())
	if len(p.Steps) == 0 {
		t.Fatalf("no steps: %s", p.Text())
	}
	restarts := 0
	for _, s := range p.Steps {
		switch s.Action.(type) {
		case action.RestartMember:
			restarts++
		case action.TakeBackup, action.MoveLeader:
			t.Fatalf("a cluster that holds nothing needs no %T:\n%s", s.Action, p.Text())
		}
	}
	if restarts > 3 {
		t.Errorf("%d restarts of 3 members:\n%s", restarts, p.Text())
	}
}

// A hold that does not end on its own has nothing behind it.
func TestOnlyAWaitHasAForecast(t *testing.T) {
	for kind, want := range map[decision.HoldKind]bool{
		decision.Waiting: true, decision.Confirm: true, decision.Unhealthy: false, decision.Stopped: false, decision.Refused: false, decision.ObserveOnly: false,
	} {
		s := healthy(3)
		with(commit(newVersion))(s)
		steps := forecastBehind(table(), situation.Of(s.Desired, s.Observed, s.Now), decision.Hold{Kind: kind})
		if got := len(steps) > 0; got != want {
			t.Errorf("%s: %d steps", kind, len(steps))
		}
	}
	if steps := forecastBehind(table(), healthy(3), decision.Hold{Kind: decision.Waiting}); steps != nil {
		t.Errorf("a quiet cluster has steps: %v", steps)
	}
	gone := healthy(3)
	gone.Observed.Set, gone.Observed.Volumes = nil, memberVolumes(3)
	if steps := forecastBehind(table(), gone, decision.Hold{Kind: decision.Waiting}); len(steps) != 1 {
		t.Errorf("a lost StatefulSet has steps: %v", steps)
	}
	s := healthy(3)
	s.Observed.Set.Immutable = changesOf("spec.tls.secrets")
	if steps := forecastBehind(table(), situation.Of(s.Desired, s.Observed, s.Now), decision.Hold{Kind: decision.Waiting}); steps != nil {
		t.Errorf("a refused change has steps: %v", steps)
	}
}

// What a forecast supposes is what an action does, and the situation before it
// stays as it was.
func TestAfterAnAction(t *testing.T) {
	roll := action.StartRoll{Template: "b", To: newVersion, Partition: 3}
	restarts := action.RestartMember{Member: "orders-2", Ordinal: 2, Partition: 2, To: newVersion}
	for _, c := range []struct {
		name   string
		before mutation
		action action.Action
		holds  func(*situation.Situation) bool
	}{
		{"a record", func(s *situation.Situation) { s.Observed.Record = nil }, action.CreateRecord{}, func(s *situation.Situation) bool { return s.Observed.Record != nil && !s.Formed() }},
		{"certificates", func(s *situation.Situation) { s.Observed.Certificates.Missing = []string{"orders-ca"} }, action.IssueCertificates{}, func(s *situation.Situation) bool { return s.Observed.Certificates.Missing == nil }},
		{"younger certificates", func(s *situation.Situation) { s.Observed.Certificates.Due = []string{"orders-peer"} }, action.RenewCertificates{}, func(s *situation.Situation) bool { return s.Observed.Certificates.Due == nil }},
		{"wider certificates", func(s *situation.Situation) { s.Observed.Certificates.MissingSANs = []string{"orders-peer"} }, action.ReissueCertificates{}, func(s *situation.Situation) bool { return s.Observed.Certificates.MissingSANs == nil }},
		{"clients' certificates", func(s *situation.Situation) { s.Observed.Certificates.Clients = []state.ClientCertificate{{}} }, action.IssueClientCertificates{}, func(s *situation.Situation) bool { return s.Observed.Certificates.Clients == nil }},
		{"a copy", copied(copyTo("web"), copyTo("lab"), leftIn("web")), action.CopyCertificate{Secret: "orders-client-checkout", Namespace: "web"}, func(s *situation.Situation) bool {
			return len(s.Observed.Certificates.Copies) == 1 && s.Observed.Certificates.Copies[0].Namespace == "lab"
		}},
		{"a copy that goes", copied(leftIn("web")), action.DeleteCopy{Secret: "orders-client-checkout", Namespace: "web"}, func(s *situation.Situation) bool { return len(s.Observed.Certificates.Copies) == 0 }},
		{"what members trust", trusting(func(t *state.Trust) { t.Kept, t.Running, t.Gone = []string{"old"}, []string{"old"}, []string{"new"} }), action.KeepTrust{Secret: "new", Drop: []string{"old"}}, func(s *situation.Situation) bool {
			t := s.Observed.Certificates.Trust
			return slices.Equal(t.Kept, []string{"new"}) && len(t.Gone) == 0 && s.Desired.Trust == "new" && s.Desired.Template != "a"
		}},
		{"an object", func(s *situation.Situation) { s.Observed.Objects[0].State = state.ObjectMissing }, action.ApplyObject{ObjectKind: "Service", Name: "orders"}, func(s *situation.Situation) bool { return s.Observed.Objects[0].State == state.ObjectInSync }},
		{"the set", with(unformed, func(s *situation.Situation) { s.Observed.Set = nil }), action.CreateSet{Replicas: 3}, func(s *situation.Situation) bool {
			return len(s.Observed.Pods) == 3 && s.Unformed(s.Observed.Round()).None()
		}},
		{"the IDs", unformed, action.RecordFormed{ClusterID: "c1"}, func(s *situation.Situation) bool { return s.Formed() }},
		{"a backup", commit(newVersion), action.TakeBackup{ClusterID: "c1", For: state.ForUpgrade(newVersion)}, func(s *situation.Situation) bool { return s.HasBackup() }},
		{"the template", commit(newVersion), roll, func(s *situation.Situation) bool { return s.Started() && s.Observed.Set.Version == newVersion }},
		{"the leader", nil, action.MoveLeader{ToID: "m0"}, func(s *situation.Situation) bool { return s.Observed.Round().Leader().Name == "orders-0" }},
		{"a restart", with(commit(newVersion), begun), restarts, func(s *situation.Situation) bool {
			return podAt(s, 2).Template == "b" && podAt(s, 2).Version == newVersion && s.Observed.Set.Partition == 2 && podAt(s, 1).Template == "a"
		}},
		{"the end", func(s *situation.Situation) { s.Observed.Set.Partition = 0 }, action.EndRoll{Replicas: 3}, func(s *situation.Situation) bool { return s.Observed.Set.Partition == 3 }},
		{"what was applied", commit(newVersion), action.RecordApplied{SpecHash: "b"}, func(s *situation.Situation) bool { return s.Observed.Record.Applied.SpecHash == "b" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(3)
			if c.before != nil {
				c.before(s)
			}
			s = situation.Of(s.Desired, s.Observed, s.Now)
			if c.holds(s) {
				t.Fatal("it was so before")
			}
			after := after(s, c.action)
			if !c.holds(after) {
				t.Errorf("after %s: %+v", c.action, after.Observed)
			}
			if c.holds(s) {
				t.Error("the situation before has changed, too")
			}
		})
	}
}

// Behind a hold that a person must end, what comes is unknown.
func TestForecastEndsAtAPerson(t *testing.T) {
	s := healthy(3)
	done := decision.Step{Action: action.ForceSnapshot{}}
	always := func(v verdict.Verdict) []rule {
		return []rule{{"x", func(*situation.Situation) verdict.Verdict { return v }}}
	}
	for name, c := range map[string]struct {
		says verdict.Verdict
		want int
	}{
		"nothing is left": {verdict.Pass(), 1},
		"a person":        {verdict.Refuse("no", "look"), 1},
		"time":            {verdict.WaitUntil("soon", time.Time{}), 1},
		"steps":           {verdict.Do(action.EndRoll{}, "it is over"), horizon},
	} {
		if steps := forecast(always(c.says), s, done); len(steps)+1 < c.want || (c.want == 1 && len(steps) > 0) {
			t.Errorf("%s: %d steps after the first: %v", name, len(steps), steps)
		}
	}
	behind := 0
	thenSteps := []rule{{"x", func(*situation.Situation) verdict.Verdict {
		if behind++; behind == 1 {
			return verdict.Refuse("no", "look")
		}
		return verdict.Do(action.EndRoll{}, "it is over")
	}}}
	if steps := forecast(thenSteps, s, done); len(steps) > 0 {
		t.Errorf("behind a hold that a person ends: %v", steps)
	}
}

// A forecast lets the time pass that a hold takes: until the window opens, where it is
// the window that is waited for.
func TestForecastLetsTimePass(t *testing.T) {
	s := healthy(3)
	with(only(windowOf("0 2 * * 6", "1h", "UTC")))(s)
	opens, problem := s.NextOpening()
	if problem != "" || !opens.After(noon.Add(time.Hour)) {
		t.Fatalf("the window opens at %s (%s)", opens, problem)
	}
	if at := awaited(s, decision.Hold{Awaits: decision.AwaitsWindow, Again: time.Minute}).Now; !at.Equal(opens) {
		t.Errorf("the window opens at %s, the forecast goes on at %s", opens, at)
	}
	if at := awaited(s, decision.Hold{Kind: decision.Waiting, Again: time.Minute}).Now; !at.Equal(noon.Add(time.Minute)) {
		t.Errorf("a hold of a minute takes until %s", at)
	}
	if at := awaited(healthy(3), decision.Hold{Awaits: decision.AwaitsWindow, Again: time.Minute}).Now; !at.Equal(noon.Add(time.Minute)) {
		t.Errorf("where there is no window, time goes on to %s", at)
	}
}
