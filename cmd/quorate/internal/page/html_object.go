package page

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/schema"
)

// objectPage shows one object.
func objectPage(v *objectView) Node {
	c := v.Status.Status.Cluster
	return Div(
		Data("live", "object"),
		section("state", Group{Text(v.Kind + ": "), phase(v.Phase)}, Class("card "+strings.ToLower(string(v.Phase))),
			P(Text(v.Says)),
			Iff(c != nil, func() Node { return whatToDo(c.Hold) }),
		),
		section("facts", Text("At a glance"), facts(v)),
		Iff(c != nil, func() Node { return rollout(c.Rollout) }),
		If(v.Kind == schema.KindCluster, Div(
			Class("beside"),
			Iff(c != nil, func() Node { return whatComes(v, c) }),
			whatWasDone(v),
		)),
		Iff(c != nil, func() Node {
			return Group{members(v), drift(v, c.Drift)}
		}),
		section("backups", Text("Backups and drills"), timeline(v.Timeline)),
		If(v.Kind == schema.KindCluster, events(v)),
		related(v.Related),
	)
}

// whatToDo says how a hold ends; nothing without one.
func whatToDo(h *schema.HoldStatus) Node {
	if h == nil {
		return nil
	}
	return Group{
		If(h.Do != "", P(Strong(Text("What to do:")), Text(" "+h.Do))),
		P(Text("Held by the rule "), Code(Text(h.Rule)), Text(" ("+h.Kind+").")),
	}
}

func facts(v *objectView) Node {
	s := v.Status.Status
	return Dl(
		If(v.Branch != "", fact("Kubernetes cluster", Text("that of the status branch "), Code(Text(v.Branch)),
			Text(", as its daemon wrote at "), timestamp(v.Written))),
		Iff(s.Cluster != nil, func() Node { return clusterFacts(v, s.Cluster) }),
		If(v.Cluster != "", fact("Cluster", Text(v.Cluster))),
		Iff(s.Restore != nil, func() Node {
			return Group{
				fact("Source", Text(s.Restore.Source)),
				If(s.Restore.Backup != "", fact("Backup", Text(s.Restore.Backup))),
			}
		}),
		If(v.Commit.Hash != "", fact("Commit", Code(Text(v.Commit.Hash)),
			If(v.Commit.Subject != "", Text(" "+v.Commit.Subject+", by "+v.Commit.Author)))),
		acceptance(s.Accepted),
	)
}

func clusterFacts(v *objectView, c *schema.ClusterStatus) Node {
	health := fmt.Sprintf("%d healthy", c.Replicas.Healthy)
	if v.Doubted {
		health = "health unknown"
	}
	return Group{
		fact("Wanted version", Text(c.Version.Wanted)),
		fact("Reported version", Text(cmp.Or(v.Reported, "none"))),
		fact("Members", Textf("%d wanted, %d voters, %s", c.Replicas.Wanted, c.Replicas.Members, health)),
		fact("Maintenance windows", Text(windows(c))),
	}
}

// rollout shows how far a rollout is; nothing without one.
func rollout(r *schema.RolloutStatus) Node {
	if r == nil {
		return nil
	}
	done := fmt.Sprintf("%d of %d", r.Done, r.Members)
	return section("rollout", Text("Rollout"), P(
		Progress(Aria("labelledby", "rollout"), Max(decimal(r.Members)), Value(decimal(r.Done)), Text(done)),
		Text(" "+done+" members run what Git says"),
	))
}

