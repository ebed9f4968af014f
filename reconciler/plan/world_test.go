package plan

// most is how many ordinals a world of the simulation has room for.
const most = 5

// variant is one content of the cluster's file as far as the members' template
// goes: which etcd, and whether it runs. Its index is the template's name, too.
type variant struct {
	version string
	minor   int8
	// flush: every member saves its state beside its log at once.
	flush bool
	// unpulled: there is no such image. dies: etcd exits before it touches its
	// data, as it does on a flag that it does not know. refused: a release that
	// no cluster should be brought to.
	// barred: Kubernetes refuses the pod, as a quota or a policy does.
	unpulled, dies, refused, barred bool
	// roomy: a quota that the databases do not reach.
	roomy bool
}

// The variants that commits of the simulation choose from, and at the end those
// that only a stop on the way asks for, and a person who frees space.
var variants = []variant{
	v34:        {version: "3.4.34", minor: 4},
	v35:        {version: "3.5.35", minor: 5},
	v36:        {version: "3.6.16", minor: 6},
	v36None:    {version: "3.6.16", minor: 6, unpulled: true},
	v35Old:     {version: "3.5.34", minor: 5},
	v36Tuned:   {version: "3.6.16", minor: 6},
	v36Dies:    {version: "3.6.16", minor: 6, dies: true},
	v35Refused: {version: "3.5.1", minor: 5, refused: true},
	v37:        {version: "3.7.3", minor: 7},
	v37Early:   {version: "3.7.1", minor: 7},
	v36Barred:  {version: "3.6.16", minor: 6, barred: true},
	v36Flush:   {version: "3.6.16", minor: 6, flush: true},
	v34Roomy:   {version: "3.4.34", minor: 4, roomy: true},
}

const (
	v34 int8 = iota
	v35
	v36
	v36None
	v35Old
	v36Tuned
	v36Dies
	v35Refused
	v37
	v37Early // has no way down
	v36Barred
	v36Flush
	v34Roomy
)

// askable is how many of the variants a commit may ask for.
const askable = int(v36Flush)

// starts reports whether etcd runs with this template.
func starts(v int8) bool { return !variants[v].unpulled && !variants[v].dies && !variants[v].barred }

// ask is what the cluster's file says.
type ask struct {
	variant, replicas int8
	state             askedState
	// skip: no backup before an upgrade. stepwise: it may go through other releases.
	skip, stepwise bool
	soak           int16
	// broken: the file has errors.
	broken bool
	// wipe: the volumes of a deleted cluster go, too; sweep: those of removed
	// members.
	wipe, sweep bool
	// frozen: it asks for a change that has no safe way.
	frozen bool
	repair repairMode
	// surge: an only member is replaced by way of a second one.
	surge bool
	// large: volumes of twice the size.
	large bool
	class askedClass
}

// askedClass is what a file says of the class of volumes.
type askedClass int8

const (
	// classOpen names none.
	classOpen askedClass = iota
	// classFast and classStandard replace members whose volumes are of another class.
	classFast
	classStandard
	// fastOnly and standardOnly name the class, and replace nobody.
	fastOnly
	standardOnly
	classesAsked
)

func (c askedClass) fast() bool     { return c == classFast || c == fastOnly }
func (c askedClass) replaces() bool { return c == classFast || c == classStandard }

// differs reports whether a volume is of another class than the file names.
func (c askedClass) differs(fast bool) bool { return c != classOpen && c.fast() != fast }

// repairMode is spec.repair.mode.
type repairMode int8

const (
	repairAutomatic repairMode = iota
	repairOneByOne
	repairNever
)

// askedState is spec.state.
type askedState int8

const (
	askRunning askedState = iota
	askAsleep
	askDeleted
)

// windowState is how the maintenance windows of the world are.
type windowState int8

const (
	noWindows windowState = iota
	windowOpen
	windowClosed
)

// podState is where a pod is in its life.
type podState int8

