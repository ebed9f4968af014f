package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/markdown"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// LeastLimit is the smallest size of a part in bytes: one line, however long,
// fits in with what stands around it.
const LeastLimit = 16384

// MarkdownOptions are how a comment is cut.
type MarkdownOptions struct {
	// Marker is the name in the comment's first line, by which a bot finds what it
	// wrote before: "<!-- quorate-plan part 1 -->". Part n keeps its marker however
	// many parts there are.
	Marker string
	// Limit is the largest size of a part in bytes, at least LeastLimit.
	Limit int
}

// Mark is the first line of part n, counted from 1.
func (o MarkdownOptions) Mark(n int) string { return fmt.Sprintf("<!-- %s part %d -->", o.Marker, n) }

// Markdown is the report as comments for a pull request, one a part. What comes
// from files is escaped, so that it breaks no table and mentions no user.
func (r *Report) Markdown(o MarkdownOptions) []string {
	const around = 200 // the marker, the title and the part's number
	room := o.Limit - around - len(o.Marker) - len(r.title())
	var bodies []string
	for _, b := range r.blocks() {
		text := b.render(room)
		if last := len(bodies) - 1; last >= 0 && len(bodies[last])+len(text)+1 <= room {
			bodies[last] += "\n" + text
		} else {
			bodies = append(bodies, text)
		}
	}
	for i, body := range bodies {
		part := ""
		if len(bodies) > 1 {
			part = fmt.Sprintf(" · part %d of %d", i+1, len(bodies))
		}
		bodies[i] = fmt.Sprintf("%s\n%s%s\n\n%s", o.Mark(i+1), r.title(), part, body)
	}
	return bodies
}

// title is the summary line that each part begins with.
func (r *Report) title() string {
	text := "**quorate plan**: " + r.Summary.Line()
	if r.Base == "" {
		return text
	}
	head := "files on disk"
	if r.Head != "" {
		head = "head " + markdown.Code(ShortCommit(r.Head))
	}
	return fmt.Sprintf("%s · base %s → %s", text, markdown.Code(ShortCommit(r.Base)), head)
}

// ShortCommit is the form of a commit hash that people know.
func ShortCommit(commit string) string { return commit[:min(7, len(commit))] }

// block is a piece of a comment that is not torn apart.
type block struct {
	head []string
	// lines are left out from the end where the block is too large. Those before
	// the first count as details, the rest as what noun says.
	lines []string
	first int
	noun  string
	tail  []string
}

// render is the block in at most room bytes.
func (b block) render(room int) string {
	const note = 200
	room -= sizeOf(b.head) + sizeOf(b.tail)
	keep := len(b.lines)
	if sizeOf(b.lines) > room {
		keep = fitting(b.lines, room-note)
	}
	lines := slices.Concat(b.head, b.lines[:keep])
	if keep < len(b.lines) {
		lines = append(lines, "", "**"+b.hidden(keep)+"** because the comment would be too long; `quorate plan` shows them.")
	}
	return strings.Join(slices.Concat(lines, b.tail), "\n") + "\n"
}

// hidden tells what is left out when only the first lines are kept.
func (b block) hidden(keep int) string {
	text := state.Plural(len(b.lines)-max(keep, b.first), b.noun) + " hidden"
	if keep < b.first {
		text = "what comes before the steps and " + text
	}
	return text
}

// fitting is how many of the lines fit into room bytes.
func fitting(lines []string, room int) int {
	for i := range lines {
		room -= len(lines[i]) + 1
		if room < 0 {
			return i
		}
	}
	return len(lines)
}

// sizeOf is the size of lines in bytes.
func sizeOf(lines []string) int {
	n := 0
	for _, l := range lines {
		n += len(l) + 1
	}
	return n
}

