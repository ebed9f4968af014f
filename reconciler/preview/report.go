package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/markdown"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Report is what `quorate plan` says about all clusters. Its JSON is what scripts
// may rely on; Text and Markdown are two other renderings of the same value.
type Report struct {
	// Base and Head name the two revisions that were compared, as commit hashes;
	// Head is empty for files on disk. Both are empty for a plan against live
	// clusters.
	Base string `json:"base,omitempty"`
	Head string `json:"head,omitempty"`
	// Offline means that no cluster was read.
	Offline bool `json:"offline"`
	// Clusters, sorted by namespace and name. Offline only those that differ.
	Clusters []ClusterReport `json:"clusters"`
	// Others are backups, schedules and restores, sorted by kind and name.
	// Offline only those that differ.
	Others []ObjectReport `json:"others"`
	// Problems of the files, errors and warnings, in the order of the files.
	Problems []schema.Problem `json:"problems"`
	// Summary counts.
	Summary Summary `json:"summary"`
}

// NewReport returns a report that has only the problems of the files.
func NewReport(set schema.Set) *Report {
	return &Report{Clusters: []ClusterReport{}, Others: []ObjectReport{}, Problems: append([]schema.Problem{}, set.Problems...)}
}

// Change is what happens to an object between two revisions, or between a live
// cluster and its file.
type Change string

// The changes.
const (
	// Unchanged needs nothing.
	Unchanged Change = "unchanged"
	// Added is new in Git.
	Added Change = "added"
	// Changed becomes something else.
	Changed Change = "changed"
	// Removed is no longer named in Git. It is left as it is.
	Removed Change = "removed"
	// Held is unknown, because the file has errors.
	Held Change = "held"
)

// ClusterReport is the plan of one cluster.
type ClusterReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Change    Change `json:"change"`
	// Version that the file asks for; empty where that cannot be read.
	Version string `json:"version,omitempty"`
	// Changes of the file, field by field, sorted. Empty in a plan against a live
	// cluster, which does not know the file that was there before.
	Changes []FieldChange `json:"changes"`
	// Hold is why nothing is done now; absent when the first step may be.
	Hold *HoldReport `json:"hold,omitempty"`
	// Steps in order; those behind a hold happen once it ends.
	Steps []StepReport `json:"steps"`
	// disruption is what clients notice; empty without steps.
	Disruption string `json:"disruption,omitempty"`
	// Restarts counts the steps that stop a member.
	Restarts int `json:"restarts"`
	// Warnings are about what is applied all the same.
	Warnings []string `json:"warnings"`
	// Unknown is what decides, too, and cannot be known without the cluster. In a plan
	// against live clusters only those have it that were not asked, with the reason first.
	Unknown []string `json:"unknown"`
}

// FieldChange is one field whose value differs. From is empty for a field that
// was not there, To for one that is no longer there.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// HoldReport is a Hold. Do is empty for one that ends on its own.
type HoldReport struct {
	Kind    decision.HoldKind `json:"kind"`
	Rule    string            `json:"rule"`
	Message string            `json:"message"`
	// Detail is what was measured; empty where there is nothing.
	Detail string `json:"detail,omitempty"`
	Do     string `json:"do,omitempty"`
}

// ObjectReport is an object beside the clusters: a backup, a schedule or a restore.
type ObjectReport struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Change    Change `json:"change,omitempty"`
	// Description is what it asks for, on one line.
	Description string `json:"description"`
}