const (
	podAbsent podState = iota
	podStarting
	podUp
	podDown // its etcd has ended, and is started again
	podStopping
)

// fakePod is a pod and the etcd in it.
type fakePod struct {
	state    podState
	template int8
	// served: it was up when it began to stop, and serves until it is gone.
	served bool
	// heard: it has had a leader since it started; until then it answers nobody.
	heard bool
	// ran: etcd was started in it. compared: it then compared its data with that of all others.
	ran, compared bool
	// kept: a finalizer keeps it, since readyAt, although its etcd has ended.
	kept bool
	// cut: its peers do not hear it, while clients and its kubelet do.
	cut bool
	// saved is how often its etcd has saved its state since it started, and pending
	// says that it is about to, as there is something new in its log.
	saved            int8
	pending          bool
	uid              int16
	created, readyAt int32
}

// fakeClaim is the volume of an ordinal.
type fakeClaim struct {
	there bool
	uid   int16
	// data is the ID of the member whose log is on it, 0 for none, strangers for
	// somebody else's.
	data int8
	// held is whose data quorate has written on the claim, as data.
	held int8
	// behind: the member has not applied what the others have; short: its log
	// lacks entries that the cluster has committed.
	behind, short bool
	// corrupt: etcd cannot read it. pinned: its node is gone, and it is nowhere
	// else.
	// unheard: the node does not report, whatever runs on it. shut: it takes no new pod.
	corrupt, pinned, unheard, shut bool
	// older: it was put back to a snapshot from before it was noted how far the member had written.
	older bool
	// full: its database has reached its quota, and most of that can be given back,
	// unless it is laden: then it needs the room for what it holds.
	full, laden bool
	// ran is the newest minor that has run on it, and low says that its storage was
	// brought down for a downgrade.
	ran int8
	low bool
	// raw: its log holds entries of 3.5 that the member reads when it starts.
	raw bool
	// terminating: it is deleted as soon as no pod uses it.
	terminating bool
	// large: it asks for twice the size; grown: the volume has it. fast: it is of the
	// other class. pending: there is no volume behind it.
	large, grown, fast, pending bool
	// since is when the pod found it as it is, created when the claim was made.
	since, created int32
}

// strangers is the data of somebody else.
const strangers int8 = 127

// seat is an entry of etcd's member list. There is at most one for the peer URL
// of an ordinal.
type seat struct {
	id      int8
	learner bool
	// named: it has been started.
	named bool
}

// fakeSet is the StatefulSet.
type fakeSet struct {
	there, settled      bool
	replicas, partition int8
	template, current   int8
	// byHand: somebody else has set its replicas.
	byHand bool
	// large and fast are what it asks for new volumes; open: it names no class. made is when it was.
	large, fast, open bool
	made              int32
}

// fakeTrial is the trial of a class.
type fakeTrial struct {
	there, fast, done bool
	since             int32
}

// fakeRecord is the cluster's record.
type fakeRecord struct {
	there, formed bool
	// lost: another writer has deleted it.
	lost     bool
	founders int8
	members  [most]int8
	backup   fakeBackup
	// rollBackup is that of the last roll, where backup is a later one.
	rollBackup fakeBackup
	applied    ask
	// wasApplied: applied means something; settings is the number of their hash.
	wasApplied bool
	settings   int8
	// release is the number of the version that it was applied with, 0 for that of
	// applied.
	release int8
	// vague: it was recorded for a deletion, and no spec was applied.
	vague bool

	joining fakeJoining
	leaving fakeLeaving
	// replacing is an ordinal and one.
	replacing int8
	// downgrade is the minor of the downgrade that it speaks of, 0 for none.
	downgrade           int8
	downgradeSince      int32
	retired             [most]int8
	failed              fakeFailed
	hibernated, deleted bool

	// bornOn is the lowest minor that the cluster has run, 0 for unknown, and
	// flushed are the members whose logs hold nothing from before 3.6.
	bornOn  int8
	flushed [most]int8
	nudged  fakeNudged

	// compacted is the revision of the last compaction, 0 for none, and trimmed are
	// the members that were defragmented since.
	compacted   int16
	compactedAt int32
	trimmed     [most]bool

	owner fakeOwner

	// seenAt is when times ahead of the clock were noted, 0 for never, and seenTo the
	// furthest of them.
	seenAt, seenTo int32
}

