package checks

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// 603: a CronJob holds by the newest run that has ended of those that began after the lower waves were
// changed; all else does not hold, and says what a person can do.
func TestARunVouchesForWhatWasBefore(t *testing.T) {
	done := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	run := func(name string, after time.Duration, conditions ...batchv1.JobCondition) batchv1.Job {
		return batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", CreationTimestamp: metav1.NewTime(done.Add(after))},
			Status:     batchv1.JobStatus{Conditions: conditions},
		}
	}
	is := func(what batchv1.JobConditionType, status corev1.ConditionStatus) batchv1.JobCondition {
		return batchv1.JobCondition{Type: what, Status: status}
	}
	good, bad := is(batchv1.JobComplete, corev1.ConditionTrue), is(batchv1.JobFailed, corev1.ConditionTrue)
	const (
		holds = ""
		again = "`kubectl -n shop create job --from=cronjob/smoke smoke-now` starts a run now"
		none  = "no run of CronJob smoke has begun after 2026-03-01T12:00:00Z, when the lower waves were last changed"
		gone  = "CronJob smoke keeps no run that has ended, so that its result is not seen"
	)
	failed := func(name string) (problem, do string) {
		return "Job " + name + " of CronJob smoke failed", "`kubectl -n shop logs job/" + name + "` says why; " + again
	}
	aFailed, whyA := failed("a")
	bFailed, whyB := failed("b")
	spec := func(edit func(*batchv1.CronJobSpec)) *batchv1.CronJob {
		cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "smoke", Namespace: "shop"}}
		edit(&cron.Spec)
		return cron
	}
	plain := spec(func(s *batchv1.CronJobSpec) {
		s.FailedJobsHistoryLimit, s.SuccessfulJobsHistoryLimit, s.Suspend = new(int32(1)), new(int32(1)), new(false)
	})
	suspended := spec(func(s *batchv1.CronJobSpec) { s.Suspend = new(true) })
	const limits = "set failedJobsHistoryLimit and successfulJobsHistoryLimit of the CronJob to 1 or more"
	for _, c := range []struct {
		name        string
		cron        *batchv1.CronJob
		runs        []batchv1.Job
		done        time.Time
		problem, do string
	}{
		{"the only run succeeded", plain, []batchv1.Job{run("a", time.Second, good)}, done, holds, ""},
		{"of a CronJob that sets nothing", spec(func(*batchv1.CronJobSpec) {}), []batchv1.Job{run("a", time.Second, good)}, done, holds, ""},
		{"of one that is suspended", suspended, []batchv1.Job{run("a", time.Second, good)}, done, holds, ""},
		{"after one that failed", plain, []batchv1.Job{run("a", time.Minute, bad), run("b", time.Hour, good)}, done, holds, ""},
		{"before one that is under way", plain, []batchv1.Job{run("a", time.Minute, good), run("b", time.Hour)}, done, holds, ""},
		{"none at all", plain, nil, done, none, again},
		{"none, and it is suspended", suspended, nil, done, none + ", and it is suspended", again},
		{"it began before", plain, []batchv1.Job{run("a", -time.Second, good)}, done, none, again},
		{"in the very second", plain, []batchv1.Job{run("a", 0, good)}, done, none, again},
		{"it failed", plain, []batchv1.Job{run("a", time.Second, bad)}, done, aFailed, whyA},
		{"it failed after one that succeeded", plain, []batchv1.Job{run("a", time.Minute, good), run("b", time.Hour, bad)}, done, bFailed, whyB},
		{"the API server lists by name", plain, []batchv1.Job{run("a", time.Hour, bad), run("b", time.Minute, good)}, done, aFailed, whyA},
		{"it failed in the second of one that succeeded", plain, []batchv1.Job{run("a", time.Minute, good), run("b", time.Minute, bad)}, done, bFailed, whyB},
		{"and is listed first", plain, []batchv1.Job{run("a", time.Minute, bad), run("b", time.Minute, good)}, done, aFailed, whyA},
		{"it failed, and another is under way", plain, []batchv1.Job{run("a", time.Minute, bad), run("b", time.Hour)}, done, aFailed, whyA},
		{"it has not ended", plain, []batchv1.Job{run("a", time.Minute), run("b", time.Hour)}, done, "Job b of CronJob smoke, created at 2026-03-01T13:00:00Z, has not ended", "wait for it; `kubectl -n shop describe job b` says how it is"},
		{"it is about to end", plain, []batchv1.Job{run("a", time.Minute, is(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue), is(batchv1.JobComplete, corev1.ConditionFalse))}, done, "Job a of CronJob smoke, created at 2026-03-01T12:01:00Z, has not ended", "wait for it; `kubectl -n shop describe job a` says how it is"},
		{"failed runs are not kept", spec(func(s *batchv1.CronJobSpec) { s.FailedJobsHistoryLimit = new(int32(0)) }), []batchv1.Job{run("a", time.Second, good)}, done, gone, limits},
		{"nor those that succeeded", spec(func(s *batchv1.CronJobSpec) { s.SuccessfulJobsHistoryLimit = new(int32(0)) }), nil, done, gone, limits},
		{"since when is not known", plain, []batchv1.Job{run("a", time.Second, good)}, time.Time{}, "no run of CronJob smoke counts, because it is not noted since when the cluster is what its file says", "set spec.mode to Enforce where it is Observe, or change the file of that cluster: then it is noted"},
	} {
		if got := judgeRuns(c.cron, c.runs, c.done); got.problem != c.problem || got.do != c.do {
			t.Errorf("%s:\ngot  %+v\nwant {problem:%s do:%s}", c.name, got, c.problem, c.do)
		}
	}
}
