package plan

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/schema"
)

// printed is a decision as a scenario of testdata/scenarios, so that what the
// simulation has found can be kept: what Git says, what quorate saw, and what it
// makes of that.
func printed(title string, d Desired, o Observed, now time.Time) string {
	p := &printer{d: d, o: o, now: now}
	fmt.Fprintf(&p.text, "# %s\n", title)
	p.desired()
	p.record()
	p.around()
	p.set()
	if n := len(o.Rounds); n > 0 {
		p.round("members", o.Rounds[n-1])
		if n > 1 {
			p.round("before", o.Rounds[n-2])
		}
	}
	fmt.Fprintf(&p.text, "-- plan --\n%s", Make(d, o, now).Text())
	return p.text.String()
}

type printer struct {
	d    Desired
	o    Observed
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
	p.setting("backup", string(d.Spec.Upgrade.Backup))
	p.setting("state", string(d.Spec.State))
	p.setting("problems", strings.Join(d.Problems, ", "))
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
	p.setting("members", iff(r.Formed(), fmt.Sprint(len(r.Members))))
	if b := r.Backup; b != nil {
		p.setting("backup", fmt.Sprintf("%s %s %s", b.ClusterID, b.For, p.age(b.Time)))
	}
	if a := r.Applied; a != nil {
		p.setting("applied", a.SpecHash+" "+a.Version)
	}
}

// around are the objects, the certificates and the volumes.
func (p *printer) around() {
	p.section("certificates")
	p.setting("missing", strings.Join(p.o.Certificates.Missing, ", "))
	p.section("objects")
	p.row("kind", "name", "state", "detail")
	for _, o := range p.o.Objects {
		p.row(o.Kind, o.Name, strings.ReplaceAll(string(o.State), " ", "-"), o.Detail)
	}
	if len(p.o.Volumes) == 0 {
		return
	}
	p.section("volumes")
	p.row("claim")
	for _, v := range p.o.Volumes {
		p.row(v.Claim)
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
	p.section("pods")
	p.row("name", "template", "version", "ready", "since", "terminating", "ran", "unpulled", "trouble")
	for _, pod := range p.o.Pods {
		since := pod.Created
		if pod.Ready {
			since = pod.ReadySince
		}
		p.row(pod.Name, pod.Template, pod.Version, yes(pod.Ready), p.age(since), yes(pod.Terminating), yes(pod.Ran), yes(pod.Unpulled), pod.Trouble)
	}
}

func (p *printer) round(section string, r Round) {
	p.section(section)
	p.setting("problem", r.Problem)
	p.setting("version", r.ClusterVersion)
	p.setting("alarms", alarmsText(r.Alarms))
	p.setting("downgrading", r.DowngradeTarget)
	p.row("id", "name", "version", "leader", "applied", "commit", "learner", "hash", "db", "inuse", "storage", "problem")
	names := map[string]string{}
	for _, m := range r.Members {
		names[m.ID] = m.Name
	}
	for _, m := range r.Members {
		p.row(m.ID, m.Name, m.Version, names[m.Leader], fmt.Sprint(m.Applied), fmt.Sprint(m.Commit), yes(m.Learner), fmt.Sprint(m.Hash), fmt.Sprint(m.DBSize>>20), fmt.Sprint(m.DBInUse>>20), m.StorageVersion, m.Problem)
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
		a := parseArchive(t, "printed", text)
		d, o := a.desired(t), Observed{}
		a.observe(t, d, &o)
		want := a.sections["plan"]
		if got := Make(d, o, noon).Text(); got != want {
			t.Errorf("%d\n%s\nread back:\n%s", i, text, got)
		}
	}
	if d := e.desired(&window); d.Spec.State != schema.StateRunning {
		t.Error("a world that runs should ask for that")
	}
}

// alarmsText is the alarms as a scenario has them.
func alarmsText(alarms []Alarm) string {
	var texts []string
	for _, a := range alarms {
		texts = append(texts, a.Kind+" "+a.MemberID)
	}
	return strings.Join(texts, ", ")
}
