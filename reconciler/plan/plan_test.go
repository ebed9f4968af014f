package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Only a restart or a defragmentation stops a member: the daemon's cap on
// disruptive actions counts nothing else.
func TestActions(t *testing.T) {
	for _, c := range []struct {
		action     action.Action
		want       string
		disruptive bool
	}{
		{action.CreateRecord{}, "create the record", false},
		{action.IssueCertificates{}, "issue certificates", false},
		{action.ReissueCertificates{}, "widen certificates", false},
		{action.RenewCertificates{}, "renew certificates", false},
		{action.IssueClientCertificates{}, "issue certificates of clients", false},
		{action.CopyCertificate{Secret: "orders-client-checkout", Namespace: "web"}, "copy orders-client-checkout to namespace web", false},
		{action.DeleteCopy{Secret: "orders-client-checkout", Namespace: "web"}, "delete the copy of orders-client-checkout in namespace web", false},
		{action.MakeAuthorities{}, "make the next authorities", false},
		{action.MoveMember{Member: "orders-0", URLs: []string{"https://a:2380", "https://a:2382"}}, "move orders-0 in the member list to https://a:2380 and https://a:2382", false},
		{action.PublishTrust{Secret: "orders-trust-0a"}, "publish orders-trust-0a", false},
		{action.PublishTrust{Secret: "orders-trust-0a", Bundle: state.BundleBoth}, "publish both authorities", false},
		{action.SwitchCertificates{By: state.ByNext}, "issue all certificates by the next authorities", false},
		{action.SwitchCertificates{By: state.ByPresent}, "issue all certificates by the authorities from before again", false},
		{action.RetireAuthorities{Keep: state.ByNext}, "delete the authorities from before", false},
		{action.RetireAuthorities{Keep: state.ByPresent}, "delete the next authorities", false},
		{action.KeepTrust{Secret: "orders-trust-0a"}, "keep what members trust in orders-trust-0a", false},
		{action.ApplyObject{ObjectKind: "Service", Name: "orders"}, "apply Service orders", false},
		{action.CreateSet{Replicas: 1}, "create 1 member", false},
		{action.CreateSet{Replicas: 3}, "create 3 members", false},
		{action.RecordFormed{ClusterID: "c1"}, "record cluster c1", false},
		{action.TakeBackup{Member: "orders-2"}, "back up through orders-2", false},
		{action.StartRoll{From: oldVersion, To: newVersion}, "start the roll 3.5.35 → 3.6.16", false},
		{action.StartRoll{From: oldVersion, To: oldVersion}, "start the roll on 3.5.35", false},
		{action.MoveLeader{From: "orders-2", To: "orders-0"}, "move the leader orders-2 → orders-0", false},
		{action.RestartMember{Member: "orders-2", From: oldVersion, To: newVersion}, "restart orders-2 3.5.35 → 3.6.16", true},
		{action.EndRoll{}, "end the roll", false},
		{action.Compact{Revision: 7}, "compact the history", false},
		{action.Defragment{Member: "orders-2"}, "defragment orders-2", true},
		{action.GrowVolume{Member: "orders-2", From: 8 << 30, To: 16 << 30}, "grow the volume of orders-2 8Gi → 16Gi", false},
		{action.ReleaseSet{}, "release the pods from the StatefulSet", false},
		{action.Disarm{Alarm: state.NoSpace, MemberID: "m1"}, "disarm NOSPACE on member m1", false},
		{action.ForceSnapshot{}, "add to the log", false},
		{action.RecordFlushed{Members: map[string]string{"orders-0": "m0"}}, "record that every member has saved its state", false},
		{action.RecordFlushed{BornOn: "3.5"}, "record that the members' logs hold entries of 3.5", false},
		{action.EnableDowngrade{From: "3.7", To: "3.6"}, "enable the downgrade 3.7 → 3.6", false},
		{action.CancelDowngrade{Minor: "3.6"}, "cancel the downgrade to 3.6", false},
		{action.RecordApplied{Version: newVersion}, "record that 3.6.16 is applied", false},
	} {
		if got := c.action.String(); got != c.want || c.action.Disruptive() != c.disruptive {
			t.Errorf("%T: %q, disruptive %t; want %q, %t", c.action, got, c.action.Disruptive(), c.want, c.disruptive)
		}
	}
}

