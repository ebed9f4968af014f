package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/schema"
)

// variant is one content of the cluster's file: which etcd, and whether its
// image exists.
type variant struct {
	version string
	broken  bool
}

// The variants that commits of the simulation choose from. The index is the
// template, too.
var variants = []variant{
	{version: "3.4.34"},
	{version: "3.5.35"},
	{version: "3.6.16"},
	{version: "3.6.16", broken: true},
	{version: "3.5.34"},
}

// podState is where a pod is in its life.
type podState int8

const (
	podAbsent podState = iota
	podStarting
	podUp
	podDown // crashed, comes back with the same template
	podStopping
)

// fakePod is a pod and the member in it. It is comparable, so that a whole
// world can be the key of a map.
type fakePod struct {
	state    podState
	template int8
	uid      int8
	// behind: the member has not applied what the others have.
	behind bool
	// lowered: it has brought its storage down for the downgrade.
	lowered bool
	// readyAt in seconds; only kept by the random simulation.
	readyAt int32
}

// world is a Kubernetes and an etcd small enough to explore: every field is a
// value, so that copying a world forks it.
type world struct {
	n      int8
	git    int8 // the variant that Git asks for
	clock  int32
	policy schema.BackupPolicy

	record, formed, secrets bool
	objects                 [3]bool
	foreign                 bool // an object or volume that is somebody else's
	recordLost              bool
	fileBroken              bool
	scaled                  bool // Git asks for what no StatefulSet can take
	asleep                  bool // Git asks for what cannot be done yet
	tampered                bool // somebody has lowered the partition to 0
	window                  windowState

	set, settled      bool
	template, current int8
	partition         int8

	pods   [3]fakePod
	uids   int8
	leader int8 // ordinal, or -1
	// downgrading is the variant whose minor a downgrade goes to; -1 for none.
	downgrading int8
	version     int8 // the variant whose minor is the cluster version; -1 before

	backup    int8 // the variant that the recorded backup was taken for; -1 for none
	down      bool // it was taken for a downgrade
	noted     int8 // the variant of the recorded downgrade; -1 for none
	bucketBad bool
	applied   int8 // the variant that was applied; -1 for none
	soak      int32
}

// windowState is how the maintenance windows of the world are.
type windowState int8

const (
	noWindows windowState = iota
	windowOpen
	windowClosed
)

// turn opens the window that is closed, and closes the one that is open.
func (w *world) turn() {
	switch w.window {
	case windowOpen:
		w.window = windowClosed
	case windowClosed:
		w.window = windowOpen
	case noWindows:
	}
}

// windows are what the file says, so that they are open or closed now.
func (w *world) windows() []schema.MaintenanceWindow {
	switch w.window {
	case windowOpen:
		return []schema.MaintenanceWindow{windowOf("0 0 1 3 *", "168h", "UTC")}
	case windowClosed:
		return []schema.MaintenanceWindow{windowOf("0 0 1 9 *", "168h", "UTC")}
	case noWindows:
	}
	return nil
}

func newWorld(n int8) world {
	return world{n: n, git: 1, policy: schema.BackupRequired, leader: -1, version: -1, downgrading: -1, backup: -1, noted: -1, applied: -1}
}

// runningWorld is a formed, healthy cluster at variant v.
func runningWorld(n, v int8) world {
	w := newWorld(n)
	w.git, w.record, w.formed, w.secrets, w.set, w.settled = v, true, true, true, true, true
	w.objects = [3]bool{true, true, true}
	w.template, w.current, w.applied, w.version = v, v, v, v
	for i := range n {
		w.uids++
		w.pods[i] = fakePod{state: podUp, template: v, uid: w.uids}
	}
	w.leader, w.partition = n-1, n
	return w
}

func (w *world) up(i int8) bool { return w.pods[i].state == podUp || w.pods[i].state == podStopping }

func (w *world) upCount() int8 {
	var n int8
	for i := range w.n {
		if w.up(i) {
			n++
		}
	}
	return n
}

func (w *world) hasQuorum() bool { return w.upCount() >= w.n/2+1 }

// now is the simulation's time.
func (w *world) now() time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(w.clock) * time.Second)
}

// desired is what Git says in this world.
func (w *world) desired() Desired {
	v := variants[w.git]
	d := Desired{
		Namespace: "db", Name: "orders", Commit: fmt.Sprintf("commit-%d", w.git),
		SpecHash: fmt.Sprintf("spec-%d", w.git), Template: templateOf(w.git), BackupURL: "s3://backups/{{ .UID }}.db",
		Spec: schema.ClusterSpec{Version: v.version, Replicas: int32(w.n), Maintenance: w.windows()},
	}
	if w.asleep {
		d.Spec.Backup.Destination.Encryption.Recipients = []string{"age1"}
	}
	d.Spec.Upgrade.Backup = w.policy
	d.Spec.Upgrade.Soak = seconds(w.soak)
	if w.fileBroken {
		d.Problems = []string{"orders.yaml:3: spec.version: not a version"}
	}
	return d
}

