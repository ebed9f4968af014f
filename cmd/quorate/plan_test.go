package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/schema"
)

// reportOf is a report on one live cluster.
func reportOf(t *testing.T, p decision.Plan, problems ...schema.Problem) *preview.Report {
	t.Helper()
	set := desiredtest.Parse(map[string]string{"orders.yaml": desiredtest.ClusterFile("orders", "3.6.16")})
	if len(set.Clusters) != 1 {
		t.Fatal(set.Problems)
	}
	set.Problems = problems
	report, err := preview.Live(t.Context(), fixedPlan(p), preview.Revision{Set: set}, preview.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// fixedPlan is a planner that has one answer.
type fixedPlan decision.Plan

func (fixedPlan) SetDesired([]desired.Cluster) {}

func (p fixedPlan) Plan(context.Context, desired.Cluster) (decision.Plan, error) {
	return decision.Plan(p), nil
}

func duePlan() decision.Plan {
	return decision.Plan{
		Hold: &decision.Hold{Kind: decision.Unhealthy, Rule: "health", Message: "orders-1 does not answer", Do: "check it"},
		Steps: []decision.Step{
			{Action: action.StartRoll{From: "3.6.12", To: "3.6.16"}, Reason: "because", Undo: action.Undo{Text: "by a revert"}},
			{Action: action.RestartMember{Member: "orders-2", From: "3.6.12", To: "3.6.16"}, Reason: "its turn", Undo: action.Undo{Kind: action.UndoUntil, Text: "by a revert"}},
		},
		Warnings: []situation.Remark{{Text: "3.6.16 is young"}},
	}
}

// The exit status: 0 nothing to do, 2 something, 1 an error, even with steps.
func TestPlanExitStatus(t *testing.T) {
	bad := schema.Problem{File: "bad.yaml", Message: "no"}
	warning := schema.Problem{File: "bad.yaml", Message: "hm", Warning: true}
	other := reportOf(t, decision.Plan{})
	other.Others = []preview.ObjectReport{{Kind: "EtcdBackup", Change: preview.Added}}
	other.Count(0)
	offline := *other
	offline.Offline = true
	for name, test := range map[string]struct {
		report *preview.Report
		want   int
	}{
		"nothing to do":                 {reportOf(t, decision.Plan{}), 0},
		"steps":                         {reportOf(t, duePlan()), 2},
		"only a hold":                   {reportOf(t, decision.Plan{Hold: &decision.Hold{Kind: decision.Refused}}), 2},
		"a bad file":                    {reportOf(t, decision.Plan{}, bad), 1},
		"both":                          {reportOf(t, duePlan(), bad), 1},
		"only a warning":                {reportOf(t, decision.Plan{}, warning), 0},
		"a backup that is never taken":  {other, 0},
		"a backup that is new in Git":   {&offline, 2},
		"no cluster and no other thing": {preview.NewReport(schema.Set{}), 0},
	} {
		for _, format := range []string{"text", "json", "markdown"} {
			o := planOutput{format: format, markdown: preview.MarkdownOptions{Marker: "m", Limit: preview.LeastLimit}}
			err := o.print(&bytes.Buffer{}, test.report)
			var status cli.ExitError
			if got := errors.As(err, &status); got != (test.want != 0) || int(status) != test.want {
				t.Errorf("%s as %s: %v, want status %d", name, format, err, test.want)
			}
		}
	}
}

func TestPlanAsText(t *testing.T) {
	var out bytes.Buffer
	_ = (&planOutput{format: "text"}).print(&out, reportOf(t, duePlan()))
	want := `shop/orders
  warning: 3.6.16 is young
  hold (Unhealthy): orders-1 does not answer; check it
   1. start the roll 3.6.12 → 3.6.16: because
      undo: by a revert
   2. restart orders-2 3.6.12 → 3.6.16: its turn
      undo: by a revert
  1 restart, one at a time, quorum kept
1 cluster changes, 1 held, 1 restart
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

// The JSON is what scripts rely on: its names stay.
func TestPlanAsJSON(t *testing.T) {
	var out bytes.Buffer
	_ = (&planOutput{format: "json"}).print(&out, reportOf(t, duePlan()))
	want := `{
  "offline": false,
  "clusters": [
    {
      "namespace": "shop",
      "name": "orders",
      "change": "changed",
      "version": "3.6.16",
      "changes": [],
      "hold": {
        "kind": "Unhealthy",
        "rule": "health",
        "message": "orders-1 does not answer",
        "do": "check it"
      },
      "steps": [
        {
          "action": "start the roll 3.6.12 → 3.6.16",
          "reason": "because",
          "disruptive": false,
          "undo": "by a revert",
          "kind": "StartRoll",
          "from": "3.6.12",
          "to": "3.6.16",
          "reversibility": "unknown"
        },
        {
          "action": "restart orders-2 3.6.12 → 3.6.16",
          "reason": "its turn",
          "disruptive": true,
          "undo": "by a revert",
          "kind": "RestartMember",
          "member": "orders-2",
          "from": "3.6.12",
          "to": "3.6.16",
          "reversibility": "until-last-member"
        }
      ],
      "disruption": "1 restart, one at a time, quorum kept",
      "restarts": 1,
      "warnings": [
        "3.6.16 is young"
      ],
      "unknown": []
    }
  ],
  "others": [],
  "problems": [],
  "summary": {
    "changing": 1,
    "unchanged": 0,
    "held": 1,
    "restarts": 1,
    "others": 0,
    "errors": 0,
    "warnings": 0
  }
}
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
	out.Reset()
	_ = (&planOutput{format: "json"}).print(&out, preview.NewReport(schema.Set{}))
	for _, list := range []string{`"clusters": []`, `"others": []`, `"problems": []`} {
		if !strings.Contains(out.String(), list) {
			t.Errorf("no %s in %s", list, &out)
		}
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
	if text := cli.ExitError(2).Error(); text != "exit status 2" {
		t.Errorf("%q", text)
	}
}