func TestTextOfAPlan(t *testing.T) {
	step := decision.Step{Action: action.EndRoll{}, Reason: "it is over"}
	for _, c := range []struct {
		name, want string
		plan       decision.Plan
		idle       bool
	}{
		{"17: nothing", "nothing to do\n", decision.Plan{}, true},
		{"a step", " 1. end the roll: it is over\n", decision.Plan{Steps: []decision.Step{step}}, false},
		{"a hold that ends by itself", "hold (Waiting): a pod starts\n 1. end the roll: it is over\n", decision.Plan{Hold: &decision.Hold{Kind: decision.Waiting, Message: "a pod starts"}, Steps: []decision.Step{step}}, false},
		{"a hold with something to do", "hold (Refused): no way; revert\n", decision.Plan{Hold: &decision.Hold{Kind: decision.Refused, Message: "no way", Do: "revert"}}, false},
		{"a warning alone does not make it busy", "warning: old\n", decision.Plan{Warnings: []situation.Remark{{Text: "old"}}}, true},
	} {
		if got := c.plan.Text(); got != c.want || c.plan.Idle() != c.idle {
			t.Errorf("%s: %q, idle %t", c.name, got, c.plan.Idle())
		}
	}
}

func TestObserveHoldsOnlyWhatWouldBeDone(t *testing.T) {
	for _, c := range []struct {
		name   string
		change mutation
		want   decision.HoldKind
	}{
		{"nothing to do", func(*situation.Situation) {}, ""},
		{"something to do", commit(newVersion), decision.ObserveOnly},
		{"a hold stays what it is", with(commit(newVersion), down(0)), decision.Unhealthy},
		{"a hold with steps behind it, too", with(commit(newVersion), oneLook), decision.Confirm},
	} {
		s := healthy(3)
		c.change(s)
		s.Desired.Spec.Mode = schema.ModeObserve
		got := decision.HoldKind("")
		if p := Make(s.Desired, s.Observed, noon); p.Hold != nil {
			got = p.Hold.Kind
		}
		if got != c.want {
			t.Errorf("%s: hold %q, want %q", c.name, got, c.want)
		}
	}
}

// A hold says which rule holds, what is awaited and when to look again.
func TestAHoldNamesItsRule(t *testing.T) {
	s := healthy(3)
	down(1)(s)
	h := Make(s.Desired, s.Observed, noon).Hold
	if h == nil || h.Rule != "health" || h.Again <= 0 || !strings.Contains(h.String(), "check the member named here") {
		t.Errorf("hold %+v", h)
	}
}

// strange are the changes that the walk below puts on top of each other, in any
// order: what the API server or etcd may tell in a bad moment.
func strange() map[string]mutation {
	each := func(f func(*state.Pod)) mutation {
		return func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				f(&s.Observed.Pods[i])
			}
		}
	}
	look := func(f func(*state.Round)) mutation {
		return func(s *situation.Situation) {
			for i := range s.Observed.Rounds {
				f(&s.Observed.Rounds[i])
			}
		}
	}
	set := func(f mutation) mutation {
		return func(s *situation.Situation) {
			if s.Observed.Set != nil {
				f(s)
			}
		}
	}
	recorded := func(f mutation) mutation {
		return func(s *situation.Situation) {
			if s.Observed.Record != nil {
				f(s)
			}
		}
	}
	return map[string]mutation{
		"commit": commit(newVersion), "settings": commit(oldVersion), "old": commit("3.4.45"),
		"other":           func(s *situation.Situation) { s.Desired.Template, s.Desired.SpecHash = "c", "c" },
		"skip":            func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip },
		"soak":            func(s *situation.Situation) { s.Desired.Spec.Upgrade.Soak = seconds(7200) },
		"scale":           func(s *situation.Situation) { s.Desired.Spec.Replicas++ },
		"begun":           set(begun),
		"loose":           set(func(s *situation.Situation) { s.Observed.Set.Partition = 0 }),
		"unknown current": set(func(s *situation.Situation) { s.Observed.Set.CurrentTemplate, s.Observed.Set.CurrentVersion = "", "" }),
		"no set":          func(s *situation.Situation) { s.Observed.Set = nil }, "no pods": func(s *situation.Situation) { s.Observed.Pods = nil },
		"no record": func(s *situation.Situation) { s.Observed.Record = nil }, "unformed": func(s *situation.Situation) { s.Observed.Record = &state.Record{} },
		"no rounds":  func(s *situation.Situation) { s.Observed.Rounds = nil },
		"no answer":  look(func(r *state.Round) { *r = state.Round{At: r.At, Problem: "timeout"} }),
		"no version": look(func(r *state.Round) { r.ClusterVersion = "" }),
		"no leader": look(func(r *state.Round) {
			for i := range r.Members {
				r.Members[i].Leader = ""
			}
		}),
		"no members": look(func(r *state.Round) { r.Members = nil }),
		"trouble":    each(func(p *state.Pod) { p.Ready, p.Trouble = false, "CrashLoopBackOff" }),
		"never ran":  each(func(p *state.Pod) { p.Ready, p.Ran, p.Trouble = false, false, "ImagePullBackOff" }),
		"first rolled": func(s *situation.Situation) {
			if len(s.Observed.Pods) > 0 {
				s.Observed.Pods[0].Template, s.Observed.Pods[0].Version = "b", newVersion
			}
		},
		"last broken": func(s *situation.Situation) {
			if i := len(s.Observed.Pods) - 1; i >= 0 {
				s.Observed.Pods[i].Template, s.Observed.Pods[i].Ready, s.Observed.Pods[i].Ran, s.Observed.Pods[i].Trouble = "x", false, false, "ImagePullBackOff"
			}
		},
		"backed up":       recorded(backedUp(time.Minute)),
		"nothing applied": recorded(func(s *situation.Situation) { s.Observed.Record.Applied = nil }),
	}
}

