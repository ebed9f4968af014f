package perturb

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/reconcilertest"
)

const (
	// boots is how long a member takes to come up.
	boots = 3 * time.Second
	// quiet is how long nothing changes before a world has come to rest: above the
	// longest pause between two tries of what fails.
	quiet = 6 * time.Minute
	// settled is how long nothing changes in a world that is what Git says: above the pause
	// between two writes of a status.
	settled = 15 * time.Second
	// aftermath is how long a disturbance may have consequences that nobody sees yet.
	aftermath = 2*time.Minute + 10*time.Second
	// longest is when a world is given up that does not come to rest.
	longest = 3 * time.Hour
)

// disturbance is one request that is disturbed in one way; a zero one leaves all as it is.
type disturbance struct{ at, how string }

func (d disturbance) String() string { return d.at + "/" + d.how }

// outcome is how a run ended.
type outcome struct {
	// end is the world at rest, and wrong what must not have been on the way.
	end, wrong []string
	// writes and calls are the names of the requests.
	writes, calls []string
	// restarts is how often each member was started.
	restarts map[string]int
	// hit reports whether the request to disturb came; hold is why the end is not what Git says.
	hit  bool
	hold string
	// wayOn says that the hold names what a person must do.
	wayOn bool
	log   string
	took  time.Duration
}

// world is a world whose quorate runs as the daemon does, and can be killed.
type world struct {
	*reconcilertest.World
	gate    *gate
	line    *line
	process *process
	backups []desired.Backup
	judge   judge
	// each is what else happens in each second.
	each func()
	// wiped is the ID of the member whose data is gone, by the UID of its volume's claim.
	wiped map[string]string
}

// hold is why nothing is done, "" where all is done, and whether it names what a person
// must do.
func (w *world) hold() (why string, wayOn bool) {
	p, err := w.R.Plan(w.Context(), w.Wish)
	switch {
	case err != nil:
		return err.Error(), false
	case p.Hold != nil:
		return p.Hold.String(), p.Hold.Do != ""
	case len(p.Steps) > 0:
		return p.Steps[0].Action.String(), false
	}
	return "", false
}

// play plays a scenario with a disturbance in a world of its own.
func play(t *testing.T, s scenario, d disturbance) (o outcome) {
	t.Helper()
	reconcilertest.Run(t, func(rw *reconcilertest.World) {
		w := &world{World: rw, gate: newGate(rw.API, d.at, d.how), line: newLine(rw.Etcd, d.at, d.how)}
		w.judge = newJudge(w)
		rw.Etcd.Version = w.runs
		if !s.created {
			w.start()
			w.rest()
		}
		if s.before != nil {
			s.before(w)
			w.rest()
		}
		w.judge.begin()
		w.gate.arm(true)
		w.line.arm(true)
		began := time.Now()
		s.then(w)
		w.rest()
		w.line.arm(false)
		hold, wayOn := w.hold()
		o = w.outcome()
		o.hold, o.wayOn = hold, wayOn
		o.took = time.Since(began)
	}, s.edits...)
	return o
}

func (g *gate) arm(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.off = !on
}

// arm lets calls be counted and disturbed, or not, and returns what was so before.
func (l *line) arm(on bool) (was bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, l.off = !l.off, !on
	return was
}

// runs is the release that a member runs, "" while it comes up.
func (w *world) runs(member string) string {
	pod := w.Pod(member)
	if pod == nil || time.Since(pod.CreationTimestamp.Time) < boots {
		return ""
	}
	return w.VersionOf(member)
}

// start starts quorate.
func (w *world) start() {
	w.process = &process{gate: w.gate, held: map[string]time.Time{}}
	if err := w.Process(w.process.client(), w.process.members(w.line)); err != nil {
		w.Fatal(err)
	}
	// A fake's watch tells nothing of what is written between the list and its beginning.
	synctest.Wait()
	w.tell()
}

// tell tells quorate what Git says.
func (w *world) tell() {
	w.R.SetDesired([]desired.Cluster{w.Wish})
	w.R.SetBackups(w.backups)
}

// step lets some time pass.
func (w *world) step(d time.Duration) {
	time.Sleep(d)
	for range 100 {
		moved := w.Control()
		moved = w.kubelet() || moved
		w.Etcd.Elect(func(member string) bool { return w.runs(member) != "" })
		w.judge.look()
		if !moved {
			break
		}
	}
	w.Settle()
	if w.each != nil {
		w.each()
	}
	if w.process.isDead() {
		time.Sleep(2 * time.Second)
		w.start()
	}
}

// rest lets time pass until the world has come to rest: what is is what Git says and nothing
// has changed for a while, or nothing changes for longer than any pause between two tries.
func (w *world) rest() {
	w.Helper()
	w.gate.touch()
	for began := time.Now(); ; {
		still := time.Since(w.changed())
		switch {
		case still >= quiet || still >= settled && w.idle():
			return
		case time.Since(began) > longest:
			w.judge.add("it does not come to rest within %s", longest)
			return
		case still > settled:
			w.step(5 * time.Second)
		default:
			w.step(time.Second)
		}
	}
}

// idle reports whether nothing is left to do, nor to come from a disturbance.
func (w *world) idle() bool {
	w.gate.mu.Lock()
	disturbed := w.gate.disturbed
	w.gate.mu.Unlock()
	w.line.mu.Lock()
	if w.line.disturbed.After(disturbed) {
		disturbed = w.line.disturbed
	}
	w.line.mu.Unlock()
	if time.Since(disturbed) < aftermath {
		return false
	}
	defer w.line.arm(w.line.arm(false))
	p, err := w.R.Plan(w.Context(), w.Wish)
	return err == nil && p.Idle() && !slices.ContainsFunc(w.backups, w.failing)
}

// failing reports whether a backup is under way, or is to be tried again.
func (w *world) failing(q desired.Backup) bool {
	rec := w.RequestRecord(q)
	return rec.Begun != nil || rec.Failures > 0
}

func (g *gate) touch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = time.Now()
}

// changed is when quorate has changed something last.
func (w *world) changed() time.Time {
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	if w.line.last.After(w.gate.last) {
		return w.line.last
	}
	return w.gate.last
}

// kubelet lets the pods of members become ready some time after their start. It reports
// whether one did, or is no longer.
func (w *world) kubelet() (moved bool) {
	for _, pod := range w.members() {
		if refuses, news := w.guards(pod); refuses || news {
			moved = news || moved
			continue
		}
		up := time.Since(pod.CreationTimestamp.Time) >= boots
		broken := len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil
		if pods.Ready(pod) == (up && !broken) {
			continue
		}
		status := corev1.ConditionFalse
		if up {
			status = corev1.ConditionTrue
		}
		pod = pod.DeepCopy()
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}}
		w.Put(reconcilertest.PodsResource(), pod)
		moved = true
	}
	return moved
}

// members are the pods of the members.
func (w *world) members() (list []*corev1.Pod) {
	for i := range 9 {
		if pod := w.Pod(fmt.Sprintf("orders-%d", i)); pod != nil {
			list = append(list, pod)
		}
	}
	return list
}

func (w *world) outcome() outcome {
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	o := outcome{
		end: w.picture(), wrong: w.judge.wrong, writes: w.gate.names, calls: w.line.names, restarts: maps.Clone(w.judge.starts),
		hit: w.gate.hit || w.line.hit, log: w.Log.String(),
	}
	return o
}
