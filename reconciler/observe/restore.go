package observe

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/state"
)

// restoreStateOf is how far a restore is; a nil Job is none. A Job counts as done or
// failed only by its own condition, when its last pod has ended.
func restoreStateOf(job *batchv1.Job, pods []corev1.Pod) state.Restore {
	if job == nil {
		return state.Restore{}
	}
	got := state.Restore{State: state.RestoreRunning, Job: job.Name, Since: job.CreationTimestamp.Time}
	said := jobs.Said(pods)
	if said != "" {
		got.Detail = "the restore: " + said
	}
	switch end := jobs.Finished(job); {
	case end == nil:
	case end.Type == batchv1.JobComplete:
		got.State = state.RestoreDone
	default:
		got.State, got.Detail = state.RestoreFailed, cmp.Or(said, end.Message, end.Reason)
	}
	return got
}
