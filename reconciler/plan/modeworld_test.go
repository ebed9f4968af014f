package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// modeWorld is a cluster of three members as far as plain text and TLS go: what each pod listens to and
// can speak, where etcd's list has the members, and clients that move in their time.
type modeWorld struct {
	wants   schema.TLSMode
	now     time.Time
	pods    [3]state.Transport
	leader  int32
	applied string
	// template is what the StatefulSet makes, current that of the last finished roll.
	template, current state.Transport
	partition         int32
	list, record      map[string][]string
	movedAt           time.Time
	client            schema.TLSMode
	// due is when the client moves; zero while it is where it is to be.
	due    time.Time
	doctor func(*state.Observed, *state.Desired)
	random *rand.Rand
	trace  []string
}

const modeOverlap = time.Hour

func newModeWorld(from schema.TLSMode, seed uint64) *modeWorld {
	t := state.Transport{Own: from}
	return &modeWorld{
		wants: from, client: from, now: noon, leader: 2, partition: 3, template: t, current: t, pods: [3]state.Transport{t, t, t}, applied: "/" + string(from),
		list: map[string][]string{}, record: map[string][]string{}, random: rand.New(rand.NewPCG(seed, 1)),
	}
}

// named is a template's hash.
func (w *modeWorld) named(t state.Transport) string {
	return fmt.Sprintf("t-%s-%s", t.Own, t.Also)
}

func (w *modeWorld) observed() (state.Desired, state.Observed) {
	s := healthy(3)
	d, o := s.Desired, s.Observed
	d.Spec.TLS.Mode = w.wants
	d.Spec.TLS.Overlap = &metav1.Duration{Duration: modeOverlap}
	d.SpecHash = "/" + string(w.wants)
	o.Record.Applied = &state.Applied{SpecHash: w.applied, Version: oldVersion}
	o.Record.PeerURLs, o.Record.MovedAt = maps.Clone(w.record), w.movedAt
	o.Transport = w.template
	o.Set.Template, o.Set.CurrentTemplate, o.Set.Partition = w.named(w.template), w.named(w.current), w.partition
	for i := range o.Pods {
		o.Pods[i].Template = w.named(w.pods[o.Pods[i].Ordinal])
		o.Pods[i].Created, o.Pods[i].ReadySince = w.now.Add(-time.Hour), w.now.Add(-time.Hour)
	}
	for i := range o.Rounds {
		o.Rounds[i].At = w.now.Add(time.Duration(i-1) * time.Second)
		for m := range o.Rounds[i].Members {
			member := &o.Rounds[i].Members[m]
			member.Leader, member.PeerURLs = fmt.Sprintf("m%d", w.leader), w.at(d, o, member.Name)
		}
	}
	if w.doctor != nil {
		w.doctor(&o, &d)
	}
	d.Template = w.named(transport.Of(d, o, w.now).Template)
	return d, o
}

// at is where etcd's list has a member: where it joined, unless it was moved.
func (w *modeWorld) at(d state.Desired, o state.Observed, name string) []string {
	if urls := w.list[o.Record.Members[name]]; len(urls) > 0 {
		return urls
	}
	return peerURLs(d, name, w.joined(), naming.PeerPort)
}

// joined is the mode in which the members joined, which is that of the world's begin.
func (w *modeWorld) joined() schema.TLSMode {
	return schema.TLSMode(strings.TrimPrefix(w.trace[0], "from "))
}

// judge is what is broken, or "": that a member cannot reach another one, or a client a member.
func (w *modeWorld) judge() string {
	d, o := w.observed()
	for i, to := range w.pods {
		name := naming.Member("orders", int32(i))
		if !w.serves(to, w.client) {
			return fmt.Sprintf("safety: a client speaks %s, and %s listens to %s", w.client, name, w.named(to))
		}
		for j, from := range w.pods {
			if i != j && !slices.ContainsFunc(w.at(d, o, name), func(url string) bool { return w.reaches(from, to, url) }) {
				return fmt.Sprintf("safety: member %d, which is %s, does not reach %s at %q, which listens to %s", j, w.named(from), name, w.at(d, o, name), w.named(to))
			}
		}
	}
	return ""
}

