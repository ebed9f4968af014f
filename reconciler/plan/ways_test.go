package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// advice is what holds of some rules tell a person, and the ways out that they name, as
// changes of the world or of Git.
type advice struct {
	// rules are their names, in one word each.
	rules string
	// says is a part of what the hold says to do.
	says string
	// seldom: too few histories of the tests meet it; those of `make sim` do, or the page
	// says that none has.
	seldom bool
	// about is a part of what it is about, where others say to do the same.
	about string
	ways  []exit
}

// exit is one way out of a hold.
type exit struct {
	// name is the way in the words of the hold.
	name string
	// take is what the person does.
	take func(w *world, h *decision.Hold)
	// loses: it gives up data, so it is taken where no other way leads out.
	loses bool
}

// advices are all that the worlds of the simulation know.
func advices() []advice {
	check := exit{name: "check, and bring back what is missing", take: (*world).tend}
	release := exit{name: "a release that every member can go to", take: (*world).chooseRelease}
	revert := exit{name: "revert", take: (*world).revert}
	starts := exit{name: "commit what starts", take: (*world).chooseTemplate}
	admit := exit{name: "let Kubernetes admit it", take: func(w *world, _ *decision.Hold) { w.admits = true }}
	back := exit{name: "bring its own volume back", take: func(w *world, h *decision.Hold) { w.bringBack(ordinalOf(h)) }}
	allBack := exit{name: "bring the volumes and nodes back", take: (*world).tend}
	restored := exit{name: recordBack, take: (*world).restoreRecord}
	letGo := exit{name: "delete the claim", take: func(w *world, h *decision.Hold) { w.deleteClaim(ordinalOf(h)) }, loses: true}
	deletePod := exit{name: "delete its pod", take: func(w *world, h *decision.Hold) { w.deletePodOf(ordinalOf(h)) }}
	git := func(name string, f func(*ask)) exit {
		return exit{name: name, take: func(w *world, _ *decision.Hold) { f(&w.ask) }}
	}
	return []advice{
		{rules: "readable", says: "fix the file in a new commit", ways: []exit{git("fix the file", func(a *ask) { a.broken = false })}},
		{rules: "ownership", says: "rename the cluster, or remove that object", ways: []exit{{name: "remove that object", take: (*world).removeForeign}}},
		{rules: "ownership", says: "put the claims out of the way", ways: []exit{letGo}},
		{rules: "ownership", says: "where nothing is needed of what runs in it", seldom: true, ways: []exit{deletePod}},
		{rules: "owner", says: "let go of the cluster there", ways: []exit{{name: "write spec.takeOver", take: func(w *world, _ *decision.Hold) { w.around.takeOver = w.record.owner }}}},
		{rules: "record", says: "restore the ConfigMap", ways: []exit{{name: "restore the record", take: func(w *world, _ *decision.Hold) { w.record.lost = false }}}},
		{rules: "immutable", says: "set the name back", ways: []exit{git("set the name back", func(a *ask) { a.frozen = false })}},
		{rules: "storage", says: "set the size back", ways: []exit{{name: "set the size back", take: (*world).keepVolumes}}},
		{rules: "storage", says: "set the class back", ways: []exit{
			{name: "set the class back", take: (*world).keepVolumes},
			{name: "have every member replaced", take: func(w *world, _ *decision.Hold) { w.ask.class -= fastOnly - classFast }},
		}},
		{rules: "bootstrap path", says: "name another release in spec.version", ways: []exit{release}},
		{rules: "bootstrap", says: "revert the file to what it was before the deletion", seldom: true, ways: []exit{revert, letGo}},
		{rules: "missing", says: "revert the commit to go back, or", seldom: true, ways: []exit{revert, admit, starts}},
		{rules: "bootstrap missing", says: "let Kubernetes admit it", ways: []exit{admit, starts}},
		{rules: "bootstrap", says: "a cluster that never held data can be started over", ways: []exit{{name: "start over with what starts", take: (*world).startOver}}},
		{rules: "ownership bootstrap settled hibernated deletion member recovery remedy remove", says: "find out why what has set them does not end", seldom: true, ways: []exit{check}},
		{rules: "drift", says: "revert what the file says of its members to what they ran last", ways: []exit{{name: "revert to what they ran last", take: (*world).chooseLast}}},
		{rules: "drift", says: "set spec.version to a release that the members run", seldom: true, ways: []exit{release, {name: "bring the StatefulSet back", take: (*world).bringSetBack}}},
		{rules: "drift", says: "bring the StatefulSet back from a backup of the Kubernetes API", seldom: true, ways: []exit{{name: "bring the StatefulSet back", take: (*world).bringSetBack}}},
		{rules: "drift", says: "bring the volumes back", seldom: true, ways: []exit{allBack}},
		{rules: "deletion", says: "set spec.state: Running to wake them", seldom: true, ways: []exit{git("set spec.state to Running", func(a *ask) { a.state = askRunning })}},
		{rules: "deletion", says: "bring its members back; or set spec.deletion.backup to Skip", seldom: true, ways: []exit{check}},
		{rules: "resize deletion grow repair membership", says: "so that the data stays, and delete the claim", ways: []exit{restored, letGo, {name: "delete the claim, with a commit of what starts", loses: true, take: func(w *world, h *decision.Hold) {
			w.deleteClaim(ordinalOf(h))
			w.chooseTemplate(h)
		}}}},
		{rules: "deletion repair membership", says: "bring the right volume back under that claim", ways: []exit{back, {name: "delete the claim and its pod", take: func(w *world, h *decision.Hold) { w.deleteClaim(ordinalOf(h)) }, loses: true}}},
		{rules: "deletion repair membership", says: "nothing changes among the members until they answer; check their pods", seldom: true, ways: []exit{check}},
		{rules: "drift resize deletion membership repair alarms health", says: "as it was last; or, where", seldom: true, ways: []exit{restored}},
		{rules: "membership", says: "find out whose data is wrong", ways: []exit{{name: "replace the data that is wrong", take: (*world).replaceWrong}}},
		{rules: "membership", says: "nothing is removed until the others are healthy", seldom: true, ways: []exit{check}},
		{rules: "settled missing remedy member", says: "find out why", seldom: true, ways: []exit{check, admit, starts, revert}},
		{rules: "recovery", says: "bring back a node or a volume", ways: []exit{allBack, {name: "commit spec.recovery", take: (*world).recover, loses: true}}},
		{rules: "recovery", says: "or their way to the control plane, back", seldom: true, ways: []exit{check}},
		{rules: "remedy", says: "set spec.version to what the members run", ways: []exit{{name: "set spec.version to what they run", take: (*world).chooseNamed}, admit}},
		{rules: "remedy", says: "the others are restarted when it", seldom: true, ways: []exit{check, starts, revert}},
		{rules: "remedy", says: "commit what lets them start", ways: []exit{starts, {name: "commit spec.recovery", take: (*world).recover, loses: true}}},
		{rules: "repair", says: "nothing is replaced without a quorum of the others: bring members back", ways: []exit{allBack}},
		{rules: "repair", says: "set it to Automatic", ways: []exit{git("set spec.repair.mode to Automatic", func(a *ask) { a.repair = repairAutomatic }), back}},
		{rules: "repair", says: "set spec.repair.mode to OneByOne", ways: []exit{git("set spec.repair.mode to OneByOne", func(a *ask) { a.repair = repairOneByOne }), allBack}},
		{rules: "repair", says: "take the last commit back", seldom: true, ways: []exit{{name: "ask again for what the others have", take: (*world).chooseOthers}}},
		{rules: "repair", says: "nothing is left to repair it from", ways: []exit{back}},
		{rules: "alarms repair", says: "check the member named here", ways: []exit{check}},
		{rules: "quota", says: "set spec.etcd.quotaBackendBytes back", seldom: true, ways: []exit{
			{name: "set the quota back", take: (*world).chooseOthers},
			{name: "delete keys", take: func(w *world, _ *decision.Hold) {
				for i := range w.claims {
					w.claims[i].full, w.claims[i].laden = false, false
				}
			}},
		}},
		{rules: "alarms", says: "upgrade first", ways: []exit{{name: "upgrade, under the alarm with a larger quota before that", take: (*world).upgrade}}},
		{rules: "alarms", says: "or delete keys, which still works", ways: []exit{{name: "delete keys", take: func(w *world, _ *decision.Hold) { w.heavy = false; w.write() }}}},
		{rules: "repair", says: "revert what else the file says of the members since", seldom: true, ways: []exit{{name: "ask again for what the others have", take: (*world).chooseOthers}}},
		{rules: "path", says: "set spec.version to a release that every member can go to", ways: []exit{release}},
		{rules: "path", says: "check the members; quorate continues", seldom: true, ways: []exit{check, release}},
		{rules: "member", says: "bring the node of", ways: []exit{check}},
		{rules: "member", says: "revert the commit to go back", ways: []exit{revert, starts, {name: "fix the cause", take: (*world).tend}}},
		{rules: "health", says: "if its data is not needed, delete its pod and its volume claim", seldom: true, ways: []exit{check, {name: "delete its pod and its claim", take: func(w *world, h *decision.Hold) { w.deleteClaim(ordinalOf(h)) }, loses: true}}},
		{rules: "health membership", says: "where that learner is not wanted, remove it", ways: []exit{{name: "remove it", take: (*world).removeLearners}}},
		{rules: "health", says: "`etcdctl downgrade cancel` ends it; or restore ConfigMap", seldom: true, ways: []exit{{name: "cancel the downgrade", take: (*world).cancelDowngrade}, restored}},
		{rules: "health", about: "hold different data", says: "nothing is restarted until the cluster is healthy", ways: []exit{{name: "replace the data that is wrong", take: (*world).replaceWrong}}},
		{rules: "health", says: "nothing is restarted until the cluster is healthy", ways: []exit{check}},
		{rules: "backup", says: "revert the commit to go back", seldom: true, ways: []exit{revert}},
		{rules: "claims hibernate deletion membership remedy", says: "there is no quorum but with the data of", ways: []exit{check}},
		{rules: "claims hibernate deletion membership remedy", says: "copies the data to new members", ways: []exit{
			git("raise spec.replicas to 3", func(a *ask) { a.replicas = 3 }), deletePod,
		}},
		{rules: "claims hibernate deletion membership remedy", says: "and a new member takes its place with the data of the others", ways: []exit{deletePod}},
		{rules: "start leader", says: "let pods come to node", ways: []exit{
			{name: "uncordon the node", take: (*world).tend},
			revert,
			{name: "delete the claim and the pod", take: func(w *world, h *decision.Hold) { w.deleteClaim(ordinalOf(h)) }, loses: true},
		}},
		{rules: "surge repair grow", says: "check its pod and its node meanwhile", seldom: true, ways: []exit{check, starts, revert, admit}},
		{rules: "volumes", says: "and delete that Job to have it tried again", ways: []exit{
			{name: "set the class back", take: func(w *world, _ *decision.Hold) { w.ask.class = classOpen }},
			{name: "let it make volumes, and delete the Job", take: func(w *world, _ *decision.Hold) { w.barren, w.trial = [2]bool{}, fakeTrial{} }},
		}},
		{rules: "volumes", says: "raise spec.replicas to 3 first", seldom: true, ways: []exit{git("raise spec.replicas to 3", func(a *ask) { a.replicas = 3 })}},
		{rules: "volumes", says: "set spec.storage.size back", seldom: true, ways: []exit{
			{name: "set spec.storage.size back", take: func(w *world, _ *decision.Hold) { w.ask.large = w.set.large }},
			{name: "let the class grow volumes", take: func(w *world, _ *decision.Hold) { w.rigid = false }},
			git("change the class", func(a *ask) { a.class = classFast }),
		}},
	}
}

