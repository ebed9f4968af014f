package plan

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// engine is a quorate of the simulation: a rule table and an executor, each of
// which a test may spoil. It remembers nothing that a decision rests on; what it
// keeps saves work only.
type engine struct {
	rules []rule
	hand  hand

	asked    map[asked]state.Desired
	hashes   map[ask]string
	settings map[ask]int8
	rosters  map[[most]int8]map[string]string
	pods     []state.Pod
	volumes  []state.Volume
	objects  []state.Object
	rounds   [2]state.Round
	moves    []move
	tally    *tally
	// daemon is which of two it is.
	daemon int8
	// witness sees what every decision is made from.
	witness func(state.Desired, state.Observed, time.Time)
	// telling keeps the last decision as a scenario, in told.
	telling bool
	told    string
	// held is the hold that was the last word about a world, nil for one that came to rest
	// as Git says.
	held *decision.Hold
	// strict: a hold that no way leads out of is a failure.
	strict bool
	// tries is how many more ways out of the holds of a history may be taken.
	tries int
	// advices are what holds tell people.
	advices []advice
	// due is the template of the stop that was due when it decided last.
	due string
	// exclusive: the budget was to keep every pod then.
	exclusive bool
	// calls are on their way.
	calls []call
}

// asked is a wish at a time at which its windows are open or not.
type asked struct {
	ask      ask
	window   windowState
	shared   bool
	takeOver fakeOwner
}

func newEngine(rules []rule) *engine {
	return &engine{
		rules: rules, asked: map[asked]state.Desired{}, rosters: map[[most]int8]map[string]string{}, hashes: map[ask]string{}, settings: map[ask]int8{},
		tally: &tally{held: map[int]int{}, proven: map[wayName]int{}, stuck: map[int]int{}}, advices: advices(),
	}
}

// desired is what Git says in this world.
func (e *engine) desired(w *world) state.Desired {
	key := asked{w.ask, w.window, w.around.shared, w.around.takeOver}
	d, known := e.asked[key]
	if !known {
		d = w.desired()
		e.asked[key] = d
	}
	if w.around.shared {
		d.Owner = fakeOwner{who: e.daemon + 1}.owner()
	}
	return d
}

func (w *world) desired() state.Desired {
	v := variants[w.ask.variant]
	d := state.Desired{
		Namespace: "db", Name: "orders", Commit: "c0ffee", SpecHash: w.ask.hash(),
		Template: templates[w.ask.variant], BackupURL: "s3://backups/{{ .UID }}.db",
		Spec: schema.ClusterSpec{Version: v.version, Replicas: int32(w.ask.replicas)},
	}
	switch w.window {
	case windowOpen:
		d.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("0 0 * * *", "24h", "UTC")}
	case windowClosed:
		d.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("0 0 1 9 *", "24h", "UTC")}
	case noWindows:
	}
	d.Spec.State = []schema.State{schema.StateRunning, schema.StateHibernated, schema.StateDeleted}[w.ask.state]
	d.Spec.Image.Repository = "etcd-" + templates[w.ask.variant]
	d.Spec.Repair.Mode = []schema.RepairMode{schema.RepairAutomatic, schema.RepairOneByOne, schema.RepairNever}[w.ask.repair]
	d.Spec.Storage.Size = sizes[w.ask.large]
	if w.ask.class != classOpen {
		d.Spec.Storage.StorageClassName = new(classes[w.ask.class.fast()])
	}
	if w.ask.class.replaces() {
		d.Spec.Storage.ClassChange = schema.ClassChangeReplace
	}
	if w.ask.wipe {
		d.Spec.Deletion.Volumes = schema.VolumesDelete
	}
	if w.ask.sweep {
		d.Spec.Storage.RemovedVolumes = schema.VolumesDelete
	}
	if v.roomy {
		quota := resource.MustParse("8Gi")
		d.Spec.Etcd.QuotaBackendBytes = &quota
	}
	d.Spec.Upgrade.Backup = schema.BackupRequired
	d.Waypoints = stopsOf(w.ask.variant)
	d.Spec.TakeOver = w.around.takeOver.text()
	if w.ask.stepwise {
		d.Spec.Upgrade.Path = schema.PathStepwise
	}
	if w.ask.skip {
		d.Spec.Upgrade.Backup = schema.BackupSkip
	}
	d.Spec.Upgrade.Soak = seconds(int32(w.ask.soak))
	if w.ask.surge {
		d.Spec.Upgrade.MaxSurge = 1
	}
	if w.ask.broken {
		d.Problems = []string{"orders.yaml:3: spec.version: not a version"}
	}
	return d
}

