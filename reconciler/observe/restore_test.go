package observe

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 120: a restore that failed says why, in the words of its newest pod.
func TestRestoreThatFails(t *testing.T) {
	pod := func(age time.Duration, said string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "restore", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: said}},
			}}},
		}
	}
	failed := batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "too often"}}}}
	if s := restoreStateOf(&failed, []corev1.Pod{pod(time.Hour, "first"), pod(time.Minute, "no space left")}, nil); s.State != state.RestoreFailed || s.Detail != "restore: no space left" {
		t.Errorf("%+v", s)
	}
	if s := restoreStateOf(&failed, nil, nil); s.Detail != "too often" {
		t.Errorf("%+v", s)
	}
	for _, c := range []batchv1.JobCondition{
		{}, {Type: batchv1.JobFailed, Status: corev1.ConditionFalse}, {Type: batchv1.JobComplete, Status: corev1.ConditionUnknown}, {Type: batchv1.JobSuspended, Status: corev1.ConditionTrue},
	} {
		job := batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{c}}}
		if s := restoreStateOf(&job, nil, nil); s.State != state.RestoreRunning || s.Detail != "" {
			t.Errorf("with the condition %+v: %+v", c, s)
		}
	}
	if s := restoreStateOf(&batchv1.Job{}, []corev1.Pod{pod(time.Minute, "no space left")}, nil); s.State != state.RestoreRunning || !strings.Contains(s.Detail, "no space left") {
		t.Errorf("%+v", s)
	}
}

// 206: a restore without room is told from one that fails, also while the next pod looks
// again.
func TestARestoreWithoutRoomWaits(t *testing.T) {
	at := func(age time.Duration, s corev1.ContainerStatus) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}},
		}
	}
	lacks := at(time.Minute, jobstest.Ended(jobs.RestoreContainer, jobs.ExitNoRoom, "the volume has no room for it: it needs 2Gi, and 1Gi are free"))
	running := at(time.Second, corev1.ContainerStatus{Name: jobs.RestoreContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	for name, c := range map[string]struct {
		pods   []corev1.Pod
		noRoom bool
		detail string
	}{
		"it has just ended":    {[]corev1.Pod{lacks}, true, "the restore: restore: the volume has no room for it: it needs 2Gi, and 1Gi are free"},
		"the next looks again": {[]corev1.Pod{running, lacks}, true, "the restore: restore: the volume has no room for it: it needs 2Gi, and 1Gi are free"},
		"another one failed":   {[]corev1.Pod{lacks, at(time.Second, jobstest.Ended(jobs.RestoreContainer, 1, "403 Forbidden"))}, false, "the restore: restore: 403 Forbidden"},
		"the first one runs":   {[]corev1.Pod{running}, false, ""},
	} {
		if s := restoreStateOf(&batchv1.Job{}, c.pods, nil); s.State != state.RestoreRunning || s.NoRoom != c.noRoom || s.Detail != c.detail {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// 168: while a backup becomes a volume, and when that has failed, it is named.
func TestARestoreThatRunsNamesItsBackup(t *testing.T) {
	rec := &record.Record{Restore: record.Restore{Restored: &record.Restored{Chosen: "taken at noon of cluster c1; none is newer"}}}
	if s := restoreStateOf(&batchv1.Job{}, nil, rec); s.Detail != "the volume is being made out of the backup taken at noon of cluster c1; none is newer" {
		t.Errorf("%+v", s)
	}
	failed := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "too often"}}}}
	if s := restoreStateOf(failed, nil, rec); s.Detail != "too often (the backup taken at noon of cluster c1; none is newer)" {
		t.Errorf("%+v", s)
	}
}

// 168: a plan names the backup before it begins; the store is asked once a minute, and not
// at all when the restore has begun, or something is in its way.
func TestTheBackupOfARestoreIsLookedUpBeforeItBegins(t *testing.T) {
	now, asked, away := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), 0, error(nil)
	o := &Observer{Now: func() time.Time { return now }, Choose: func(ctx context.Context, _ desired.Cluster, _ time.Time) (state.Chosen, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("it may take for ever")
		}
		asked++
		return state.Chosen{Object: "s3://b/1.db", Text: "taken at noon"}, away
	}}
	restoring := desired.Cluster{EtcdCluster: clustertest.Orders(), Restore: &desired.Restore{Name: "back"}}
	inPlace, held, plain := restoring, restoring, restoring
	inPlace.Restore = &desired.Restore{Name: "back", Former: &schema.EtcdCluster{}}
	held.Problems, plain.Restore = []string{"it is broken"}, nil
	living, begun := &record.Record{ClusterID: "c1"}, &record.Record{Restore: record.Restore{Restored: &record.Restored{Name: "back"}}}
	for _, step := range []struct {
		name  string
		later time.Duration
		c     desired.Cluster
		rec   *record.Record
		away  error
		asks  bool
		want  string
	}{
		{"before it begins", 0, restoring, nil, nil, true, "s3://b/1.db"},
		{"a moment later", 59 * time.Second, restoring, nil, nil, false, "s3://b/1.db"},
		{"a minute later", time.Second, restoring, nil, nil, true, "s3://b/1.db"},
		{"by a clock that was ahead and is set back", -time.Hour, restoring, nil, nil, true, "s3://b/1.db"},
		{"of another commit", 0, inPlace, nil, nil, true, "s3://b/1.db"},
		{"with the cluster there whose place it takes", time.Minute, inPlace, living, nil, true, "s3://b/1.db"},
		{"with one there that is in the way", time.Minute, restoring, living, nil, false, ""},
		{"when it has begun", time.Minute, inPlace, begun, nil, false, ""},
		{"of a file with errors", time.Minute, held, nil, nil, false, ""},
		{"without a restore", time.Minute, plain, nil, nil, false, ""},
		{"while the store is away", time.Minute, restoring, nil, clustertest.ErrAway, true, ""},
		{"and it is not asked at once again", time.Second, restoring, nil, clustertest.ErrAway, false, ""},
	} {
		now, asked, away = now.Add(step.later), 0, step.away
		if got := o.chosenBackup(t.Context(), step.c, step.rec); got.Object != step.want || asked > 1 || (asked == 1) != step.asks {
			t.Errorf("%s: %+v, the store was asked %d times", step.name, got, asked)
		}
	}
}
