package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// plansFor are printed plans of one cluster.
func plansFor(t *testing.T, p plan.Plan) []clusterPlan {
	t.Helper()
	set := parseFiles(map[string]string{"orders.yaml": clusterFile("orders", "3.6.16")})
	if len(set.Clusters) != 1 {
		t.Fatal(set.Problems)
	}
	return []clusterPlan{describePlan(reconciler.Cluster{EtcdCluster: set.Clusters[0].EtcdCluster}, p)}
}

func duePlan() plan.Plan {
	return plan.Plan{
		Hold: &plan.Hold{Kind: plan.HoldUnhealthy, Rule: "health", Message: "orders-1 does not answer", Do: "look at it"},
		Steps: []plan.Step{
			{Action: plan.StartRoll{From: "3.6.12", To: "3.6.16"}, Reason: "because"},
			{Action: plan.RestartMember{Member: "orders-2", From: "3.6.12", To: "3.6.16"}, Reason: "its turn"},
		},
		Warnings: []string{"3.6.16 is young"},
	}
}

// The exit status: 0 nothing to do, 2 something, 1 an error, even with steps.
func TestPlanExitStatus(t *testing.T) {
	bad := schema.Set{Problems: []schema.Problem{{File: "bad.yaml", Message: "no"}}}
	warned := schema.Set{Problems: []schema.Problem{{File: "bad.yaml", Message: "hm", Warning: true}}}
	for name, test := range map[string]struct {
		set  schema.Set
		plan plan.Plan
		want int
	}{
		"nothing to do": {schema.Set{}, plan.Plan{}, 0}, "steps": {schema.Set{}, duePlan(), 2},
		"only a hold":  {schema.Set{}, plan.Plan{Hold: &plan.Hold{Kind: plan.HoldRefused}}, 2},
		"a bad file":   {bad, plan.Plan{}, 1},
		"both":         {bad, duePlan(), 1},
		"only warning": {warned, plan.Plan{}, 0},
	} {
		for _, output := range []string{"text", "json"} {
			err := (&planFlags{output: output}).print(&bytes.Buffer{}, test.set, plansFor(t, test.plan))
			var status exitError
			if got := errors.As(err, &status); got != (test.want != 0) || int(status) != test.want {
				t.Errorf("%s as %s: %v, want status %d", name, output, err, test.want)
			}
		}
	}
}

func TestPlanAsText(t *testing.T) {
	var out bytes.Buffer
	_ = (&planFlags{output: "text"}).print(&out, schema.Set{}, plansFor(t, duePlan()))
	want := `shop/orders
  warning: 3.6.16 is young
  hold (Unhealthy): orders-1 does not answer; look at it
   1. start the roll 3.6.12 → 3.6.16: because
   2. restart orders-2 3.6.12 → 3.6.16: its turn
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestPlanAsJSON(t *testing.T) {
	var out bytes.Buffer
	_ = (&planFlags{output: "json"}).print(&out, schema.Set{}, plansFor(t, duePlan()))
	var got []struct {
		Cluster, Version string
		Hold             struct{ Kind, Rule, Message, Do string }
		Steps            []struct {
			Action, Reason string
			Disruptive     bool
		}
		Warnings []string
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 1 {
		t.Fatalf("%v of %s", err, &out)
	}
	p := got[0]
	if p.Cluster != "shop/orders" || p.Version != "3.6.16" || p.Hold.Kind != "Unhealthy" || p.Hold.Rule != "health" || p.Hold.Do != "look at it" ||
		len(p.Steps) != 2 || p.Steps[0].Disruptive || !p.Steps[1].Disruptive || p.Steps[1].Reason != "its turn" || len(p.Warnings) != 1 {
		t.Errorf("%+v", p)
	}
	out.Reset()
	_ = (&planFlags{output: "json"}).print(&out, schema.Set{}, nil)
	if strings.TrimSpace(out.String()) != "[]" {
		t.Errorf("no clusters are %s", &out)
	}
	out.Reset()
	_ = (&planFlags{output: "json"}).print(&out, schema.Set{}, plansFor(t, plan.Plan{}))
	if !strings.Contains(out.String(), `"steps": []`) || strings.Contains(out.String(), "hold") {
		t.Errorf("nothing to do is %s", &out)
	}
}

func TestExitStatusOfExecute(t *testing.T) {
	var out, problems bytes.Buffer
	if s := execute(t.Context(), []string{"version"}, &out, &problems); s != 0 || !strings.HasPrefix(out.String(), "quorate ") || problems.Len() > 0 {
		t.Errorf("status %d, %q, %q", s, &out, &problems)
	}
	if s := execute(t.Context(), []string{"validate", "/nowhere"}, &out, &problems); s != 1 || !strings.HasPrefix(problems.String(), "quorate: ") {
		t.Errorf("status %d, %q", s, &problems)
	}
	if text := exitError(2).Error(); text != "exit status 2" {
		t.Errorf("%q", text)
	}
}