// 19 161: whatever is observed, Make gives an answer, the same one twice, that
// keeps the contract of the package.
func TestMakeAnswersAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Range(1, 3).Draw(t, "members")
		s, odd := healthy(n), strange()
		names := slices.Sorted(maps.Keys(odd))
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "changes") {
			odd[name](s)
		}
		p := Make(s.Desired, s.Observed, noon)
		if again := Make(s.Desired, s.Observed, noon).Text(); again != p.Text() {
			t.Fatalf("first\n%s\nthen\n%s", p.Text(), again)
		}
		if h := p.Hold; h != nil && (h.Rule == "" || h.Message == "" || h.Again < 0) {
			t.Fatalf("a hold that does not say why: %+v", *h)
		}
		for _, step := range p.Steps {
			if step.Action == nil || step.Reason == "" {
				t.Fatalf("a step that does not say why: %+v", step)
			}
		}
		if problem := decidesOtherwise(s.Desired, s.Observed, p); problem != "" {
			t.Fatal(problem)
		}
	})
}

// decidesOtherwise says how Decide differs from the beginning of a plan, or "".
func decidesOtherwise(d state.Desired, o state.Observed, p decision.Plan) string {
	p.Warnings, p.Steps = nil, p.Steps[:min(1, len(p.Steps))]
	if p.Hold != nil && p.Hold.Kind != decision.ObserveOnly {
		p.Steps = nil // a forecast
	}
	if got := Decide(d, o, noon); !reflect.DeepEqual(got, p) {
		return fmt.Sprintf("Decide says\n%sand the plan begins with\n%s", got.Text(), p.Text())
	}
	return ""
}

// What was never seen yet has no answers, and is no reason to panic.
func TestNothingSeenYet(t *testing.T) {
	var r *state.Round
	if r.ByID("m0") != nil || r.Leader() != nil || r.Member("orders-0") != nil {
		t.Error("a round that never was has members")
	}
	named := state.Round{Members: []state.Member{{Name: "orders-0"}}}
	if named.ByID("") != nil || named.Leader() != nil {
		t.Error("a member whose ID is unknown is found by none, or leads")
	}
	var record *state.Record
	if since := record.DowngradeSince(); !since.IsZero() {
		t.Errorf("no record knows a downgrade since %s", since)
	}
	if since := (&state.Record{}).DowngradeSince(); !since.IsZero() {
		t.Errorf("no downgrade is known since %s", since)
	}
	if founders := (&situation.Situation{Desired: state.Desired{Spec: healthy(5).Desired.Spec}}).Founders(); founders != 5 {
		t.Errorf("before there is a record a cluster begins with %d members", founders)
	}
}
