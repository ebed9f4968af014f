package observe

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// How often a place is listed for the backup of a restore that cannot begin yet, and how
// long one pass waits for that.
const (
	chooseInterval = time.Minute
	chooseTime     = 10 * time.Second
)

// choice is the backup that was chosen for what Git says, and when.
type choice struct {
	digest string
	at     time.Time
	chosen state.Chosen
}

// chosenBackup is the backup that a restore would begin with: the zero value for a restore
// that has begun, or that something is in the way of, and while no store says so. Then the
// restore itself asks again, waits longer, and says why it cannot begin.
func (o *Observer) chosenBackup(ctx context.Context, c desired.Cluster, rec *record.Record) state.Chosen {
	w, key := c.Restore, c.Key()
	if w == nil || o.Choose == nil || len(c.Problems) > 0 || rec != nil && (w.Former == nil || rec.Restored != nil && rec.Restored.Name == w.Name) {
		o.choices.Forget(key)
		return state.Chosen{}
	}
	c = c.Identified()
	now := o.Now()
	last := o.choices.Get(key)
	if last.digest == c.Digest && now.Sub(last.at).Abs() < chooseInterval {
		return last.chosen
	}
	ctx, cancel := context.WithTimeout(ctx, chooseTime)
	defer cancel()
	chosen, err := o.Choose(ctx, c, now)
	if err != nil {
		chosen = state.Chosen{}
	}
	o.choices.Put(key, choice{digest: c.Digest, at: now, chosen: chosen})
	return chosen
}

// restoreOf is how far the restore of a cluster is. Where Git accepts since that etcd said
// another hash of the keys in its backup, there is none yet.
func restoreOf(c desired.Cluster, rec *record.Record, job *batchv1.Job, pods []corev1.Pod) state.Restore {
	got := restoreStateOf(job, pods, rec)
	if rec == nil || rec.Recovering == nil || got.State != state.RestoreNone && got.State != state.RestoreFailed {
		return got
	}
	g := rec.Recovering
	accepted, field := c.AcceptedHashMismatch()
	switch {
	case g.MayAccept(accepted):
		return state.Restore{AcceptHashMismatch: accepted}
	case jobs.RefusedForItsHash(pods):
		got.Detail += fmt.Sprintf("; to restore it all the same, at the risk that keys are missing, of another time or damaged, commit %s: %q", field, g.SHA256)
	}
	return got
}

// restoreStateOf is how far a restore is; a nil Job is none. A Job counts as done or
// failed only by its own condition, when its last pod has ended.
func restoreStateOf(job *batchv1.Job, pods []corev1.Pod, rec *record.Record) state.Restore {
	if job == nil {
		return state.Restore{}
	}
	got := state.Restore{State: state.RestoreRunning, Job: job.Name, Since: job.CreationTimestamp.Time}
	got.Began = jobs.Started(pods)
	said, of := jobs.Said(pods), ""
	if rec != nil && rec.Restored != nil && rec.Restored.Chosen != "" {
		of = " of the backup " + rec.Restored.Chosen
		got.Detail = "the volume is being made out" + of
	}
	if lacks := jobs.LacksRoom(pods); lacks != "" {
		said, got.NoRoom = lacks, true
	}
	if said != "" {
		got.Detail = "the restore" + of + ": " + said
	}
	switch end := jobs.Finished(job); {
	case end == nil:
	case end.Type == batchv1.JobComplete:
		got.State = state.RestoreDone
	default:
		got.State, got.Detail = state.RestoreFailed, cmp.Or(said, end.Message, end.Reason)
		if of != "" {
			got.Detail += " (" + strings.TrimPrefix(of, " of ") + ")"
		}
	}
	return got
}