// serves reports whether a member serves clients of a mode.
func (*modeWorld) serves(t state.Transport, mode schema.TLSMode) bool {
	return t.Own.Encrypts() == mode.Encrypts() || t.Also != "" && t.Also.Encrypts() == mode.Encrypts()
}

// reaches reports whether a member comes through to another one at a URL: that listens there and to
// that, and the first has certificates where it needs some.
func (*modeWorld) reaches(from, to state.Transport, url string) bool {
	secured := strings.HasPrefix(url, "https:")
	speaks := to.Own
	if strings.HasSuffix(url, ":2382") {
		if speaks = to.Also; speaks == "" {
			return false
		}
	}
	return secured == speaks.Encrypts() && (!secured || from.Secured().Encrypts())
}

func (w *modeWorld) pass() (quiet bool) {
	d, o := w.observed()
	p := Decide(d, o, w.now)
	switch {
	case p.Hold != nil:
		if a := transport.Of(d, o, w.now); a.Phase == transport.Overlap && w.client.Encrypts() != w.wants.Encrypts() && w.due.IsZero() {
			// The client is told, and takes its time.
			w.due = w.now.Add(time.Duration(w.random.Int64N(int64(max(a.Until.Sub(w.now), 1)))))
		}
		w.trace = append(w.trace, p.Hold.String())
		return false
	case len(p.Steps) == 0:
		return true
	}
	w.trace = append(w.trace, p.Steps[0].String())
	switch a := p.Steps[0].Action.(type) {
	case action.StartRoll:
		w.template, w.partition = transport.Of(d, o, w.now).Template, a.Partition
	case action.MoveLeader:
		w.leader = naming.Ordinal(a.To)
	case action.RestartMember:
		w.restart(a)
	case action.ResizeSet:
		w.partition = a.Partition
	case action.EndRoll:
		w.partition = a.Replicas
	case action.RecordApplied:
		w.applied = a.SpecHash
	case action.MoveMember:
		killed := w.random.IntN(4)
		if killed > 0 {
			w.list[a.MemberID] = a.URLs
		}
		if killed > 1 {
			w.record[a.MemberID], w.movedAt = a.URLs, w.now
		}
	default:
		panic(fmt.Sprintf("the world does not know %T", a))
	}
	return false
}

func (w *modeWorld) restart(a action.RestartMember) {
	if a.ByDeletion {
		w.pods[a.Ordinal] = w.made(a.Ordinal)
		return
	}
	w.partition = a.Partition
	for i := int32(2); i >= a.Partition; i-- {
		w.pods[i] = w.template
	}
	if !slices.ContainsFunc(w.pods[:], func(t state.Transport) bool { return t != w.template }) {
		w.current = w.template
	}
}

// made is what a new pod of an ordinal listens to.
func (w *modeWorld) made(ordinal int32) state.Transport {
	if ordinal < w.partition {
		return w.current
	}
	return w.template
}

// happens has time go by: clients move when they are due, and a pod may be lost.
func (w *modeWorld) happens(by time.Duration) {
	w.now = w.now.Add(by)
	if !w.due.IsZero() && !w.now.Before(w.due) {
		w.client, w.due = w.wants, time.Time{}
		w.trace = append(w.trace, "the client speaks "+string(w.client))
	}
	if w.random.IntN(12) == 0 {
		i := w.random.Int32N(3)
		w.pods[i] = w.made(i)
		w.trace = append(w.trace, fmt.Sprintf("member %d comes back as %s", i, w.named(w.pods[i])))
	}
}

