package page

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/quorate/quorate/schema"
)

// fleetPage shows all objects of one kind.
func fleetPage(v *fleetView) Node {
	return Group{
		Div(
			Data("live", "summary"),
			Nav(Aria("label", "Kinds"), Class("tabs"), Ul(Map(v.Tabs, kindTab))),
			Nav(Aria("label", "States"), Class("states"), Ul(Map(v.Counts, phaseCount))),
			If(v.Problem != "", notice("unknown",
				Strong(Text("The status branches of other Kubernetes clusters are not up to date.")), Text(" "+v.Problem+"."))),
			If(v.Doubted > 0, notice("unknown", Strong(Text(doubtedPlaces(v.Doubted))), Text(" "), A(href("#places"), Text("Why")))),
		),
		fleetFilter(v),
		Div(Data("live", "rows"), fleetRows(v), fleetPaging(v)),
		If(len(v.Places) > 0, placesTable(v)),
	}
}

func kindTab(l link) Node {
	return Li(A(href(l.To), If(l.Here, Aria("current", "page")), Text(l.Text+" "), count(l)))
}

func phaseCount(l link) Node {
	return Li(A(href(l.To), If(l.Here, Aria("current", "true")), phase(l.Phase), Text(" "), count(l)))
}

func count(l link) Node {
	return Span(Class("count"), Text(strconv.Itoa(l.Count)))
}

// doubtedPlaces says that the state of n other Kubernetes clusters is unknown.
func doubtedPlaces(n int) string {
	plural := ""
	if n > 1 {
		plural = "s"
	}
	return fmt.Sprintf("Nothing is known of how the objects of %d other Kubernetes cluster%s are now.", n, plural)
}

// fleetFilter is the form that chooses rows. It keeps the kind and the order.
func fleetFilter(v *fleetView) Node {
	q := v.Query
	return Form(
		Method("get"), Action("/"), Role("search"), Aria("label", "Filter"),
		If(q.Kind != schema.KindCluster, hidden("kind", q.Kind)),
		If(v.Order != "", hidden("sort", v.Order)),
		P(
			Label(For("q"), Text("Text")), Text(" "),
			Input(ID("q"), Name("q"), Type("search"), MaxLength("256"), Value(q.Text)),
		),
		If(len(v.Places) > 0, P(
			Label(For("branch"), Text("Kubernetes cluster")), Text(" "),
			Select(ID("branch"), Name("branch"), Option(Value(""), Text("all")), Map(v.Places, func(p place) Node {
				return Option(Value(p.Branch), If(p.Branch == q.Branch, Selected()), Text(p.Name))
			})),
		)),
		P(
			Label(For("namespace"), Text("Namespace")), Text(" "),
			Input(ID("namespace"), Name("namespace"), Type("text"), MaxLength("63"), Attr("autocapitalize", "none"),
				Attr("spellcheck", "false"), Value(q.Namespace)),
		),
		P(
			Label(For("phase"), Text("State")), Text(" "),
			Select(ID("phase"), Name("phase"), Option(Value(""), Text("all")), Map(v.Phases, func(p schema.Phase) Node {
				return Option(If(p == q.Phase, Selected()), Text(string(p)))
			})),
		),
		P(
			Button(Type("submit"), Text("Filter")),
			If(v.Filtered, Group{Text(" "), A(href(v.All), Text("Show all"))}),
		),
	)
}

func hidden(name, value string) Node {
	return Input(Type("hidden"), Name(name), Value(value))
}

// fleetRows are the rows, or why there are none.
func fleetRows(v *fleetView) Node {
	switch {
	case len(v.Rows) > 0:
		return table(Textf("%d to %d of %d", v.First, v.Last, v.Total), v.Columns, Map(v.Rows, func(r row) Node {
			return Tr(Role("row"), cell("State", phase(r.Phase)), rowHeader(objectLink(r), placeOf(r, v)), fleetCells(r))
		}))
	case v.Total > 0:
		return P(Text("There are no more."))
	case v.Filtered:
		return P(Text("None matches."))
	}
	return P(Text("There are none."))
}

// objectLink leads to the page of an object.
func objectLink(r row) Node {
	return A(href(r.To), Text(r.Metadata.Namespace+"/"+r.Metadata.Name))
}

// placeOf names the Kubernetes cluster of an object where several are shown.
func placeOf(r row, v *fleetView) Node {
	return If(len(v.Places) > 0, Group{Text(" "), muted(Text(cmp.Or(r.Branch, "this one")))})
}