// tend is what a person does who checks members: nodes report again, what was lost
// with them comes back, and somebody makes the volumes that pods wait for.
func (w *world) tend(*decision.Hold) {
	apart := w.leader < 0
	w.barren = [2]bool{}
	for i := range int8(most) {
		apart = apart || w.pods[i].state == podStarting && w.foundApart(i)
		w.claims[i].unheard, w.claims[i].shut, w.pods[i].cut, w.pods[i].kept = false, false, false, false
		if w.goes(i) { // its volume is retained, and put under a claim of that name again
			w.claims[i].terminating = false
			w.deletePodOf(i)
		}
		if w.lost(i) || w.strayed(i) {
			w.bringBack(i)
		}
	}
	w.corrupt = w.corrupt && !apart // the copy that differs is replaced by a right one
	w.vote()
}

// strayed reports whether there is no volume of a member that the record speaks of.
func (w *world) strayed(i int8) bool {
	return w.record.formed && w.record.members[i] != 0 && !w.claims[i].there
}

// bringBack puts the volume of a member under its claim again, with the storage that it had.
func (w *world) bringBack(i int8) {
	if i < 0 || w.seats[i].id == 0 {
		return
	}
	c := &w.claims[i]
	if !c.there {
		w.makeClaim(i)
	}
	c.there, c.pending, c.data, c.behind, c.short = true, false, w.seats[i].id, true, w.leader >= 0
	c.corrupt, c.older, c.pinned, c.unheard, c.shut, c.terminating, c.held = false, false, false, false, false, false, 0
	w.vote()
}

