package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
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
func essence(a Action) string {
	switch a := a.(type) {
	case RecordFormed:
		return fmt.Sprintf("RecordFormed %v", slices.Sorted(maps.Keys(a.Members)))
	case StartRoll:
		return fmt.Sprintf("%s partition %d", a, a.Partition)
	case RestartMember:
		return fmt.Sprintf("%s partition %d by deletion %t", a, a.Partition, a.ByDeletion)
	}
	return a.String()
}

func essences(steps []Step) []string {
	var texts []string
	for _, s := range steps {
		texts = append(texts, essence(s.Action))
	}
	return texts
}

// shown is a plan of a run, and how many steps had
// been carried out before.
type shown struct {
	plan Plan
	done int
}

// run makes passes without faults until nothing is left to do or to wait for,
// and returns what was carried out and every plan that was shown.
func run(t *testing.T, w world) (executed []string, plans []shown) {
	t.Helper()
	for range 400 {
		before := w
		p := Make(w.desired(), w.observed(&before), w.now())
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

// 61: a cluster that could not form is begun anew, and then just forms.
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
		case RestartMember:
			restarts++
		case TakeBackup, MoveLeader:
			t.Fatalf("a cluster that holds nothing needs no %T:\n%s", s.Action, p.Text())
		}
	}
	if restarts > 3 {
		t.Errorf("%d restarts of 3 members:\n%s", restarts, p.Text())
	}
}

// A hold that does not end by itself has nothing behind it.
func TestOnlyAWaitHasAForecast(t *testing.T) {
	for kind, want := range map[HoldKind]bool{
		HoldWaiting: true, HoldConfirm: true, HoldUnhealthy: false, HoldStopped: false, HoldRefused: false, HoldObserve: false,
	} {
		s := healthy(3)
		with(commit(newVersion))(s)
		steps := forecastBehind(table(), newSituation(s.d, s.o, s.now), Hold{Kind: kind})
		if got := len(steps) > 0; got != want {
			t.Errorf("%s: %d steps", kind, len(steps))
		}
	}
	if steps := forecastBehind(table(), healthy(3), Hold{Kind: HoldWaiting}); steps != nil {
		t.Errorf("a quiet cluster has steps: %v", steps)
	}
	gone := healthy(3)
	gone.o.Set, gone.o.Volumes = nil, memberVolumes(3)
	if steps := forecastBehind(table(), gone, Hold{Kind: HoldWaiting}); len(steps) != 1 {
		t.Errorf("a lost StatefulSet has steps: %v", steps)
	}
	s := healthy(3)
	s.o.Set.Immutable = []string{"spec.tls.mode"}
	if steps := forecastBehind(table(), newSituation(s.d, s.o, s.now), Hold{Kind: HoldWaiting}); steps != nil {
		t.Errorf("a refused change has steps: %v", steps)
	}
}

// What a forecast supposes is what an action does, and the situation before it
// stays as it was.
func TestAfterAnAction(t *testing.T) {
	roll := StartRoll{Template: "b", To: newVersion, Partition: 3}
	restarts := RestartMember{Member: "orders-2", Ordinal: 2, Partition: 2, To: newVersion}
	for _, c := range []struct {
		name   string
		before mutation
		action Action
		holds  func(*situation) bool
	}{
		{"a record", func(s *situation) { s.o.Record = nil }, CreateRecord{}, func(s *situation) bool { return s.o.Record != nil && !s.formed() }},
		{"certificates", func(s *situation) { s.o.Certificates.Missing = []string{"orders-ca"} }, IssueCertificates{}, func(s *situation) bool { return s.o.Certificates.Missing == nil }},
		{"wider certificates", func(s *situation) { s.o.Certificates.Narrow = []string{"orders-peer"} }, WidenCertificates{}, func(s *situation) bool { return s.o.Certificates.Narrow == nil }},
		{"an object", func(s *situation) { s.o.Objects[0].State = ObjectMissing }, ApplyObject{"Service", "orders"}, func(s *situation) bool { return s.o.Objects[0].State == ObjectInSync }},
		{"the set", with(unformed, func(s *situation) { s.o.Set = nil }), CreateSet{3}, func(s *situation) bool { return len(s.o.Pods) == 3 && s.unformed(s.o.round()) == "" }},
		{"the IDs", unformed, RecordFormed{ClusterID: "c1"}, func(s *situation) bool { return s.formed() }},
		{"a backup", commit(newVersion), TakeBackup{ClusterID: "c1", For: newVersion}, func(s *situation) bool { return s.hasBackup() }},
		{"the template", commit(newVersion), roll, func(s *situation) bool { return s.started() && s.o.Set.Version == newVersion }},
		{"the leader", nil, MoveLeader{ToID: "m0"}, func(s *situation) bool { return s.o.round().leader().Name == "orders-0" }},
		{"a restart", with(commit(newVersion), begun), restarts, func(s *situation) bool {
			return s.pod(2).Template == "b" && s.pod(2).Version == newVersion && s.o.Set.Partition == 2 && s.pod(1).Template == "a"
		}},
		{"the end", func(s *situation) { s.o.Set.Partition = 0 }, EndRoll{Replicas: 3}, func(s *situation) bool { return s.o.Set.Partition == 3 }},
		{"what was applied", commit(newVersion), RecordApplied{SpecHash: "b"}, func(s *situation) bool { return s.o.Record.Applied.SpecHash == "b" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(3)
			if c.before != nil {
				c.before(s)
			}
			s = newSituation(s.d, s.o, s.now)
			if c.holds(s) {
				t.Fatal("it was so before")
			}
			after := s.after(c.action)
			if !c.holds(after) {
				t.Errorf("after %s: %+v", c.action, after.o)
			}
			if c.holds(s) {
				t.Error("the situation before has changed, too")
			}
		})
	}
}

// Behind a hold that a person must end nobody knows what comes.
func TestForecastEndsAtAPerson(t *testing.T) {
	s := healthy(3)
	done := Step{Action: Nudge{}}
	always := func(v verdict) []rule { return []rule{{"x", func(*situation) verdict { return v }}} }
	for name, c := range map[string]struct {
		says verdict
		want int
	}{
		"nothing is left": {pass(), 1},
		"a person":        {refuse("no", "look"), 1},
		"time":            {wait("soon", time.Time{}), 1},
		"steps":           {do(EndRoll{}, "it is over"), horizon},
	} {
		if steps := forecast(always(c.says), s, done); len(steps)+1 < c.want || (c.want == 1 && len(steps) > 0) {
			t.Errorf("%s: %d steps after the first: %v", name, len(steps), steps)
		}
	}
	behind := 0
	thenSteps := []rule{{"x", func(*situation) verdict {
		if behind++; behind == 1 {
			return refuse("no", "look")
		}
		return do(EndRoll{}, "it is over")
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
	opens, problem := s.opening()
	if problem != "" || !opens.After(noon.Add(time.Hour)) {
		t.Fatalf("the window opens at %s (%s)", opens, problem)
	}
	if at := s.awaited(Hold{Rule: "window", Again: time.Minute}).now; !at.Equal(opens) {
		t.Errorf("the window opens at %s, the forecast goes on at %s", opens, at)
	}
	if at := s.awaited(Hold{Rule: "health", Again: time.Minute}).now; !at.Equal(noon.Add(time.Minute)) {
		t.Errorf("a hold of a minute takes until %s", at)
	}
	if at := healthy(3).awaited(Hold{Rule: "window", Again: time.Minute}).now; !at.Equal(noon.Add(time.Minute)) {
		t.Errorf("where there is no window, time goes on to %s", at)
	}
}