// hash is the spec's hash: what the wish says, but for errors in its file.
func (w ask) hash() string {
	w.broken = false
	return strings.ReplaceAll(fmt.Sprintf("spec%v", w), " ", "-")
}

// hash is the same, made once.
func (e *engine) hash(a ask) string {
	text, known := e.hashes[a]
	if !known {
		text = a.hash()
		e.hashes[a] = text
	}
	return text
}

// sight is what one pass of quorate goes by.
type sight struct {
	// first and second are the worlds that the two looks at the members saw;
	// caches is the world that the caches of Kubernetes' objects show.
	first, second, caches *world
	// silent are the members whose answers were lost, a bit each, in the second
	// look.
	silent uint8
	// blind says that quorate reached no member in either look, whatever the members and
	// their kubelets see.
	blind bool
	// daemon is which of two it is, 0 or 1.
	daemon int8
	// evicts is an ordinal and one whose eviction is granted, where the budget allows that, after the
	// last look and before what follows from it.
	evicts int8
}

// plainly is the sight of a quorate whose eyes are quick.
func plainly(w *world) sight { return sight{first: w, second: w, caches: w} }

// observed is what quorate sees. The record, the StatefulSet and the pods are
// those of the world live, which are the caches' when it decides, and those of
// the API server itself when it decides again; all else is from the caches.
func (e *engine) observed(live *world, s sight) state.Observed {
	o := state.Observed{Auth: &state.Auth{}, Objects: e.lookAtObjects(live), Record: e.lookAtRecord(live)}
	s.caches.lookAround(&o)
	if !s.caches.secrets {
		o.Certificates.Missing = missingSecrets
	}
	e.volumes = e.volumes[:0]
	for i := range s.caches.claims {
		if c := &s.caches.claims[i]; c.there {
			v := claimsSeen[i]
			v.Created = noonPlus(c.created)
			v.UID, v.Terminating, v.Holds = podUID(c.uid), c.terminating, memberIDs[c.held%strangers]
			if c.held == strangers {
				v.Holds = state.HoldsForeign
			}
			s.caches.lookAtSize(c, &v)
			e.volumes = append(e.volumes, v)
		}
	}
	o.Volumes, o.Trial = e.volumes, s.caches.lookAtTrial()
	if s.caches.secrets && s.caches.ask.state == askDeleted {
		o.Leftovers = leftovers
	}
	e.lookAtPods(live, &o)
	if live.set.there {
		live.lookAtSet(&o)
	}
	if !s.caches.set.there && !s.caches.record.formed {
		return o
	}
	e.round(s.first, &e.rounds[0], true, 0)
	e.round(s.second, &e.rounds[1], false, s.silent)
	if s.first.clock >= s.second.clock {
		e.rounds[0].At = noonPlus(s.second.clock - 1)
	}
	if s.blind {
		unseen(&e.rounds[0])
		unseen(&e.rounds[1])
	}
	o.Rounds = e.rounds[:]
	return o
}

// unseen is a round that reached nobody: what the members see of each other, and the
// kubelets of them, does not matter to it.
func unseen(r *state.Round) {
	for i := range r.Members {
		r.Members[i] = state.Member{Name: r.Members[i].Name, Problem: "context deadline exceeded"}
	}
	*r = state.Round{At: r.At, Deep: r.Deep, Problem: "context deadline exceeded", Members: r.Members}
}

// lookAtSize is what a claim says of its size and class.
func (w *world) lookAtSize(c *fakeClaim, v *state.Volume) {
	v.Size, v.Capacity, v.Class, v.Bound, v.Pending = bytesOf(c.large), bytesOf(c.grown), classes[c.fast], !c.pending, c.pending
	if c.pending {
		v.Capacity = 0
	}
	if w.rigid && !c.fast {
		v.NotExpandable = "its StorageClass does not allow it"
	}
}

// lookAtTrial is what quorate sees of the trial of the class that it asks for.
func (w *world) lookAtTrial() state.Trial {
	switch t := w.trial; {
	case !t.there || t.fast != w.ask.class.fast():
		return state.Trial{}
	case t.done:
		return state.Trial{State: state.TrialDone}
	case w.clock-t.since > 900:
		return state.Trial{State: state.TrialFailed, Why: "no pod had it within 15m0s", Job: "orders-trial"}
	default:
		return state.Trial{State: state.TrialRunning, Since: noonPlus(t.since)}
	}
}

