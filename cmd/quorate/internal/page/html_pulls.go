package page

import (
	"cmp"
	"strconv"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/schema"
)

// pullsPage shows what the open pull requests would do.
func pullsPage(pulls []api.Pull) Node {
	return Div(
		Data("live", "pulls"),
		P(Text("What open pull requests would do to the live clusters. Nothing of it is applied before it is merged.")),
		Map(pulls, pullRequest),
		If(len(pulls) == 0, P(
			Text("None is known that changes files which quorate reads. They are planned with "),
			Code(Text("--pull-requests")), Text("."),
		)),
	)
}

func pullRequest(pull api.Pull) Node {
	number, r := strconv.Itoa(pull.Number), pull.Report
	return section("pull-"+number, Text("Pull request "+number), Class("card"),
		P(Text(r.Summary.Line()+". Head "), Code(Text(pull.Head)), Text(", planned "), timestamp(pull.Planned), Text(".")),
		If(len(r.Problems) > 0, Group{
			H3(Text("Problems")),
			Ul(Map(r.Problems, func(p schema.Problem) Node { return Li(Code(Text(p.String()))) })),
		}),
		Map(r.Clusters, clusterPlan),
		If(len(r.Others) > 0, Group{
			H3(Text("Other objects")),
			Ul(Map(r.Others, func(o preview.ObjectReport) Node { return Li(Text(o.String())) })),
		}),
	)
}

// clusterPlan is the plan of one cluster.
func clusterPlan(c preview.ClusterReport) Node {
	return Group{
		H3(Text(c.Namespace + "/" + c.Name + ": " + string(c.Change))),
		If(len(c.Changes) > 0, Ul(Map(c.Changes, func(f preview.FieldChange) Node {
			return Li(Code(Text(f.Field)), Text(": "+cmp.Or(f.From, "(none)")+" → "+cmp.Or(f.To, "(none)")))
		}))),
		Map(c.Warnings, func(warning string) Node {
			return P(Strong(Text("Warning:")), Text(" "+warning))
		}),
		hold(c.Hold),
		If(len(c.Steps) > 0, Ol(Map(c.Steps, func(s preview.StepReport) Node { return step(s.Action, s.Reason, s.Undo) }))),
		If(c.Disruption != "", P(Text(c.Disruption))),
	}
}

// hold says why the first step is not taken now; nothing where it may be.
func hold(h *preview.HoldReport) Node {
	if h == nil {
		return nil
	}
	return P(Strong(Text("Held")), Text(" by the rule "), Code(Text(h.Rule)), Text(": "+h.Message), optional("; ", h.Do))
}