// deleteClaim deletes a claim and its pod.
func (w *world) deleteClaim(i int8) {
	if i < 0 || !w.claims[i].there {
		return
	}
	p := &w.pods[i]
	if p.state == podAbsent {
		w.claims[i] = fakeClaim{}
		return
	}
	w.claims[i].terminating = true
	p.served, p.state = p.state == podUp, podStopping
}

// keepVolumes has the file ask for the volumes that there are.
func (w *world) keepVolumes(*decision.Hold) {
	for i := range w.claims {
		c := &w.claims[i]
		if w.record.members[i] == 0 || !c.there || c.pending {
			continue
		}
		w.ask.large = w.ask.large || c.large
		if w.ask.class.differs(c.fast) && !w.ask.class.replaces() {
			w.ask.class = map[bool]askedClass{true: fastOnly, false: standardOnly}[c.fast]
		}
	}
	if w.unstorable() { // they are of two classes
		w.ask.class = classOpen
	}
}

// removeLearners removes those that the record does not speak of.
func (w *world) removeLearners(*decision.Hold) {
	for i := range w.seats {
		if s := &w.seats[i]; s.learner && w.record.joining.id != s.id {
			w.unseat(int8(i))
		}
	}
}

// deletePodOf deletes the pod of a member.
func (w *world) deletePodOf(i int8) {
	if i < 0 || w.pods[i].state == podAbsent {
		return
	}
	w.pods[i].served, w.pods[i].state = w.pods[i].state == podUp, podStopping
}