func decimal[T int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// whatComes shows the plan of a cluster, and what it is warned of.
func whatComes(v *objectView, c *schema.ClusterStatus) Node {
	heading := "What comes next"
	if c.Hold != nil {
		heading = "What comes when the hold ends"
	}
	return section("plan", Text(heading),
		planSteps(v, c),
		If(len(c.Warnings) > 0, Group{H3(Text("Warnings")), bullets(c.Warnings)}),
	)
}

// planSteps are the steps of the plan, or why there are none.
func planSteps(v *objectView, c *schema.ClusterStatus) Node {
	switch {
	case len(c.Plan) > 0:
		return Ol(Map(c.Plan, func(s schema.StepStatus) Node { return step(s.Action, s.Reason, s.Undo) }))
	case v.Doubted:
		return P(Text("Nothing: no step was known when this was written."))
	case c.Hold != nil:
		return P(Text("Nothing: no step can be foreseen."))
	}
	return P(Text("Nothing: the cluster is what Git says."))
}

// whatWasDone shows quorate's own Events about a cluster.
func whatWasDone(v *objectView) Node {
	source := "From quorate's own Events, which Kubernetes keeps for an hour unless its API server was told otherwise."
	if v.Branch != "" {
		source = "The page there shows it."
	}
	var done Node
	switch {
	case v.NoEvents != "":
		done = P(Text("It is not known: " + v.NoEvents + "."))
	case len(v.Happened.Done) > 0:
		done = Ol(Class("timeline"), Map(v.Happened.Done, func(e api.Event) Node {
			return timelineItem(e.Warning, e.Time, eventText(e))
		}))
	default:
		done = P(Text("Nothing that Kubernetes still knows of."))
	}
	return section("done", Text("What was done"), done, P(Class("sum"), Text(source)))
}

// timelineItem is an item of a timeline. A person should look at a bad one.
func timelineItem(bad bool, at string, content ...Node) Node {
	return Li(If(bad, Class("bad")), timestamp(at), Text(" "), Group(content))
}

// eventText is what an Event says.
func eventText(e api.Event) Node {
	return Group{
		If(e.Warning, Group{Strong(Text("Warning")), Text(" ")}),
		Strong(Text(e.Reason)), Text(" " + e.Message),
		If(e.Count > 1, Textf(" (%d times)", e.Count)),
	}
}

func members(v *objectView) Node {
	if len(v.Members) == 0 {
		return section("members", Text("Members"), P(Text("None is known.")))
	}
	return section("members", Text("Members"), table(
		Text("Members, by name, as the last pass has seen them"),
		plain("Member", "Health", "Role", "Version", "Database", "ID"),
		Map(v.Members, memberRow),
	))
}

func memberRow(m member) Node {
	role := cmp.Or(m.Role, "unknown")
	if m.Leader {
		role = "leader"
	}
	return Tr(
		Role("row"),
		rowHeader(Text(cmp.Or(m.Name, "no name yet"))),
		cell("Health", Span(Class("health "+strings.ToLower(m.Health)), Text(m.Health))),
		cell("Role", Text(role)),
		cell("Version", Text(cmp.Or(m.Version, "unknown"))),
		cell("Database", databaseSize(m.Database)),
		cell("ID", Code(Text(m.ID))),
	)
}

// databaseSize is the size of a member's database in words, and as a bar for those who see it.
func databaseSize(d *database) Node {
	if d == nil {
		return Text("unknown")
	}
	return Group{
		Textf("%s of %s (%d %%), %s in use ", showBytes(d.Size), showBytes(d.Quota), d.Percent, showBytes(d.InUse)),
		Meter(Aria("hidden", "true"), Max(decimal(d.Quota)), Attr("low", decimal(d.Low)), Attr("high", decimal(d.High)),
			Attr("optimum", "0"), Value(decimal(d.Size))),
	}
}

// drift shows the objects that are not what quorate wants of them.
func drift(v *objectView, list []schema.DriftStatus) Node {
	var content Node
	switch {
	case len(list) > 0:
		content = Ul(Map(list, driftedObject))
	case v.Doubted:
		content = P(Text("None was known when this was written."))
	default:
		content = P(Text("Every object is what quorate wants of it."))
	}
	return section("drift", Text("Drift"), content)
}

func driftedObject(d schema.DriftStatus) Node {
	differences := d.Differences()
	return Li(
		Strong(Text(d.Kind+" "+d.Name)), Text(" is "+d.State), changedBy(d.Manager, d.Since), Text("."),
		If(d.Fight != "", Text(" "+d.Fight+".")),
		If(d.Correction != "", Text(" It is put back: "+d.Correction+".")),
		If(len(differences) > 0, Ul(Map(differences, driftedField))),
	)
}

func driftedField(f schema.FieldDrift) Node {
	return Li(
		Code(Text(f.Path)),
		If(f.Live != "" || f.Wanted != "", Group{
			Text(": "), Del(valueOrNone(f.Wanted)), Text(" became "), Ins(valueOrNone(f.Live)),
		}),
		changedBy(f.Manager, f.Since),
	)
}

// changedBy says who has changed something, and when, as far as that is known.
func changedBy(manager, since string) Node {
	return Group{
		If(manager != "", Group{Text(", by "), Code(Text(manager))}),
		If(since != "", Group{Text(", "), timestamp(since)}),
	}
}

func valueOrNone(value string) Node {
	if value == "" {
		return Text("none")
	}
	return Code(Text(value))
}

// timeline shows backups and drills, the newest first.
func timeline(moments []moment) Node {
	if len(moments) == 0 {
		return P(Text("None is known."))
	}
	return Ol(Class("timeline"), Map(moments, func(m moment) Node {
		return timelineItem(m.Bad, m.Time, Text(m.Text), backup(m.Backup))
	}))
}

// backup is what is known of a backup; nothing without one.
func backup(b *schema.BackupStatus) Node {
	if b == nil {
		return nil
	}
	return Group{
		If(b.Size != 0, Text(", "+showBytes(b.Size))),
		If(b.Revision != 0, Text(", revision "+decimal(b.Revision))),
		Br(), Code(Text(b.URL)),
		If(b.SHA256 != "", Group{Text(" "), muted(Text("sha256 "), Code(Text(b.SHA256)))}),
	}
}

// events shows the Events of others about a cluster.
func events(v *objectView) Node {
	if v.NoEvents != "" {
		return section("events", Text("Events"), P(Text("They are not known: "+v.NoEvents+".")))
	}
	list := P(Text("There is none about the StatefulSet, the members' pods and claims, or the Jobs."))
	if len(v.Happened.Events) > 0 {
		list = Ol(Class("timeline"), Map(v.Happened.Events, func(e api.Event) Node {
			return timelineItem(e.Warning, e.Time, Text(e.Kind+" "+e.Name+": "), eventText(e),
				If(e.Source != "", Group{Text(" "), muted(Text("(" + e.Source + ")"))}))
		}))
	}
	return section("events", Text("Events"), list, If(v.Happened.Truncated, P(
		Text("The namespace or the cluster has more Events than are read here: "),
		Code(Text("kubectl -n "+v.Metadata.Namespace+" get events")), Text(" lists all."),
	)))
}

// related shows the other objects of the same cluster; nothing where there are none.
func related(rows []row) Node {
	if len(rows) == 0 {
		return nil
	}
	return section("related", Text("Objects of the same cluster"), Ul(Map(rows, func(r row) Node {
		return Li(phase(r.Phase), Text(" "+r.Kind+" "), objectLink(r), Text(" "+r.Why.Message))
	})))
}
