package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// printed is a decision as a scenario of testdata/scenarios, so that what the
// simulation has found can be kept: what Git says, what quorate saw, and what it
// makes of that.
func printed(title string, d state.Desired, o state.Observed, now time.Time) string {
	p := &printer{d: d, o: o, now: now}
	fmt.Fprintf(&p.text, "# %s\n", title)
	p.desired()
	p.record()
	p.objects()
	p.set()
	p.pods()
	if n := len(o.Rounds); n > 0 {
		p.round("members", o.Rounds[n-1])
		if n > 1 {
			p.round("before", o.Rounds[n-2])
		}
	}
	fmt.Fprintf(&p.text, "-- plan --\n%s", p.atNoon(Make(d, o, now).Text()))
	return p.text.String()
}

// atNoon moves the times in a plan to where a scenario's are: there it is noon.
func (p *printer) atNoon(plan string) string {
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`).ReplaceAllStringFunc(plan, func(text string) string {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return text
		}
		return at.Add(noon.Sub(p.now)).Format(time.RFC3339)
	})
}

type printer struct {
	d    state.Desired
	o    state.Observed
	now  time.Time
	text strings.Builder
}

func (p *printer) section(name string) { fmt.Fprintf(&p.text, "-- %s --\n", name) }

// setting is a line of a section, unless it says nothing.
func (p *printer) setting(key, value string) {
	if value != "" {
		fmt.Fprintf(&p.text, "%s: %s\n", key, value)
	}
}

func (p *printer) row(columns ...string) {
	for i, c := range columns {
		columns[i] = cmp.Or(c, "-")
	}
	fmt.Fprintln(&p.text, strings.Join(columns, "  "))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// iff is a text under a condition.
func iff(b bool, text string) string {
	if b {
		return text
	}
	return ""
}

func (p *printer) age(t time.Time) string { return p.now.Sub(t).String() }

func (p *printer) desired() {
	p.section("desired")
	d := p.d
	p.setting("version", d.Spec.Version)
	p.setting("template", d.Template)
	p.setting("spec", d.SpecHash)
	p.setting("replicas", fmt.Sprint(d.Spec.Replicas))
	p.setting("image", d.Spec.Image.Repository)
	p.setting("path", string(d.Spec.Upgrade.Path))
	p.setting("max-surge", iff(d.Spec.Upgrade.MaxSurge > 0, "1"))
	p.setting("stops", stopsText(d.Waypoints))
	p.setting("repair", string(d.Spec.Repair.Mode))
	p.setting("storage", strings.TrimSpace(d.Spec.Storage.Size.String()+" "+state.StorageClass(d.Spec.Storage)))
	p.setting("class-change", string(d.Spec.Storage.ClassChange))
	p.setting("removed-volumes", string(d.Spec.Storage.RemovedVolumes))
	p.setting("deletion-volumes", string(d.Spec.Deletion.Volumes))
	if !d.Owner.Nobody() {
		p.setting("owner", d.Owner.String())
	}
	p.setting("take-over", d.Spec.TakeOver)
	p.setting("backup", string(d.Spec.Upgrade.Backup))
	p.setting("state", string(d.Spec.State))
	p.setting("problems", strings.Join(d.Problems, ", "))
	if q := d.Spec.Etcd.QuotaBackendBytes; q != nil {
		p.setting("quota", q.String())
	}
	if s := d.Spec.Upgrade.Soak; s != nil {
		p.setting("soak", fmt.Sprintf("%.0f", s.Seconds()))
	}
	for _, w := range d.Spec.Maintenance {
		p.setting("window", fmt.Sprintf("%s %s %s", w.Schedule, w.Duration.Duration, w.TimeZone))
	}
}

func (p *printer) record() {
	r := p.o.Record
	if r == nil {
		return
	}
	p.section("record")
	p.setting("cluster", r.ClusterID)
	p.setting("members", pairsText(r.Members, same))
	if r.Owner != nil {
		p.setting("owner", r.Owner.String())
	}
	p.setting("founders", fmt.Sprint(r.Founders))
	p.setting("hibernated", iff(r.Hibernated, "yes"))
	p.setting("deleted", iff(r.Deleted, "yes"))
	p.backup("backup", r.Backup)
	p.backup("roll-backup", r.RollBackup)
	if a := r.Applied; a != nil {
		p.setting("applied", cmp.Or(a.SpecHash, "none")+" "+a.Version)
		p.setting("settings", a.Settings)
	}
	p.change(r)
	p.logs(r)
}

// backup is a backup that is recorded.
func (p *printer) backup(key string, b *state.Backup) {
	if b != nil {
		p.setting(key, fmt.Sprintf("%s %s %s", b.ClusterID, b.For, p.age(b.Time)))
	}
}

// change is what the record says of a change of the members.
func (p *printer) change(r *state.Record) {
	if j := r.Joining; j != nil {
		words := []string{j.Member, cmp.Or(j.ID, "none"), p.age(j.Since), iff(j.Promoting, "promoting"), iff(j.Replace, "replace")}
		p.setting("joining", strings.Join(words, " "))
	}
	if l := r.Leaving; l != nil {
		p.setting("leaving", strings.Join([]string{l.Member, l.ID, p.age(l.Since), iff(l.Replace, "replace"), iff(l.Serving, "serving"), iff(l.Asked, "asked")}, " "))
	}
	if f := r.FailedJoin; f != nil {
		p.setting("failed", fmt.Sprintf("%s %d %s", f.Member, f.Times, p.age(f.At)))
	}
	p.setting("replacing", r.Replacing)
	p.setting("retired", pairsText(r.Retired, same))
}

// logs is what the record says of the members' logs and databases.
func (p *printer) logs(r *state.Record) {
	p.setting("born", cmp.Or(r.BornOn, "?"))
	p.setting("flushed", pairsText(r.Flushed, same))
	if n := r.Forced; n != nil {
		before := pairsText(n.Before, func(saved int64) string { return fmt.Sprint(saved) })
		p.setting("nudged", strings.Join([]string{n.Template, p.age(n.Since), strings.ReplaceAll(before, ", ", ","), p.age(n.Time)}, " "))
	}
	if d := r.Downgrade; d != nil {
		p.setting("downgrade", d.Minor+" "+p.age(d.Since))
	}
	if c := r.Compacted; c != nil {
		p.setting("compacted", fmt.Sprintf("%d %s", c.Revision, p.age(c.At)))
	}
	p.setting("defragmented", pairsText(r.Defragmented, p.age))
	var seen []string
	for _, s := range r.Seen {
		seen = append(seen, fmt.Sprintf("%s=%s/%s", s.What, p.age(s.Stamp), p.age(s.At)))
	}
	p.setting("seen", strings.Join(seen, ", "))
}

// pairsText is a map as a scenario has it.
func pairsText[V any](all map[string]V, text func(V) string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, name+"="+text(all[name]))
	}
	return strings.Join(texts, ", ")
}

func same(text string) string { return text }

// stopsText is the stops as a scenario has them.
func stopsText(stops []state.Waypoint) string {
	var texts []string
	for _, s := range stops {
		texts = append(texts, s.Version+iff(s.Flush, "+flush")+"="+s.Template)
	}
	return strings.Join(texts, " ")
}

// objects are the objects, the certificates and the volumes.
func (p *printer) objects() {
	p.section("certificates")
	p.setting("missing", strings.Join(p.o.Certificates.Missing, ", "))
	p.section("objects")
	for _, o := range p.o.Leftovers {
		p.setting("leftovers", o.Name)
	}
	p.row("kind", "name", "state", "fight", "detail")
	for _, o := range p.o.Objects {
		p.row(o.Kind, o.Name, strings.ReplaceAll(string(o.State), " ", "-"), truceText(o.Fight, p.now), o.Detail)
	}
	p.fleet()
	if len(p.o.Volumes) == 0 {
		return
	}
	if t := p.o.Trial; t != (state.Trial{}) {
		p.section("trial")
		p.setting("state", string(t.State))
		p.setting("problem", t.Problem)
		p.setting("why", t.Why)
		p.setting("job", t.Job)
		p.setting("since", p.age(t.Since))
	}
	p.section("volumes")
	p.row("claim", "size", "capacity", "class", "bound", "holds", "terminating", "created", "rigid")
	for _, v := range p.o.Volumes {
		p.row(v.Claim, fmt.Sprint(v.Size>>30), fmt.Sprint(v.Capacity>>30), v.Class, yes(v.Bound), cmp.Or(v.Holds, "none"), yes(v.Terminating), iff(!v.Created.IsZero(), p.age(v.Created)), v.NotExpandable)
	}
}

// fleet are the other clusters.
func (p *printer) fleet() {
	f := p.o.Fleet
	if len(f.Disrupted)+len(f.Unfinished)+len(f.Checks) == 0 {
		return
	}
	p.section("fleet")
	p.setting("limit", fmt.Sprint(f.Limit))
	p.row("name", "state", "check", "since", "why")
	for _, n := range f.Disrupted {
		p.row(n.Name, "disrupted", "", "", n.Why)
	}
	for _, n := range f.Unfinished {
		p.row(n.Name, "unfinished", "", "", n.Why)
	}
	for _, c := range f.Checks {
		p.row(c.Cluster, "checked", c.Name, p.age(c.Since), c.Problem)
	}
}

func (p *printer) set() {
	s := p.o.Set
	if s == nil {
		return
	}
	p.section("set")
	p.setting("template", s.Template+" "+s.Version)
	p.setting("current", s.CurrentTemplate+" "+s.CurrentVersion)
	p.setting("replicas", fmt.Sprint(s.Replicas))
	p.setting("partition", fmt.Sprint(s.Partition))
	p.setting("settled", yes(s.Settled))
	p.setting("scaled-by", s.ScaledBy)
	if r := s.Refusal; r != nil {
		p.setting("refused", p.age(r.Since)+" "+r.Why)
		p.setting("refused-pods", strings.Join(r.Pods, " "))
		p.setting("refused-last", iff(!r.At.Equal(noon), p.age(r.At)))
	}
	p.setting("immutable", strings.Join(textsOf(s.Immutable), ", "))
	p.setting("claims", fmt.Sprintf("%d %s", s.ClaimSize, s.ClaimClass))
	p.setting("created", iff(!s.Created.IsZero(), p.age(s.Created)))
}

func (p *printer) pods() {
	if len(p.o.Pods) == 0 {
		return
	}
	p.section("pods")
	p.row("name", "template", "version", "ready", "since", "runs", "created", "damaged", "terminating", "going", "finalizers", "ran", "crashed", "unpulled", "damage", "node-gone", "node-stopped", "silent-node", "shut", "drained", "barred", "trouble")
	for _, pod := range p.o.Pods {
		damaged := pod.DamageSince
		if pod.NodeGone {
			damaged = pod.NodeGoneSince
		}
		p.row(pod.Name, pod.Template, pod.Version, yes(pod.Ready), p.age(pod.ReadySince), iff(!pod.RunsSince.IsZero(), p.age(pod.RunsSince)), p.age(pod.Created), iff(!damaged.IsZero(), p.age(damaged)),
			yes(pod.Terminating), iff(!pod.GoingSince.IsZero(), p.age(pod.GoingSince)), pod.Finalizers, yes(pod.Ran), yes(pod.Crashed), yes(pod.Unpulled), pod.Damage, yes(pod.NodeGone), yes(pod.NodeStopped), pod.SilentNode, pod.Shut, pod.Drained, yes(pod.Barred), pod.Trouble)
	}
}

func (p *printer) round(section string, r state.Round) {
	p.section(section)
	p.setting("at", p.age(r.At))
	p.setting("listened", iff(!r.Listened, "no"))
	p.setting("problem", r.Problem)
	p.setting("cluster", r.ClusterID)
	p.setting("version", r.ClusterVersion)
	p.setting("alarms", alarmsText(r.Alarms))
	p.setting("downgrading", r.DowngradeTarget)
	p.row("id", "name", "version", "leader", "applied", "commit", "learner", "hash", "db", "inuse", "quota", "storage", "saved", "revision", "compacted", "peers", "problem")
	names := map[string]string{}
	for _, m := range r.Members {
		names[m.ID] = m.Name
	}
	delete(names, "")
	for _, m := range r.Members {
		p.row(cmp.Or(m.ID, "none"), m.Name, m.Version, names[m.Leader], fmt.Sprint(m.AppliedIndex), fmt.Sprint(m.CommitIndex), yes(m.Learner), fmt.Sprint(m.Hash), fmt.Sprint(m.DBSize>>20), fmt.Sprint(m.DBInUse>>20), fmt.Sprint(m.Quota>>20), m.StorageVersion,
			fmt.Sprint(m.Snapshots), fmt.Sprint(m.Revision), fmt.Sprint(m.CompactRevision), cmp.Or(string(m.Peers), "unknown"), m.Problem)
	}
}

// What is printed reads back as what it was printed from: the plan is the same.
func TestAPrintedDecisionReadsBack(t *testing.T) {
	e := newEngine(table())
	unpulled := runningWorld(3, v35).asking(v36None)
	unpulled.pods[2] = fakePod{state: podStarting, template: v36None, uid: 9}
	unpulled.set.template, unpulled.set.partition = v36None, 2
	behind := runningWorld(3, v35).asking(v36)
	behind.claims[1].behind, behind.drifted = true, 2
	alarmed := runningWorld(1, v36)
	alarmed.alarm, alarmed.ask.state = true, askAsleep
	window := runningWorld(5, v35).asking(v35Old)
	window.window, window.record.backup = windowClosed, fakeBackup{there: true, purpose: wordOf("3.5.34"), at: -60}
	for i, w := range []world{newWorld(3), runningWorld(3, v35), unpulled, behind, alarmed, window} {
		text := printed("a world", e.desired(&w), e.observed(&w, plainly(&w)), w.now())
		if got, same := readBack(t, text); !same {
			t.Errorf("%d\n%s\nread back:\n%s", i, text, got)
		}
	}
	if d := e.desired(&window); d.Spec.State != schema.StateRunning {
		t.Error("a world that runs should ask for that")
	}
}

// readBack makes a plan of what was printed, and reports whether it is the same.
func readBack(t *testing.T, text string) (got string, same bool) {
	t.Helper()
	a := parseArchive(t, "printed", text)
	d, o := a.desired(t), state.Observed{Auth: &state.Auth{}}
	a.observe(t, d, &o)
	got = Make(d, o, noon).Text()
	return got, got == a.sections["plan"]
}

// So does whatever the simulation comes across: joins, departures, damage, old
// looks, downgrades, deletions.
func TestWhateverIsPrintedReadsBack(t *testing.T) {
	e, n, sections := newEngine(table()), 0, map[string]bool{}
	e.witness = func(d state.Desired, o state.Observed, now time.Time) {
		if n++; n%23 != 0 || t.Failed() {
			return
		}
		text := printed("a world", d, o, now)
		for l := range strings.Lines(text) {
			key, _, _ := strings.Cut(l, " ")
			sections[key] = true
		}
		if got, same := readBack(t, text); !same {
			t.Errorf("%s\nread back:\n%s", text, got)
		}
	}
	missing := []string{"joining:", "leaving:", "failed:", "replacing:", "retired:", "hibernated:", "deleted:", "nudged:", "flushed:", "downgrade:", "compacted:", "defragmented:", "leftovers:", "scaled-by:", "refused:", "refused-pods:", "refused-last:", "immutable:", "class-change:", "problems:"}
	r := rand.New(rand.NewPCG(5, 1))
	h := history{events: make([]uint64, 60)}
	// Some of it is rare.
	few, all := histories(200, 40), histories(2000, 40)
	for played := 0; played < few || (played < all && len(missing) > 0); played++ {
		missing = slices.DeleteFunc(missing, func(key string) bool { return sections[key] })
		h.redraw(r)
		if broken := e.play(h, startOf, nil); broken != "" {
			t.Fatal(broken)
		}
	}
	if len(missing) > 0 && !testing.Short() { // a few histories do not come to all of it
		t.Errorf("no world has %q", missing)
	}
}

// alarmsText is the alarms as a scenario has them.
func alarmsText(alarms []state.Alarm) string {
	var texts []string
	for _, a := range alarms {
		texts = append(texts, a.Kind+" "+a.MemberID)
	}
	return strings.Join(texts, ", ")
}