// sizes and classes are those that a file may ask for.
var (
	sizes   = map[bool]resource.Quantity{false: resource.MustParse("8Gi"), true: resource.MustParse("16Gi")}
	classes = map[bool]string{false: "standard", true: "fast"}
)

func bytesOf(large bool) int64 {
	if large {
		return 16 << 30
	}
	return 8 << 30
}

// claimsSeen are what the claims of the ordinals look like.
var claimsSeen = func() (all [most]state.Volume) {
	for i := range all {
		all[i] = memberVolume(naming.Claim("", podNames[i]), 8<<30)
	}
	return all
}()

var leftovers = []state.Object{{Kind: "Secret", Name: "orders-ca", State: state.ObjectInSync}}

var missingSecrets = []string{"orders-ca"}

func (e *engine) lookAtObjects(w *world) []state.Object {
	e.objects = e.objects[:0]
	for i, name := range objectNames {
		object := state.Object{Kind: "Service", Name: name, State: state.ObjectInSync}
		switch {
		case w.foreign && i == 0:
			object.State, object.Detail = state.ObjectForeign, "made by helm"
		case w.missing&(1<<i) != 0:
			object.State = state.ObjectMissing
		case w.drifted&(1<<i) != 0:
			object.State, object.Detail = state.ObjectDrifted, "spec.ports"
			if i == 1 {
				object.Fight = w.fight()
			}
		}
		e.objects = append(e.objects, object)
	}
	if w.set.there && w.set.replicas != w.renderedPods() {
		e.objects = append(e.objects, state.Object{Kind: "StatefulSet", Name: "orders", State: state.ObjectDrifted, Detail: ".spec.replicas"})
	}
	return e.objects
}

// renderedPods is how many pods the StatefulSet is rendered with: those of the recorded members, and
// while these come or go as many as there are.
func (w *world) renderedPods() int8 {
	r := &w.record
	if !r.there || !r.formed || r.joining.there || r.leaving.there || r.replacing != 0 || r.retired != [most]int8{} || r.hibernated || r.deleted {
		return w.set.replicas
	}
	highest := int8(0)
	for i, id := range r.members {
		if id != 0 {
			highest = int8(i)
		}
	}
	return highest + 1
}

// budget is the kind of the object that says how many pods others may stop.
const budget = "PodDisruptionBudget"

// lookAtBudget compares the budget with what is wanted of it, and tells whether that is to keep
// every pod.
func (w *world) lookAtBudget(d state.Desired, o *state.Observed, now time.Time) (exclusive bool) {
	if !w.record.formed || !w.set.there || w.missing != 0 {
		return false
	}
	exclusive = situation.Exclusive(d.Spec, *o, now)
	object := state.Object{Kind: budget, Name: "orders", State: state.ObjectInSync}
	if w.closed != exclusive {
		object.State, object.Detail, object.Weight = state.ObjectDrifted, ".spec.minAvailable", state.WeightMembers
	}
	o.Objects = append(o.Objects, object)
	return exclusive
}

func (w *world) lookAtSet(o *state.Observed) {
	s := &w.set
	o.Set = &state.Set{
		UID: "set", Replicas: int32(s.replicas), Partition: int32(s.partition), Settled: s.settled,
		Template: templates[s.template], Version: variants[s.template].version,
		CurrentTemplate: templates[s.current], CurrentVersion: variants[s.current].version,
		ClaimSize: bytesOf(s.large),
	}
	if o.Set.Created = noonPlus(s.made); !s.open {
		o.Set.ClaimClass = classes[s.fast]
	}
	for i := range s.replicas {
		if w.barred(i) {
			if o.Set.Refusal == nil {
				o.Set.Refusal = &state.PodRefusal{Why: "exceeded quota", Since: noonPlus(w.clock - 60), At: noonPlus(w.clock)}
			}
			o.Set.Refusal.Pods = append(o.Set.Refusal.Pods, podNames[i])
		}
	}
	if w.ask.frozen {
		o.Set.Immutable = changesOf("spec.tls.secrets")
	}
	if s.byHand {
		o.Set.ScaledBy = "kubectl"
	}
}

// lookAtPods finds them also where the StatefulSet is gone.
func (e *engine) lookAtPods(w *world, o *state.Observed) {
	e.pods = e.pods[:0]
	for i := int8(most - 1); i >= 0; i-- {
		if w.pods[i].state != podAbsent {
			e.pods = append(e.pods, w.lookAtPod(i))
		}
	}
	o.Pods = e.pods
}