// fakeNudged is that something was added to the log.
type fakeNudged struct {
	there       bool
	template    int8
	before      [most]int8
	since, last int32
}

// fakeJoining is the intent to add a member.
type fakeJoining struct {
	there, promoting, replace bool
	i, id                     int8
	since                     int32
}

// fakeLeaving is the intent to remove one.
type fakeLeaving struct {
	there, replace, serving, asked bool
	i, id                          int8
	since                          int32
}

// fakeFailed is a join that failed.
type fakeFailed struct {
	there    bool
	i, times int8
	at       int32
}

// fakeBackup is a backup that is recorded.
type fakeBackup struct {
	there bool
	// purpose is what it was taken for, a number of purposes.
	purpose int8
	// foreign: it is of another cluster.
	foreign bool
	at      int32
}

// world is a Kubernetes and an etcd small enough to explore. Every field is a
// value, so that copying a world forks it, and equal worlds have equal fields.
type world struct {
	clock int32
	ask   ask

	record  fakeRecord
	secrets bool
	// missing and drifted are bits, one for each of the three objects.
	missing, drifted uint8
	// foreign: somebody else's object is in the way.
	foreign bool
	window  windowState

	set    fakeSet
	pods   [most]fakePod
	claims [most]fakeClaim
	uids   int16
	ids    int8

	seats [most]seat
	// leader is its ordinal, or -1; elected says that there has been one.
	leader  int8
	elected bool
	// version is the minor of the cluster version; 0 before there is one.
	version int8
	// downgrading is the minor that etcd goes down to; 0 for none.
	downgrading int8
	alarm       bool
	// revision of the newest key, compacted that of the oldest that is kept, and
	// told what members say of that: they do not before the next write. heavy: what
	// fills the databases are keys, and no history.
	revision, compacted, told int16
	heavy                     bool
	// corrupt: member 0 holds other data than the others.
	// corruptLate: a comparison that a roll goes by was before that.
	corrupt, corruptLate bool
	bucketBad            bool
	// rigid: no volume of the first class grows. admits: what refused pods does no more.
	rigid, admits bool
	// barren: nobody makes volumes of the class standard, or fast.
	barren [2]bool
	trial  fakeTrial

	around surroundings

	// closed: the disruption budget lets no pod go.
	closed bool

	// What people and faults have done; only the judge and the settling ask.
	tampered bool
	// unguarded: no guard stands before etcd in the pods.
	unguarded bool
	// earlier is the record as it was once, which somebody may restore from a backup; while
	// outdated, it is what was last.
	earlier  fakeRecord
	outdated bool
	// unnoted: nobody has noted how far the members have written.
	unnoted bool
}

// newWorld is a world in which a file names a cluster that does not exist.
func newWorld(n int8) world {
	return world{ask: ask{variant: v35, replicas: n}, leader: -1, missing: 7, revision: 2}
}

// runningWorld is a formed, healthy cluster that is what its file says.
func runningWorld(n, v int8) world {
	w := newWorld(n)
	w.ask.variant, w.missing, w.secrets = v, 0, true
	w.set = fakeSet{there: true, settled: true, replicas: n, partition: n, template: v, current: v, open: true, made: -9000}
	w.record = fakeRecord{there: true, formed: true, founders: n, applied: w.ask, wasApplied: true}
	for i := range n {
		w.uids++
		w.ids++
		id := w.ids
		w.pods[i] = fakePod{state: podUp, template: v, ran: true, uid: w.uids, created: -9000, readyAt: -9000}
		w.claims[i] = fakeClaim{there: true, uid: w.uids, data: id, held: id, since: -9000, created: -9000, ran: variants[v].minor, raw: variants[v].minor < 6}
		w.seats[i] = seat{id: id, named: true}
		w.record.members[i] = id
	}
	w.leader, w.elected, w.version = n-1, true, variants[v].minor
	return w
}