// bringSetBack restores the StatefulSet as it was, from a backup of the API.
func (w *world) bringSetBack(*decision.Hold) {
	n, v := memberCount(w), []int8{0: w.ask.variant, 4: v34, 5: v35, 6: v36, 7: v37}[w.version]
	for i := range w.pods {
		if w.pods[i].state != podAbsent && starts(w.pods[i].template) {
			v = w.pods[i].template
		}
	}
	w.set = fakeSet{there: true, replicas: n, partition: n, template: v, current: v}
}

// replaceWrong deletes the one copy that differs from all the others.
func (w *world) replaceWrong(*decision.Hold) {
	if w.corrupt {
		w.deleteClaim(0)
	}
}

// removeForeign removes what is in the way.
func (w *world) removeForeign(*decision.Hold) { w.foreign, w.missing = false, w.missing|1 }

// revert goes back to the commit before.
func (w *world) revert(h *decision.Hold) {
	if w.record.wasApplied && !w.record.vague {
		w.ask = w.record.applied
		return
	}
	w.chooseRelease(h)
}

// chooseRelease names a release in Git that every member can go to: what most of them run,
// where that can be.
func (w *world) chooseRelease(*decision.Hold) {
	w.choose(func(int8) bool { return true })
}

// chooseNamed names the release that the hold names.
func (w *world) chooseNamed(h *decision.Hold) {
	version := versionIn.FindString(h.Do)
	w.choose(func(v int8) bool { return variants[v].version == version })
}

// versionIn is a release that a hold names.
var versionIn = regexp.MustCompile(`\d+\.\d+\.\d+`)

// chooseLast asks for what the record says that the members ran last.
func (w *world) chooseLast(h *decision.Hold) {
	w.revert(h)
	was := w.ask
	for v := range int8(len(variants)) {
		w.ask.variant = v
		if situation.Of(w.desired(), state.Observed{}, noon).Settings() == word(w.record.settings) {
			return
		}
	}
	w.ask = was
}

// chooseOthers asks for what members run.
func (w *world) chooseOthers(*decision.Hold) {
	for i := range w.pods {
		if w.runs(int8(i)) {
			w.ask.variant = w.pods[i].template
		}
	}
}

// chooseTemplate keeps the release, and changes what does not start; or takes another
// release, where that one cannot be had.
func (w *world) chooseTemplate(*decision.Hold) {
	version := variants[w.ask.variant].version
	if !w.choose(func(v int8) bool { return variants[v].version == version }) {
		w.chooseRelease(nil)
	}
}

func (w *world) choose(fits func(int8) bool) bool {
	was := w.ask.variant
	for _, v := range []int8{w.set.current, w.set.template, v34, v35, v36, v37} {
		if w.ask.variant = v; fits(v) && v != v36Flush && starts(v) && !variants[v].refused && w.pathOpen() && (w.set.there || !w.outgrown()) {
			return true
		}
	}
	w.ask.variant = was
	return false
}