func templateOf(v int8) string { return fmt.Sprintf("template-%d", v) }

// observed is what quorate sees of this world: before is what the world was a
// moment ago, for the first of the two looks.
func (w *world) observed(before *world) Observed {
	o := Observed{}
	for i, there := range w.objects {
		state := ObjectInSync
		if !there {
			state = ObjectMissing
		}
		o.Objects = append(o.Objects, Object{Kind: "Service", Name: fmt.Sprintf("object-%d", i), State: state})
	}
	if w.foreign {
		o.Objects[0].State = ObjectForeign
	}
	if !w.secrets {
		o.Certificates.Missing = []string{"orders-ca"}
	}
	if w.record && !w.recordLost {
		o.Record = w.observedRecord()
	}
	if !w.set {
		return o
	}
	o.Set = &Set{
		UID: "set", Replicas: int32(w.n), Partition: int32(w.partition), Settled: w.settled,
		Template: templateOf(w.template), Version: variants[w.template].version,
		CurrentTemplate: templateOf(w.current), CurrentVersion: variants[w.current].version,
	}
	if w.scaled {
		o.Set.Immutable = []string{"spec.tls.mode"}
	}
	for i := w.n - 1; i >= 0; i-- {
		if w.pods[i].state != podAbsent {
			o.Pods = append(o.Pods, w.observedPod(i))
		}
	}
	if before != nil {
		o.Rounds = append(o.Rounds, before.round(before.now(), true))
	}
	o.Rounds = append(o.Rounds, w.round(w.now(), false))
	if before != nil {
		o.Rounds[0].At = w.now().Add(-time.Second)
	}
	return o
}

func (w *world) observedRecord() *Record {
	r := &Record{}
	if w.formed {
		r.ClusterID, r.Members = "c1", map[string]string{}
		for i := range w.n {
			r.Members[podName("orders", int32(i))] = memberID(i)
		}
	}
	if w.backup >= 0 {
		r.Backup = &Backup{ClusterID: "c1", For: variants[w.backup].version, Time: w.now()}
		if w.down {
			r.Backup.For = DowngradeTo(variants[w.backup].version)
		}
	}
	if w.noted >= 0 {
		r.Downgrade = &Downgrade{Line: minorOf(w.noted), Since: w.now()}
	}
	if w.applied >= 0 {
		r.Applied = &Applied{SpecHash: fmt.Sprintf("spec-%d", w.applied), Version: variants[w.applied].version}
	}
	return r
}

func memberID(i int8) string { return fmt.Sprintf("m%d", i) }

func (w *world) observedPod(i int8) Pod {
	p := w.pods[i]
	out := Pod{
		Name: podName("orders", int32(i)), Ordinal: int32(i), UID: fmt.Sprintf("pod-%d", p.uid),
		Template: templateOf(p.template), Version: variants[p.template].version,
		Ready: p.state == podUp, Terminating: p.state == podStopping, Created: w.now(),
		Ran: p.state != podStarting,
	}
	out.ReadySince = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(p.readyAt) * time.Second)
	if p.state == podStarting && variants[p.template].broken {
		out.Trouble, out.Unpulled = "ImagePullBackOff", true
	}
	return out
}

// round is what the members say in this world.
func (w *world) round(at time.Time, deep bool) Round {
	r := Round{At: at, Deep: deep}
	if !w.hasQuorum() {
		r.Problem = "no linearizable answer"
		return r
	}
	r.ClusterID = "c1"
	if w.version >= 0 {
		r.ClusterVersion = variants[w.version].version
	}
	if w.downgrading >= 0 {
		r.Downgrading, r.DowngradeTarget = true, minorOf(w.downgrading)
	}
	for i := range w.n {
		m := Member{ID: memberID(i), Name: podName("orders", int32(i)), Term: 7, Commit: 100, Applied: 100}
		if !w.up(i) {
			m.Problem = "connection refused"
			r.Members = append(r.Members, m)
			continue
		}
		m.Version = variants[w.pods[i].template].version
		m.StorageVersion = m.Version
		if w.pods[i].lowered {
			m.StorageVersion = r.DowngradeTarget + ".0"
		}
		if w.leader >= 0 {
			m.Leader = memberID(w.leader)
		}
		if w.pods[i].behind {
			m.Applied = 95
		}
		r.Members = append(r.Members, m)
	}
	return r
}

// move is one thing that happens in the world without quorate.
type move struct {
	name  string
	fault bool
	apply func(*world)
}