// play has Git ask for one mode and another, and lets all come to rest. It is what was broken, or "".
func (w *modeWorld) play(events int) string {
	w.trace = append(w.trace, "from "+string(w.wants))
	for n := range events {
		if n == 0 || w.random.IntN(15) == 0 {
			w.wants, w.due = schema.TLSManaged, time.Time{}
			if w.random.IntN(2) == 0 || n == 0 && w.client.Encrypts() {
				w.wants = schema.TLSDisabled
			}
			w.trace = append(w.trace, "Git asks for "+string(w.wants))
		}
		w.happens([]time.Duration{time.Second, time.Minute, 10 * time.Minute}[w.random.IntN(3)])
		w.pass()
		if broken := w.judge(); broken != "" {
			return broken
		}
	}
	for range 400 {
		w.happens(time.Minute)
		quiet := w.pass()
		if broken := w.judge(); broken != "" {
			return broken
		}
		if quiet {
			if w.template.Own.Encrypts() != w.wants.Encrypts() || w.template.Also != "" {
				return "liveness: at rest with " + w.named(w.template)
			}
			return ""
		}
	}
	return "liveness: no rest"
}

// playModes is what was broken first in some histories, and which.
func playModes(histories int, doctor func(*state.Observed, *state.Desired)) (broken string, w *modeWorld) {
	for seed := range histories {
		from := schema.TLSDisabled
		if seed%2 == 1 {
			from = schema.TLSManaged
		}
		w = newModeWorld(from, uint64(seed))
		w.doctor = doctor
		if broken = w.play(120); broken != "" {
			return fmt.Sprintf("history %d: %s", seed, broken), w
		}
	}
	return "", w
}

// 589, I22: whatever Git asks for meanwhile, members that come back and a quorate that is killed, at each
// moment each member reaches all others where the list has them, and clients reach each member.
func TestModesChangeWhileEverybodyWorks(t *testing.T) {
	if broken, w := playModes(histories(300, 60), nil); broken != "" {
		t.Fatalf("%s\n%s", broken, strings.Join(w.trace[max(0, len(w.trace)-40):], "\n"))
	}
}

// 589: what lets one phase of a change come before its time is caught by the same histories.
func TestMutantsOfModesAreCaught(t *testing.T) {
	for name, doctor := range map[string]func(*state.Observed, *state.Desired){
		"no overlap":            func(_ *state.Observed, d *state.Desired) { d.Spec.TLS.Overlap = &metav1.Duration{} },
		"the list is not asked": func(o *state.Observed, _ *state.Desired) { movedAsWanted(o) },
		"no roll is waited for": func(o *state.Observed, _ *state.Desired) { settledAs(o) },
		"one roll": func(o *state.Observed, d *state.Desired) {
			if o.Transport.Also == "" {
				o.Transport.Own = d.Spec.TLS.Mode
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if broken, _ := playModes(300, doctor); broken == "" {
				t.Error("nothing is broken")
			} else {
				t.Log(broken)
			}
		})
	}
}

// movedAsWanted has quorate believe that each member is at both ports in the other mode.
func movedAsWanted(o *state.Observed) {
	if o.Transport.Also == "" {
		return
	}
	d := healthy(3).Desired
	o.Record.PeerURLs = map[string][]string{}
	for name, id := range o.Record.Members {
		o.Record.PeerURLs[id] = peerURLs(d, name, o.Transport.Also, naming.PeerPort, naming.SecondPeerPort)
		for i := range o.Rounds {
			o.Rounds[i].Member(name).PeerURLs = o.Record.PeerURLs[id]
		}
	}
	if o.Record.MovedAt.IsZero() {
		o.Record.MovedAt = noon.Add(-24 * time.Hour)
	}
}

// settledAs has quorate believe that each pod has the template.
func settledAs(o *state.Observed) {
	o.Set.CurrentTemplate = o.Set.Template
	for i := range o.Pods {
		o.Pods[i].Template = o.Set.Template
	}
}
