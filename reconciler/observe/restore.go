package observe

import (
	"cmp"
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/state"
)

// ObserveRestore looks how far the restore is, where one is due. It asks the API
// server itself: Jobs are no part of a cluster's daily life, and not watched.
func (o *Observer) ObserveRestore(ctx context.Context, v *View) error {
	v.Observed.Restore = state.Restore{}
	if v.Record == nil || v.Record.Recovering == nil || v.Record.ClusterID != v.Record.Recovering.ClusterID {
		return nil
	}
	ns, name := v.Cluster.Metadata.Namespace, jobs.RestoreName(v.Cluster.Metadata.Name, *v.Record.Recovering)
	job, err := o.Jobs.Read(ctx, ns, name)
	if err != nil || job == nil {
		return err
	}
	pods, err := o.Jobs.Pods(ctx, ns, name)
	if err != nil {
		return err
	}
	v.Observed.Restore = RestoreStateOf(job, pods)
	return nil
}

// RestoreStateOf says how far a restore is. A Job counts as done or failed only
// by its own last word, when its last pod has ended.
func RestoreStateOf(job *batchv1.Job, pods []corev1.Pod) state.Restore {
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