// fleetCells are the cells of an object behind its state and its name, one for each of the
// columns.
func fleetCells(r row) Node {
	says := cell("What quorate says", Text(r.Why.Message))
	switch r.Kind {
	case schema.KindCluster:
		return clusterCells(r, says)
	case schema.KindBackup:
		return Group{cell("Cluster", Text(r.Cluster)), cell("Last backup", timestampOr(r.Backup, "none")), says}
	case schema.KindRestore:
		return Group{cell("Cluster", Text(r.Cluster)), cell("Done", timestampOr(r.Next, "not yet")), says}
	}
	return Group{
		cell("Cluster", Text(r.Cluster)),
		cell("Last backup", timestampOr(r.Backup, "none")),
		cell("Next", timestampOr(r.Next, "not yet")),
		says,
	}
}

// clusterCells are the cells of a cluster. Nothing is known of one that was not reconciled yet.
func clusterCells(r row, says Node) Node {
	unknown := func(column string) Node { return cell(column, Text("unknown")) }
	c := r.Status.Status.Cluster
	if c == nil {
		return Group{
			unknown("Version"), unknown("Members"), unknown("Drift"), says,
			unknown("Next step"), unknown("Last verified backup"), unknown("Window"),
		}
	}
	members := cell("Members", Textf("%d of %d healthy", c.Replicas.Healthy, c.Replicas.Wanted))
	if r.Doubted {
		members = unknown("Members")
	}
	none := "none"
	if r.Doubted {
		none = "unknown"
	}
	return Group{
		cell("Version", Text(versionText(c.Version))),
		members,
		cell("Drift", Text(cmp.Or(driftText(c.Drift), none))),
		says,
		cell("Next step", Text(nextStep(c, none))),
		cell("Last verified backup", timestampOr(r.Backup, "none known")),
		cell("Window", Text(windows(c))),
	}
}

// versionText says which versions the members report, and which is wanted where that differs.
func versionText(v schema.VersionStatus) string {
	switch {
	case v.Lowest == v.Wanted && v.Highest == v.Wanted:
		return v.Wanted
	case v.Lowest == "":
		return "none reported, wanted " + v.Wanted
	}
	return reported(v) + ", wanted " + v.Wanted
}

// driftText names the first two objects that have drifted; "" for none.
func driftText(drift []schema.DriftStatus) string {
	const named = 2
	var names []string
	for _, d := range drift[:min(named, len(drift))] {
		names = append(names, d.Kind+" "+d.State)
	}
	text := strings.Join(names, ", ")
	if more := len(drift) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// nextStep names the first step of the plan, or says none.
func nextStep(c *schema.ClusterStatus, none string) string {
	switch {
	case len(c.Plan) == 0:
		return none
	case c.Hold != nil:
		return "then " + c.Plan[0].Action
	}
	return c.Plan[0].Action
}

// windows are the maintenance windows of a cluster.
func windows(c *schema.ClusterStatus) string {
	if len(c.Maintenance) == 0 {
		return "any time"
	}
	return strings.Join(c.Maintenance, "; ")
}

// fleetPaging leads to the rows before and behind these.
func fleetPaging(v *fleetView) Node {
	if v.Previous == "" && v.Next == "" {
		return nil
	}
	return Nav(Aria("label", "Rows"), Class("paging"), Ul(
		If(v.Previous != "", Li(A(Rel("prev"), href(v.Previous), Text("Previous rows")))),
		If(v.Next != "", Li(A(Rel("next"), href(v.Next), Text("Next rows")))),
	))
}

// placesTable shows the Kubernetes clusters.
func placesTable(v *fleetView) Node {
	caption := Group{
		Text("This one, and those whose daemons write a status branch to the same repository"),
		If(v.Read != "", Group{Text(", as read at "), timestamp(v.Read)}),
	}
	columns := plain("Kubernetes cluster", "Objects", "Last written", "What is known")
	return section("places", Text("Kubernetes clusters"), Data("live", "places"), table(caption, columns, Map(v.Places, placeRow)))
}

func placeRow(p place) Node {
	written := timestampOr(p.Written, "unknown")
	if p.Here {
		written = Text("now")
	}
	known := Text("up to date")
	if p.Doubt != "" {
		known = Group{Strong(Text("Unknown")), Text(": " + p.Doubt)}
	}
	return Tr(
		Role("row"),
		rowHeader(A(href(p.To), Text(p.Name))),
		cell("Objects", Text(strconv.Itoa(p.Objects))),
		cell("Last written", written),
		cell("What is known", known, optional("; ", p.Unread)),
	)
}
