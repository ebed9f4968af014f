package plan

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func seconds(n int32) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// carryOut does to the world what the executor would, preconditions included,
// and returns the invariant that it broke, or "".
func (w *world) carryOut(a Action) string {
	if broken := w.judge(a); broken != "" {
		return broken
	}
	switch a := a.(type) {
	case CreateRecord:
		w.record = true
	case IssueCertificates:
		w.secrets = true
	case ApplyObject:
		var i int
		_, _ = fmt.Sscanf(a.Name, "object-%d", &i)
		w.objects[i] = true
	case CreateSet:
		w.set, w.settled, w.template, w.current, w.partition = true, true, w.git, w.git, w.n
	case RecordFormed:
		w.formed = true
	case TakeBackup:
		if !w.bucketBad {
			w.backup, w.down = w.git, a.For == DowngradeTo(variants[w.git].version)
		}
	case StartRoll:
		w.template, w.partition, w.settled = w.git, int8(a.Partition), false
	case MoveLeader:
		w.leader = int8(a.ToID[1] - '0')
	case Compact, Defragment, Disarm:
		// The databases of this world are never full,
	case GrowVolume, ReleaseSet:
		// and its volumes have no size.
	case RestartMember:
		w.restart(a)
	case EndRoll:
		w.partition, w.settled = w.n, false
	case RecordApplied:
		w.applied, w.noted = w.git, -1
	case EnableDowngrade:
		for i := range w.n {
			w.pods[i].lowered = false
		}
		w.downgrading, w.version, w.noted = w.git, w.git, w.git
	case CancelDowngrade:
		w.downgrading, w.noted = -1, -1
		for i := range w.n {
			w.pods[i].lowered = false
		}
	case Nudge, RecordFlushed: // no variant of this world is 3.7
	}
	return ""
}

// restart checks the precondition again, as the executor does.
func (w *world) restart(a RestartMember) {
	p := &w.pods[a.Ordinal]
	if fmt.Sprintf("pod-%d", p.uid) != a.PodUID || p.state == podStopping {
		return
	}
	if a.ByDeletion {
		p.state = podStopping
		return
	}
	w.partition, w.settled = int8(a.Partition), false
}

// judge says which invariant an action would break in this world, or "".
func (w *world) judge(a Action) string {
	if w.fileBroken {
		return "I12: acted on a file with errors: " + a.String()
	}
	if w.foreign {
		return "I7: acted although somebody else's object is in the way: " + a.String()
	}
	if w.set && w.recordLost {
		return "I12: acted on a live cluster whose record is lost: " + a.String()
	}
	if w.scaled {
		return "I5: acted on a change that no StatefulSet can take: " + a.String()
	}
	if w.asleep {
		return "I25: acted on a file that asks for more than can be done: " + a.String()
	}
	if w.window == windowClosed && w.disturbs(a) {
		return "I26: outside the maintenance window: " + a.String()
	}
	switch a := a.(type) {
	case CreateSet:
		return w.judgeCreate()
	case RecordFormed:
		if w.upCount() < w.n {
			return "I4: recorded a cluster that has not formed"
		}
	case StartRoll:
		return w.judgeStart()
	case MoveLeader:
		switch to := int8(a.ToID[1] - '0'); {
		case w.pods[to].state != podUp:
			return "I20: moved the leadership to a member that is down"
		case w.pods[to].behind:
			return "I16: moved the leadership to a member that has not caught up"
		}
	case RestartMember:
		return w.judgeRestart(a)
	case RecordApplied:
		return w.judgeApplied()
	case CreateRecord, IssueCertificates, ApplyObject, TakeBackup, EndRoll, Nudge, RecordFlushed, EnableDowngrade, CancelDowngrade:
	}
	return ""
}

