package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
)

const (
	// ExitUnfit is the exit status of a step that restores when it is the backup itself
	// that cannot be restored.
	ExitUnfit = 3
	// ExitOtherBytes is that of a drill whose pod was given other bytes than were
	// verified: by the store, or by what answers in its place.
	ExitOtherBytes = 6
)

// maxCrashes is how often the throw-away etcd may crash before the drill ends: more
// crashes would tell no more.
const maxCrashes = 3

// Judgement is what a drill's Job and pod say.
type Judgement struct {
	// Over says that the drill has ended. Then it is judged, or cannot be, for
	// the reason Unclear: a store, a node or an image is to blame, not the backup.
	Over    bool
	Unclear string
	// Result is that of a drill that was judged, Ended when it was.
	Result DrillResult
	Ended  time.Time
	// OtherBytes says that its pod was given other bytes than were verified. It is the
	// backup's fault only where they are in the store, too.
	OtherBytes bool
	// Awaited is what a drill waits for that is not over, if anything is wrong.
	Awaited string
}

// Judge reads how far a drill is. What condemns a backup is this list and nothing else:
//
//	restore has ended by itself with unfit     bad: what it said
//	restore was given other bytes              bad where the store has them, too
//	compare has ended with 0                   good or bad: what it found
//	etcd crashed again and again, by itself,
//	with its own words for corrupt data        bad: its last words
//
// All other ends say nothing about the backup: a container that the runtime did not
// start or killed, a node without room, an image for another processor, a flag that
// this etcd does not know, a store that is away. They are unclear.
func Judge(job *batchv1.Job, list []corev1.Pod) Judgement {
	pod := newestPod(list)
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if j := judgeContainer(s); j.Over {
			return j
		}
	}
	trouble := pods.Trouble(&pod)
	if end := Finished(job); end != nil {
		return Judgement{Over: true, Unclear: cmp.Or(trouble, pod.Status.Message, end.Message, end.Reason, "its pod ended and left no result")}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return Judgement{Over: true, Unclear: cmp.Or(trouble, pod.Status.Message, pod.Status.Reason, "its pod failed")}
	}
	return Judgement{Awaited: trouble}
}

// judgeContainer reads what one container says of the backup, if anything.
func judgeContainer(s corev1.ContainerStatus) Judgement {
	ended := pods.LastEnd(s)
	if ended == nil {
		return Judgement{}
	}
	j := Judgement{Over: true, Ended: ended.FinishedAt.Time}
	switch {
	case s.Name == DrillContainer && ended.ExitCode == 0:
		if err := json.Unmarshal([]byte(ended.Message), &j.Result); err != nil || j.Result.Revision == 0 && j.Result.Problem == "" {
			return Judgement{Over: true, Unclear: fmt.Sprintf("what it found is not readable: %q", pods.LastLine(ended.Message))}
		}
		return j
	case s.Name == RestoreContainer && (ended.ExitCode == ExitUnfit || ended.ExitCode == ExitOtherBytes) && byItself(*ended):
		j.OtherBytes = ended.ExitCode == ExitOtherBytes
		j.Result.Problem = cmp.Or(pods.LastWords(ended.Message), "the step that restores says that it is unfit")
		return j
	case s.Name == naming.ContainerEtcd && s.RestartCount >= maxCrashes && ended.ExitCode != 0:
		return judgeCrashes(*ended)
	}
	return Judgement{}
}

// judgeCrashes reads what an etcd says of its data that crashes again and again.
func judgeCrashes(ended corev1.ContainerStateTerminated) Judgement {
	words := cmp.Or(pods.LastWords(ended.Message), fmt.Sprintf("%s, exit code %d", ended.Reason, ended.ExitCode))
	if byItself(ended) && pods.SoundsCorrupt(ended.Message) {
		return Judgement{Over: true, Ended: ended.FinishedAt.Time, Result: DrillResult{Problem: "etcd does not start on it: " + words}}
	}
	if ended.Reason == pods.OutOfMemory {
		words = pods.OutOfMemory // what it said last has nothing to do with that
	}
	return Judgement{Over: true, Unclear: "etcd does not start: " + words}
}

// byItself reports whether a container's program has chosen its own exit status: the
// runtime has not, and no signal came. Of all reasons a kubelet gives only one for that.
func byItself(ended corev1.ContainerStateTerminated) bool {
	const failed = "Error"
	return ended.Reason == failed && ended.Signal == 0 && ended.ExitCode < 126
}