// asking is the world with another wish for the members' template.
func (w world) asking(v int8) world {
	w.ask.variant = v
	return w
}

// unstorable reports whether the file asks for what the volumes that there are cannot become.
func (w *world) unstorable() bool {
	for i := range w.claims {
		c := &w.claims[i]
		if w.record.members[i] == 0 || !c.there || c.pending || c.terminating {
			continue
		}
		if c.large && !w.ask.large || w.ask.class.differs(c.fast) && !w.ask.class.replaces() {
			return true
		}
	}
	return false
}

// makes reports whether somebody makes volumes of a class.
func (w *world) makes(fast bool) bool {
	if fast {
		return !w.barren[1]
	}
	return !w.barren[0]
}

// own reports whether the volume of an ordinal is known to hold what a member has left.
func (w *world) own(i int8) bool { return w.claims[i].held != 0 && w.claims[i].held != strangers }

// runs reports whether the etcd of an ordinal runs and is a member that its peers hear.
func (w *world) runs(i int8) bool { return w.answers(i) && !w.pods[i].cut }

// answers reports whether the etcd of an ordinal runs, whoever hears it.
func (w *world) answers(i int8) bool {
	p := &w.pods[i]
	alive := p.state == podUp || (p.state == podStopping && p.served)
	return alive && w.seats[i].id != 0 && w.claims[i].data == w.seats[i].id
}

// votes counts the voters, and those of them that run.
func (w *world) votes() (voters, up int8) {
	for i := range w.seats {
		if s := &w.seats[i]; s.id != 0 && !s.learner {
			voters++
			if w.runs(int8(i)) {
				up++
			}
		}
	}
	return voters, up
}

// hasQuorum reports whether the members can commit.
func (w *world) hasQuorum() bool {
	voters, up := w.votes()
	return voters > 0 && up >= voters/2+1
}

// ready reports whether Kubernetes thinks well of a pod: its probe wants a leader.
func (w *world) ready(i int8) bool {
	return w.pods[i].state == podUp && w.runs(i) && w.leader >= 0 && !w.claims[i].unheard
}

// allReady reports whether all pods that there should be are there and ready.
func (w *world) allReady() bool {
	for i := range w.set.replicas {
		if !w.ready(i) {
			return false
		}
	}
	return w.set.there
}

// elect keeps a leader while there is a quorum, and reports whether the members
// have lost what they had committed.
func (w *world) elect() (lost bool) {
	if !w.hasQuorum() {
		w.leader = -1
		return false
	}
	for i := range w.pods {
		w.pods[i].heard = w.pods[i].heard || w.runs(int8(i))
	}
	if w.leader >= 0 && w.runs(w.leader) && !w.seats[w.leader].learner {
		return false
	}
	w.leader = -1
	for i := range w.seats {
		if w.runs(int8(i)) && !w.seats[i].learner && !w.claims[i].short {
			w.leader, w.elected = int8(i), true
			return false
		}
	}
	return true
}

// commit lets the members that can write something: those that do not run lack
// it from then on.
func (w *world) commit() {
	voters, have := int8(0), int8(0)
	for i := range w.seats {
		if s := &w.seats[i]; s.id != 0 && !s.learner {
			voters++
			if w.runs(int8(i)) && !w.claims[i].short {
				have++
			}
		}
	}
	if w.leader < 0 || have < voters/2+1 {
		return
	}
	for i := range w.claims {
		if c := &w.claims[i]; c.data != 0 && !w.runs(int8(i)) {
			c.short, c.behind = true, true
		}
	}
	w.writeLogs()
}