// blocks are the report in the order in which people read it.
func (r *Report) blocks() []block {
	blocks := []block{r.glance()}
	for _, c := range r.Clusters {
		if c.Change != Unchanged {
			blocks = append(blocks, c.block())
		}
	}
	var others, problems, unknown []string
	for _, o := range r.Others {
		others = append(others, "- "+markdown.Code(o.Key())+": "+markdown.Prose(o.sentence()))
	}
	for _, p := range r.Problems {
		problems = append(problems, "- "+markdown.Code(p.String()))
	}
	for _, u := range r.Unknown() {
		unknown = append(unknown, "- "+markdown.Prose(u))
	}
	for _, b := range []block{
		{head: []string{"**Problems of the files**", ""}, lines: problems, noun: "problem"},
		{head: []string{"**Backups, schedules and restores**", ""}, lines: others, noun: "object"},
		{head: []string{"**What " + r.unknownWhere() + "**", ""}, lines: unknown, noun: "line"},
	} {
		if len(b.lines) > 0 {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// glance is the table of all clusters that change.
func (r *Report) glance() block {
	b := block{
		head: []string{"| cluster | change | steps | restarts | risk |", "|---|---|---|---|---|"},
		noun: "cluster",
	}
	for _, c := range r.Clusters {
		if c.Change != Unchanged {
			b.lines = append(b.lines, fmt.Sprintf("| %s | %s | %d | %d | %s |",
				markdown.Cell(c.Key()), c.gist(), len(c.Steps), c.Restarts, markdown.Prose(c.risk())))
		}
	}
	if len(b.lines) > 0 {
		return b
	}
	switch {
	case r.Summary.Errors > 0:
		return block{head: []string{"No change of a cluster is known."}}
	case slices.ContainsFunc(r.Others, func(o ObjectReport) bool { return o.Change != "" }):
		return block{head: []string{"No cluster changes."}}
	}
	return block{head: []string{"There is nothing to do."}}
}

// gist is the change of a cluster in a few words.
func (r ClusterReport) gist() string {
	if len(r.Changes) == 0 || r.Change != Changed {
		return string(r.Change)
	}
	shown := r.Changes[0]
	if i := slices.IndexFunc(r.Changes, func(c FieldChange) bool { return c.Field == "spec.version" }); i >= 0 {
		shown = r.Changes[i]
	}
	text := markdown.Cell(strings.TrimPrefix(shown.String(), "spec."))
	if more := len(r.Changes) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// risk is the hold, or the step that is hardest to take back.
func (r ClusterReport) risk() string {
	switch {
	case r.Hold != nil:
		return fmt.Sprintf("hold (%s)", r.Hold.Kind)
	case r.Change == Removed:
		return "left as it is"
	}
	for _, kind := range []action.UndoKind{action.UndoFinal, action.UndoByDowngrade} {
		if i := slices.IndexFunc(r.Steps, func(s StepReport) bool { return s.undo == kind }); i >= 0 {
			return fmt.Sprintf("%s from step %d on", kind, i+1)
		}
	}
	if i := slices.IndexFunc(r.Steps, func(s StepReport) bool { return s.undo == action.UndoUntil }); i >= 0 {
		return r.Steps[i].Undo
	}
	if r.Restarts > 0 {
		return action.UndoAnytime.String()
	}
	return "no member stops"
}

// block is everything about one cluster, folded. A hold and warnings stand first.
func (r ClusterReport) block() block {
	b := block{
		head: []string{fmt.Sprintf("<details><summary>%s: %s</summary>", markdown.Tag(r.Key()), markdown.HTML(r.outline()))},
		noun: "step", tail: []string{"", "</details>"},
	}
	if r.Hold != nil {
		b.head = append(b.head, "", fmt.Sprintf("> **hold (%s)**: %s", r.Hold.Kind, markdown.Prose(r.Hold.String())))
	}
	for _, w := range r.Warnings {
		b.lines = append(b.lines, "", "> **warning**: "+markdown.Prose(w))
	}
	for i, c := range r.Changes {
		if i == 0 {
			b.lines = append(b.lines, "")
		}
		b.lines = append(b.lines, "- "+markdown.Code(c.String()))
	}
	if r.Disruption != "" {
		b.lines = append(b.lines, "", markdown.Prose(r.Disruption)+".", "")
	}
	b.first = len(b.lines)
	for i, s := range r.Steps {
		b.lines = append(b.lines, fmt.Sprintf("%d. **%s**: %s. _%s_", i+1, markdown.Prose(s.Action), markdown.Prose(s.Reason), markdown.Prose(s.Undo)))
	}
	return b
}

// outline is the line that is shown of a folded cluster.
func (r ClusterReport) outline() string {
	text := string(r.Change) + ", " + state.Plural(len(r.Steps), "step") + ", " + state.Plural(r.Restarts, "restart")
	if r.Hold != nil {
		return text + fmt.Sprintf(", hold (%s)", r.Hold.Kind)
	}
	return text
}
