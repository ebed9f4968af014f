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

// ExitUnfit is the exit status of a step that restores when it is the backup itself
// that cannot be restored.
const ExitUnfit = 3

// maxCrashes is how often the throw-away etcd may crash before its backup is to
// blame.
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
	// Awaited is what a drill waits for that is not over, if anything is wrong.
	Awaited string
}

// Judge reads how far a drill is.
//
//	compare has ended with 0          what it found
//	restore has ended with unfit      bad: what it said
//	etcd crashed again and again      bad: its last words, unless it had no memory
//	the Job or the pod has failed     unclear: what is known of the cause
//	else                              it continues
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
	case s.Name == RestoreContainer && ended.ExitCode == ExitUnfit:
		j.Result.Problem = cmp.Or(pods.LastWords(ended.Message), "the step that restores says that it is unfit")
		return j
	case s.Name == naming.ContainerEtcd && s.RestartCount >= maxCrashes && ended.ExitCode != 0 && ended.Reason != pods.OutOfMemory && !pods.SoundsOfDisk(ended.Message):
		j.Result.Problem = "etcd does not start on it: " + cmp.Or(pods.LastWords(ended.Message), fmt.Sprintf("exit code %d", ended.ExitCode))
		return j
	}
	return Judgement{}
}