// Summary counts what a Report says.
type Summary struct {
	// Changing clusters have steps, a hold or a changed file.
	Changing  int `json:"changing"`
	Unchanged int `json:"unchanged"`
	// Held clusters are those of the changing ones that have a hold.
	Held     int `json:"held"`
	Restarts int `json:"restarts"`
	Others   int `json:"others"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
}

// newClusterReport describes a plan. least and most are how often the leadership
// may move, see disruption.
func newClusterReport(d state.Desired, p decision.Plan, least, most int) ClusterReport {
	r := ClusterReport{
		Namespace: d.Namespace, Name: d.Name, Version: d.Spec.Version, Change: Changed,
		Changes: []FieldChange{}, Steps: []StepReport{}, Warnings: []string{}, Unknown: []string{},
		Restarts: len(decision.Restarts(p.Steps)),
	}
	if p.Idle() {
		r.Change = Unchanged
	}
	for _, w := range p.Warnings {
		r.Warnings = append(r.Warnings, w.String())
	}
	if h := p.Hold; h != nil {
		r.Hold = &HoldReport{h.Kind, h.Rule, h.Message, h.Detail, h.Do}
	}
	for _, s := range p.Steps {
		r.Steps = append(r.Steps, newStepReport(s, d))
		if _, first := s.Action.(action.CreateRecord); first {
			r.Change = Added
		}
	}
	if len(p.Steps) > 0 {
		r.Disruption = disruption(d.Spec.Replicas, p.Steps, least, most)
	}
	return r
}

// reasonFor is the reason of a step; that of a backup tells where it goes, too.
func reasonFor(s decision.Step, d state.Desired) string {
	if _, backup := s.Action.(action.TakeBackup); !backup {
		return s.Because()
	}
	store, _, _ := strings.Cut(d.BackupURL, "?")
	return fmt.Sprintf("%s; a verified backup must be taken first (store: %s)", s.Because(), store)
}

// Key is namespace/name.
func (r ClusterReport) Key() string { return r.Namespace + "/" + r.Name }

// Key is "Kind namespace/name".
func (o ObjectReport) Key() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// String is "EtcdBackupSchedule shop/nightly: added: every night".
func (o ObjectReport) String() string { return o.Key() + ": " + o.sentence() }

func (o ObjectReport) sentence() string {
	if o.Change == "" {
		return o.Description
	}
	return string(o.Change) + ": " + o.Description
}

// String is "spec.version: 3.5.35 → 3.6.16".
func (c FieldChange) String() string { return c.Field + ": " + c.values() }

func (c FieldChange) values() string {
	return markdown.Plain(cmp.Or(c.From, "(none)"), markdown.ValueRunes) + " → " + markdown.Plain(cmp.Or(c.To, "(none)"), markdown.ValueRunes)
}

// String is the hold on one line.
func (h HoldReport) String() string {
	return decision.Hold{Message: h.Message, Detail: h.Detail, Do: h.Do}.String()
}

// Count fills the Summary and puts everything into its order.
func (r *Report) Count(unchanged int) {
	slices.SortFunc(r.Clusters, func(a, b ClusterReport) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(r.Others, func(a, b ObjectReport) int { return cmp.Compare(a.Key(), b.Key()) })
	r.Summary = Summary{Unchanged: unchanged, Others: len(r.Others)}
	for _, c := range r.Clusters {
		r.Summary.add(c)
	}
	for _, p := range r.Problems {
		if p.Warning {
			r.Summary.Warnings++
		} else {
			r.Summary.Errors++
		}
	}
}

func (s *Summary) add(c ClusterReport) {
	if c.Change == Unchanged {
		s.Unchanged++
		return
	}
	s.Changing++
	s.Restarts += c.Restarts
	if c.Hold != nil {
		s.Held++
	}
}

// Line is "2 clusters change, 1 held, 7 restarts".
func (s Summary) Line() string {
	parts := []string{fmt.Sprintf("%d clusters change", s.Changing)}
	switch {
	case s.Changing == 0 && s.Errors > 0:
		parts[0] = "no change of a cluster is known" // what has errors may be one
	case s.Changing == 0:
		parts[0] = "no cluster changes"
	case s.Changing == 1:
		parts[0] = "1 cluster changes"
	}
	for _, p := range []struct {
		n    int
		text string
	}{
		{s.Held, fmt.Sprintf("%d held", s.Held)},
		{s.Restarts, state.Plural(s.Restarts, "restart")},
		{s.Unchanged, fmt.Sprintf("%d unchanged", s.Unchanged)},
		{s.Others, state.Plural(s.Others, "other object")},
		{s.Errors, state.Plural(s.Errors, "error")},
		{s.Warnings, state.Plural(s.Warnings, "warning")},
	} {
		if p.n > 0 {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ", ")
}

// Unknown is what any of the clusters cannot know, each once.
func (r *Report) Unknown() []string {
	var all []string
	for _, c := range r.Clusters {
		for _, u := range c.Unknown {
			if !slices.Contains(all, u) {
				all = append(all, u)
			}
		}
	}
	return all
}

// unknownWhere is what stands above what is unknown.
func (r *Report) unknownWhere() string {
	if r.Offline {
		return "cannot be known offline"
	}
	return "was not asked"
}

// Text is the report for a terminal.
func (r *Report) Text() string {
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintln(&b, markdown.Plain(p.String(), markdown.MessageRunes))
	}
	for _, c := range r.Clusters {
		c.text(&b)
	}
	for _, o := range r.Others {
		fmt.Fprintln(&b, markdown.Plain(o.String(), markdown.MessageRunes))
	}
	if unknown := r.Unknown(); len(unknown) > 0 {
		fmt.Fprintln(&b, r.unknownWhere()+":")
		for _, u := range unknown {
			fmt.Fprintf(&b, "  - %s\n", markdown.Plain(u, markdown.MessageRunes))
		}
	}
	fmt.Fprintln(&b, r.Summary.Line())
	return b.String()
}

// text writes one cluster, a line a fact.
func (r ClusterReport) text(b *strings.Builder) {
	line := func(format string, args ...any) {
		fmt.Fprintf(b, "  %s\n", markdown.Plain(fmt.Sprintf(format, args...), markdown.MessageRunes))
	}
	fmt.Fprintln(b, markdown.Plain(r.Key(), markdown.ValueRunes))
	for _, c := range r.Changes {
		line("%s", c)
	}
	for _, w := range r.Warnings {
		line("warning: %s", w)
	}
	if r.Hold != nil {
		line("hold (%s): %s", r.Hold.Kind, r.Hold)
	}
	for i, s := range r.Steps {
		line("%2d. %s: %s", i+1, s.Action, s.Reason)
		if s.undo != action.UndoNothing {
			line("    undo: %s", s.Undo)
		}
	}
	switch {
	case r.Disruption != "":
		line("%s", r.Disruption)
	case r.Change == Unchanged:
		line("nothing to do")
	}
}