func (w *world) lookAtPod(i int8) state.Pod {
	p := &w.pods[i]
	out := state.Pod{
		Name: podNames[i], Ordinal: int32(i), UID: podUID(p.uid),
		Template: templates[p.template], Version: variants[p.template].version,
		Ready: w.ready(i), Terminating: p.state == podStopping,
		Created: noonPlus(p.created), ReadySince: noonPlus(p.readyAt), Ran: p.ran,
	}
	if p.state == podUp {
		out.RunsSince = out.ReadySince
	}
	if p.kept {
		out.Finalizers, out.GoingSince = "example.com/kept", noonPlus(p.readyAt)
	}
	w.lookAtTrouble(i, &out)
	return out
}

// round is what the members say in this world.
func (e *engine) round(w *world, r *state.Round, deep bool, silent uint8) {
	*r = state.Round{At: noonPlus(w.clock), Deep: deep, Members: r.Members[:0]}
	if w.leader < 0 {
		r.Problem = "no linearizable answer"
		w.alone(r)
		return
	}
	r.ClusterID = "c1"
	if w.version > 0 {
		r.ClusterVersion = minorText[w.version]
	}
	if w.alarm {
		r.Alarms = noSpaceAlarm
	}
	r.Listened = true
	if w.downgrading > 0 {
		r.Downgrading, r.DowngradeTarget = true, lineText[w.downgrading]
	}
	for i := range w.seats {
		s := &w.seats[i]
		if s.id == 0 {
			continue
		}
		m := state.Member{ID: memberIDs[s.id], Learner: s.learner, Term: 7, CommitIndex: 100, AppliedIndex: 100}
		if s.named {
			m.Name = podNames[i]
		}
		switch {
		case !w.answers(int8(i)):
			m.Problem = "connection refused"
		case silent&(1<<i) != 0:
			m.Problem = "context deadline exceeded"
		case w.pods[i].cut:
			m.Version, m.Problem = variants[w.pods[i].template].version, "no leader"
		default:
			m.Version, m.Leader = variants[w.pods[i].template].version, memberIDs[w.seats[w.leader].id]
		}
		if m.Problem != "" {
			m.Peers = map[bool]state.Peers{true: state.PeersLinked, false: state.PeersApart}[w.runs(int8(i))]
		}
		if w.claims[i].behind {
			m.AppliedIndex = 95
		}
		m.Snapshots = int64(w.pods[i].saved)
		m.DBSize, m.DBInUse = 2<<20, 1<<20
		if variants[w.pods[i].template].roomy {
			m.Quota = 8 << 30
		}
		if w.claims[i].full {
			m.DBSize = 3 << 30
		}
		if w.claims[i].laden {
			m.DBInUse = 3 << 30
		}
		m.Revision, m.HashRevision, m.CompactRevision = int64(w.revision), int64(w.revision), int64(w.told)
		if v := variants[w.pods[i].template]; m.Version != "" && v.minor >= 6 {
			m.StorageVersion = minorText[v.minor]
			if w.claims[i].low {
				m.StorageVersion = minorText[w.downgrading]
			}
		}
		if w.corrupt && i == 0 && m.Problem == "" {
			m.Hash = 1
		}
		r.Members = append(r.Members, m)
	}
}

// alone is what members say that have no leader: each tells of itself only.
func (w *world) alone(r *state.Round) {
	for i := range w.pods {
		p := &w.pods[i]
		switch {
		case p.state == podAbsent:
		case w.answers(int8(i)) && p.state == podUp && !p.heard:
			r.Members = append(r.Members, state.Member{Name: podNames[i], Problem: "context deadline exceeded"})
		case w.answers(int8(i)) && p.state == podUp:
			r.Members = append(r.Members, state.Member{Name: podNames[i], ID: memberIDs[w.seats[i].id], Version: variants[p.template].version, Term: 7, CommitIndex: 100, AppliedIndex: 100, Problem: "no leader"})
		default:
			r.Members = append(r.Members, state.Member{Name: podNames[i], Problem: "connection refused"})
		}
	}
}

var noSpaceAlarm = []state.Alarm{{Kind: state.NoSpace, MemberID: memberIDs[1]}}

var lineText = []string{4: "3.4", 5: "3.5", 6: "3.6", 7: "3.7"}

var minorText = []string{4: "3.4.0", 5: "3.5.0", 6: "3.6.0", 7: "3.7.0"}

// observed is what a quorate sees whose first look was at the world before.
func (w *world) observed(before *world) state.Observed {
	return newEngine(nil).observed(w, sight{first: before, second: w, caches: w})
}

// now is the world's time.
func (w *world) now() time.Time { return noonPlus(w.clock) }