// moves are all things that can happen next.
func (w *world) moves() []move {
	var all []move
	if w.set && !w.settled {
		all = append(all, move{"the controller notices", false, func(w *world) { w.settled = true }})
	}
	if w.set && w.settled {
		all = append(all, w.controllerMoves()...)
	}
	for i := range w.n {
		all = append(all, w.podMoves(i)...)
	}
	if w.downgrading >= 0 {
		all = append(all, w.downgradeMoves()...)
	} else if v, ok := w.nextClusterVersion(); ok {
		all = append(all, move{"the cluster version moves", false, func(w *world) { w.version = v }})
	}
	return all
}

// downgradeMoves are those of etcd while a downgrade is enabled: members bring
// their storage down, and when all run the older minor it ends.
func (w *world) downgradeMoves() []move {
	over := w.upCount() == w.n
	for i := range w.n {
		over = over && minorOf(w.pods[i].template) == minorOf(w.downgrading)
	}
	if over {
		return []move{{"the downgrade ends", false, func(w *world) {
			w.downgrading = -1
			for i := range w.n {
				w.pods[i].lowered = false
			}
		}}}
	}
	for i := range w.n {
		if w.up(i) && !w.pods[i].lowered {
			return []move{{fmt.Sprintf("member %d brings its storage down", i), false, func(w *world) { w.pods[i].lowered = true }}}
		}
	}
	return nil
}

// controllerMoves is the StatefulSet controller: it creates absent pods, and
// replaces one outdated pod at or above the partition at a time.
func (w *world) controllerMoves() []move {
	for i := range w.n {
		if w.pods[i].state == podAbsent {
			template := w.template
			if i < w.partition {
				template = w.current
			}
			return []move{{fmt.Sprintf("pod %d is created", i), false, func(w *world) {
				w.uids++
				w.pods[i] = fakePod{state: podStarting, template: template, uid: w.uids, lowered: w.pods[i].lowered}
			}}}
		}
	}
	for i := w.n - 1; i >= w.partition; i-- {
		p := w.pods[i]
		if p.template != w.template && p.state != podStopping {
			return []move{{fmt.Sprintf("pod %d is deleted", i), false, func(w *world) { w.pods[i].state = podStopping }}}
		}
		if p.state != podUp {
			return nil
		}
	}
	if w.allUpdated() && w.current != w.template {
		return []move{{"the controller closes the roll", false, func(w *world) { w.current = w.template }}}
	}
	return nil
}

// allUpdated says whether every pod has the set's template and is ready.
func (w *world) allUpdated() bool {
	for i := range w.n {
		if w.pods[i].template != w.template || w.pods[i].state != podUp {
			return false
		}
	}
	return true
}

func (w *world) podMoves(i int8) []move {
	p := w.pods[i]
	switch {
	case p.state == podStarting && !variants[p.template].broken:
		return []move{{fmt.Sprintf("pod %d is up", i), false, func(w *world) {
			w.pods[i].state, w.pods[i].behind, w.pods[i].readyAt = podUp, w.formed, w.clock
			w.elect()
		}}}
	case p.state == podStopping:
		return []move{{fmt.Sprintf("pod %d is gone", i), false, func(w *world) { w.pods[i] = fakePod{lowered: w.pods[i].lowered}; w.elect() }}}
	case p.state == podDown:
		return []move{{fmt.Sprintf("pod %d comes back", i), false, func(w *world) {
			w.pods[i].state, w.pods[i].behind, w.pods[i].readyAt = podUp, true, w.clock
			w.elect()
		}}}
	case p.state == podUp && p.behind && w.leader >= 0:
		return []move{
			{fmt.Sprintf("member %d catches up", i), false, func(w *world) { w.pods[i].behind = false }},
		}
	case p.state == podUp:
		return []move{{fmt.Sprintf("pod %d crashes", i), true, func(w *world) { w.pods[i].state = podDown; w.elect() }}}
	}
	return nil
}

// elect keeps a leader while there is a quorum.
func (w *world) elect() {
	if !w.hasQuorum() {
		w.leader = -1
		return
	}
	if w.leader >= 0 && w.up(w.leader) {
		return
	}
	for i := range w.n {
		if w.up(i) && !w.pods[i].behind {
			w.leader = i
			return
		}
	}
	w.leader = -1
	for i := range w.n {
		if w.up(i) {
			w.leader = i
			w.pods[i].behind = false
			return
		}
	}
}

// nextClusterVersion is the version that the cluster can agree on: the lowest
// that its members run, once all are up.
func (w *world) nextClusterVersion() (int8, bool) {
	if w.upCount() < w.n || w.leader < 0 {
		return 0, false
	}
	low := w.pods[0].template
	for i := range w.n {
		if minorOf(w.pods[i].template) < minorOf(low) {
			low = w.pods[i].template
		}
	}
	return low, w.version < 0 || minorOf(low) > minorOf(w.version)
}

// minorOf orders the variants by minor.
func minorOf(v int8) string { return line(variants[v].version) }