// upgrade asks for the next minor, or for more room first.
func (w *world) upgrade(*decision.Hold) {
	w.ask.variant, w.ask.state = v35, askRunning
	if w.alarm {
		w.ask.variant = v34Roomy
	}
}

// recover makes a cluster of what one member has: which steps lead there is walked through
// apart, in every state of a recovery.
func (w *world) recover(*decision.Hold) {
	after := runningWorld(1, w.set.current)
	after.ask, after.window, after.around, after.clock, after.rigid, after.barren = w.ask, w.window, w.around, w.clock, w.rigid, w.barren
	after.record.applied.variant = w.set.current
	*w = after
}

// startOver deletes what never held data, with a commit of what starts.
func (w *world) startOver(*decision.Hold) {
	w.chooseTemplate(nil)
	w.barren = [2]bool{}
	w.set, w.record, w.leader, w.elected, w.version = fakeSet{}, fakeRecord{}, -1, false, 0
	for i := range int8(most) {
		w.deleteClaim(i)
		w.seats[i] = seat{}
		if w.pods[i].state != podAbsent {
			w.pods[i].state = podStopping
		}
	}
}

// ordinalIn is the first ordinal that a hold names.
var ordinalIn = regexp.MustCompile(`orders-(\d)`)

func ordinalOf(h *decision.Hold) int8 {
	if h.Member != "" {
		return ordinal8(h.Member)
	}
	if m := ordinalIn.FindStringSubmatch(h.Message); m != nil {
		return int8(m[1][0] - '0')
	}
	return -1
}

// adviceOf is the number of the advice that a hold gives, or -1.
func (e *engine) adviceOf(h *decision.Hold) int {
	return slices.IndexFunc(e.advices, func(a advice) bool {
		return slices.Contains(strings.Fields(a.rules), h.Rule) && strings.Contains(h.Do, a.says) && strings.Contains(h.Message, a.about)
	})
}

// steps is how many holds a person may meet on the way to rest, and tries how many ways may
// be taken in all, where these lead back to each other.
const (
	steps = 8
	tries = 300
)

// endsWell lets a world come to rest, and a person do what holds say, until the cluster is
// what Git says then. It returns what is missing, or "". Where no way leads there, that is
// counted, and is a failure in the histories that are always the same.
func (e *engine) endsWell(w *world) string {
	if broken := e.settle(w); broken != "" || e.held == nil {
		return broken
	}
	h := e.held
	e.tries = tries
	broken := e.leave(w, h, steps)
	if broken != "" && !e.strict {
		e.tally.stuck[e.adviceOf(h)]++
		return ""
	}
	return broken
}

// leave takes the ways out of a hold, those last that give up data, until one leads to rest.
func (e *engine) leave(w *world, h *decision.Hold, left int) string {
	n := e.adviceOf(h)
	if n < 0 {
		return fmt.Sprintf("liveness: the hold of %s is no kind that has a way out: %s", h.Rule, h)
	}
	stuck := ""
	for _, x := range e.ways(n) {
		if e.tries--; e.tries < 0 {
			break
		}
		next := *w
		x.take(&next, h)
		broken := e.settle(&next)
		if broken == "" && e.held != nil {
			if broken = "held again by " + e.held.Rule; left > 0 && next != *w {
				broken = e.leave(&next, e.held, left-1)
			}
		}
		if broken == "" {
			e.tally.proven[wayName{n, x.name}]++
			*w = next
			return ""
		}
		stuck += "\n\t" + x.name + ": " + broken
	}
	return fmt.Sprintf("liveness: no way out of the hold of %s leads to rest: %s%s", h.Rule, h, stuck)
}

// ways are those of an advice, in the order in which they are tried.
func (e *engine) ways(n int) []exit { return e.advices[n].ways }

// wayName is a way out of the holds of an advice.
type wayName struct {
	advice int
	name   string
}

// provesWays wants each kind of hold to have been left by a way that it names.
func (t *tally) provesWays(test *testing.T) {
	for n, a := range advices() {
		proven := slices.ContainsFunc(a.ways, func(x exit) bool { return t.proven[wayName{n, x.name}] > 0 })
		if !proven && !a.seldom {
			test.Errorf("no way out of holds of %s that say %q has led to rest", a.rules, a.says)
		}
	}
}