// disturbs says whether an action disturbs clients of a cluster in which no
// member needs to be mended by it.
func (w *world) disturbs(a Action) bool {
	if !w.formed {
		return false
	}
	switch a := a.(type) {
	case MoveLeader:
		return true
	case RestartMember:
		return w.pods[a.Ordinal].state == podUp
	case StartRoll:
		return w.template != w.git && w.upCount() == w.n
	}
	return false
}

func (w *world) judgeCreate() string {
	if !w.record || !w.secrets || w.objects != [3]bool{true, true, true} {
		return "I4: created members before what they need"
	}
	return ""
}

// judgeStart holds an upgrade to its backup and its path.
func (w *world) judgeStart() string {
	if !w.formed || w.template == w.git {
		return "" // only the partition goes back up
	}
	if w.git != w.current && w.policy == "Required" && w.changesVersion() {
		if w.backup < 0 || variants[w.backup].version != variants[w.git].version || w.down != (w.downgrading >= 0) {
			return "I11: an upgrade began without a backup for its target"
		}
	}
	return w.judgePath()
}

// changesVersion says whether a pod has another version than Git asks for.
func (w *world) changesVersion() bool {
	for i := range w.n {
		if p := w.pods[i]; p.state != podAbsent && variants[p.template].version != variants[w.git].version {
			return true
		}
	}
	return false
}

// judgePath wants the running and the wanted minors to be at most one apart.
func (w *world) judgePath() string {
	to := minorNumber(w.git)
	for i := range w.n {
		if w.pods[i].state == podAbsent {
			continue
		}
		from := minorNumber(w.pods[i].template)
		if to-from > 1 {
			return "I14: a minor was skipped"
		}
	}
	// Where nothing serves any more, etcd's own refusal to start is enough.
	if w.version >= 0 && to < minorNumber(w.version) && w.upCount() > 0 {
		return "I14: an older binary in a cluster whose version has moved"
	}
	return ""
}

// judgeRestart is the heart: nothing else may be down, behind, or leading.
func (w *world) judgeRestart(a RestartMember) string {
	target := int8(a.Ordinal)
	if !w.formed {
		if w.upCount() > 0 && w.leader >= 0 {
			return "I4: a member of a cluster that has a leader is taken for stillborn"
		}
		return ""
	}
	for i := range w.n {
		switch p := w.pods[i]; {
		case i == target:
		case p.state != podUp:
			return fmt.Sprintf("I2: member %d is restarted while %d is down", target, i)
		case p.behind:
			return fmt.Sprintf("I16: member %d is restarted while %d has not caught up", target, i)
		case p.template == w.template && w.soak > 0 && w.clock-p.readyAt < w.soak && p.template != w.current:
			return fmt.Sprintf("I16: member %d is restarted while %d soaks", target, i)
		}
	}
	if w.n > 1 && w.leader == target {
		return fmt.Sprintf("I20: member %d is restarted while it leads", target)
	}
	if !a.ByDeletion && w.template != w.git {
		return "I25: a member would restart with a template that Git does not ask for"
	}
	for i := w.n - 1; i > target; i-- {
		if w.pods[i].template != w.git && !a.ByDeletion {
			return fmt.Sprintf("I20: member %d is restarted before %d", target, i)
		}
	}
	if p := w.pods[target]; w.downgrading >= 0 && p.state == podUp && !p.lowered && minorOf(p.template) != minorOf(w.downgrading) {
		return fmt.Sprintf("I14: member %d gets the older minor before its storage is brought down", target)
	}
	return w.judgePath()
}

func (w *world) judgeApplied() string {
	for i := range w.n {
		if w.pods[i].template != w.git || w.pods[i].state != podUp {
			return "I14: recorded as applied while a pod is not"
		}
	}
	if w.version < 0 || minorOf(w.version) != minorOf(w.git) {
		return "I14: recorded as applied before the cluster version moved"
	}
	return ""
}

func minorNumber(v int8) int {
	var major, minor int
	_, _ = fmt.Sscanf(strings.ReplaceAll(variants[v].version, ".", " "), "%d %d", &major, &minor)
	return minor
}
