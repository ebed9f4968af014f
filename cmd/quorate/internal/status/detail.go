package status

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// printDetail prints all that is known of one object.
func printDetail(out io.Writer, s schema.Status) {
	phase, why := s.Phase()
	fmt.Fprintf(out, "%s %s/%s: %s (%s)", s.Kind, s.Metadata.Namespace, s.Metadata.Name, phase, cli.Shown(why.Reason))
	if why.LastTransitionTime != "" {
		fmt.Fprintf(out, " since %s", cli.Shown(why.LastTransitionTime))
	}
	fmt.Fprintln(out)
	hold := (*schema.HoldStatus)(nil)
	if s.Status.Cluster != nil {
		hold = s.Status.Cluster.Hold
	}
	if hold == nil && why.Message != "" {
		fmt.Fprintf(out, "  %s\n", cli.Shown(why.Message))
	}
	printFacts(out, s)
	if c := s.Status.Cluster; c != nil {
		printCluster(out, *c)
	}
}

// factsOfAcceptance adds why the commit was let in.
func factsOfAcceptance(add func(name, value string), a schema.Acceptance) {
	add("Signed with", a.Signer)
	tag := a.Tag
	if a.TagSigner != "" {
		tag += ", signed with " + a.TagSigner
	}
	add("Tag", tag)
	if a.Approval != "" {
		add("Approved", a.Approval+", "+a.ApprovedBy)
	}
}

// printFacts prints what fits on a line each.
func printFacts(out io.Writer, s schema.Status) {
	facts := [][2]string{{"Commit", s.Status.Commit}}
	add := func(name, value string) { facts = append(facts, [2]string{name, value}) }
	factsOfAcceptance(add, s.Status.Accepted)
	switch t := s.Status; {
	case t.Cluster != nil:
		c := t.Cluster
		add("Version", versionText(c.Version))
		add("Members", fmt.Sprintf("%d of %d healthy, %s", c.Replicas.Healthy, c.Replicas.Wanted, state.Plural(int(c.Replicas.Members), "voter")))
		if r := c.Rollout; r != nil {
			add("Rollout", fmt.Sprintf("%d of %d members done", r.Done, r.Members))
		}
		if c.Hold == nil && len(c.Plan) > 0 {
			add("Now", c.Plan[0].Action)
		}
	case t.Backup != nil:
		add("Cluster", t.Backup.Cluster)
		factsOfBackup(add, "Taken", t.Backup.Taken)
	case t.Schedule != nil:
		add("Cluster", t.Schedule.Cluster)
		factsOfBackup(add, "Last", t.Schedule.Last)
		add("Next", t.Schedule.Next)
		if d := t.Schedule.Drill; d != nil {
			add("Drill", d.Result+", at "+d.Time+", of "+d.URL)
		}
	case t.Restore != nil:
		add("Cluster", t.Restore.Cluster)
		add("Source", t.Restore.Source)
		add("Backup", t.Restore.Backup)
		add("Done", t.Restore.Time)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, fact := range facts {
		if fact[1] != "" {
			fmt.Fprintf(w, "%s:\t%s\n", fact[0], cli.Shown(fact[1]))
		}
	}
	_ = w.Flush() // a text for a person
}

func factsOfBackup(add func(name, value string), name string, b *schema.BackupStatus) {
	if b == nil {
		return
	}
	add(name, b.Time)
	add("URL", b.URL)
	if b.Size > 0 { // else it is not known
		add("Revision", fmt.Sprint(b.Revision))
		add("Size", state.SizeText(b.Size))
	}
}

func printCluster(out io.Writer, c schema.ClusterStatus) {
	if h := c.Hold; h != nil {
		fmt.Fprintf(out, "\nHold: %s, by the rule %s (quorate explain %s)\n  %s\n", cli.Shown(h.Kind), cli.Shown(h.Rule), cli.Shown(h.Rule), cli.Shown(h.Message))
		if h.Do != "" {
			fmt.Fprintf(out, "  What to do: %s\n", cli.Shown(h.Do))
		}
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(out, "\nWarning: %s\n", cli.Shown(warning))
	}
	printMembers(out, c.Members)
	printDrift(out, c.Drift)
	printPlan(out, c)
	printTaken(out, c.Backups)
}

func printMembers(out io.Writer, members []schema.MemberStatus) {
	if len(members) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "MEMBER\tROLE\tVERSION\tHEALTH\tID")
	for _, m := range members {
		role := m.Role
		if m.Leader {
			role = "leader"
		}
		row := []string{m.Name, role, m.Version, m.Health, m.ID}
		for i, cell := range row {
			row[i] = cmp.Or(cli.Shown(cell), "-")
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a text for a person
}

// printDrift prints a small diff: - for what is wanted and + for what is there, below ~ for
// an object that differs, - for one that is gone, and ! for one that is somebody else's.
func printDrift(out io.Writer, list []schema.DriftStatus) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(out, "\nDrift:")
	for _, d := range list {
		sign := map[string]string{"missing": "-", "foreign": "!"}[d.State]
		fmt.Fprintf(out, "  %s %s %s: %s%s\n", cmp.Or(sign, "~"), cli.Shown(d.Kind), cli.Shown(d.Name), cli.Shown(d.State), byAndSince(d.Manager, d.Since))
		if d.Fight != "" {
			fmt.Fprintf(out, "      %s\n", cli.Shown(d.Fight))
		}
		if d.Correction != "" {
			fmt.Fprintf(out, "      is put back: %s\n", cli.Shown(d.Correction))
		}
		for _, field := range d.Differences() {
			fmt.Fprintf(out, "      %s%s\n", cli.Shown(field.Path), byAndSince(field.Manager, field.Since))
			if field.Live != "" || field.Wanted != "" {
				fmt.Fprintf(out, "        - %s (wanted)\n        + %s (live)\n", cmp.Or(cli.Shown(field.Wanted), "none"), cmp.Or(cli.Shown(field.Live), "none"))
			}
		}
	}
}

// byAndSince says who has changed something, and when, as far as that is known.
func byAndSince(manager, since string) (text string) {
	if manager != "" {
		text = " by " + cli.Shown(manager)
	}
	if since != "" {
		text += " at " + cli.Shown(since)
	}
	return text
}

func printPlan(out io.Writer, c schema.ClusterStatus) {
	if len(c.Plan) == 0 {
		return
	}
	title := "Plan:"
	if c.Hold != nil {
		title = "Plan, once nothing holds it:"
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for i, step := range c.Plan {
		fmt.Fprintf(out, "%3d. %s\n     because %s\n", i+1, cli.Shown(step.Action), cli.Shown(step.Reason))
		if step.Undo != "" {
			fmt.Fprintf(out, "     undo: %s\n", cli.Shown(step.Undo))
		}
	}
}

func printTaken(out io.Writer, list []schema.BackupStatus) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "BACKUP FOR\tTAKEN\tREVISION\tSIZE\tURL")
	for _, b := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", cmp.Or(cli.Shown(b.For), "-"), cli.Shown(b.Time), b.Revision, state.SizeText(b.Size), cli.Shown(b.URL))
	}
	_ = w.Flush() // a text for a person
}
