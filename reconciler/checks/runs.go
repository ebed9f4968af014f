package checks

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/quorate/quorate/reconciler/jobs"
)

// answer is why a check does not hold, "" where it does, what was measured beside it, and what a
// person can do, see state.Check.
type answer struct{ problem, detail, do string }

// judgeRuns judges a CronJob by its runs, which are Jobs that it owns. Clusters of lower waves were
// last changed at done; zero says that this is not known. It is compared with when a Job was created,
// which the API server notes, and no client chooses.
//
//	done unknown           no run can be known to have begun later
//	failed runs not kept   an older one that succeeded would be the newest
//	created after done     only these count
//	the newest that ended  decides, though a newer one may be under way; of one second, one that failed
//	none                   does not hold: neither one that has not ended, nor silence
func judgeRuns(cron *batchv1.CronJob, runs []batchv1.Job, done time.Time) answer {
	again := fmt.Sprintf("`kubectl -n %s create job --from=cronjob/%s %s-now` starts a run now", cron.Namespace, cron.Name, cron.Name)
	switch {
	case done.IsZero():
		return answer{
			problem: fmt.Sprintf("no run of CronJob %s counts, because it is not noted since when the cluster is what its file says", cron.Name),
			do:      "set spec.mode to Enforce where it is Observe, or change the file of that cluster: then it is noted",
		}
	case keepsNone(cron.Spec.FailedJobsHistoryLimit), keepsNone(cron.Spec.SuccessfulJobsHistoryLimit):
		return answer{
			problem: fmt.Sprintf("CronJob %s keeps no run that has ended, so that its result is not seen", cron.Name),
			do:      "set failedJobsHistoryLimit and successfulJobsHistoryLimit of the CronJob to 1 or more",
		}
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(j batchv1.Job) bool { return !j.CreationTimestamp.After(done) })
	slices.SortFunc(runs, newestFirst)
	i := slices.IndexFunc(runs, func(j batchv1.Job) bool { return jobs.Finished(&j) != nil })
	switch {
	case i >= 0 && succeeded(&runs[i]):
		return answer{}
	case i >= 0:
		return answer{
			problem: fmt.Sprintf("Job %s of CronJob %s failed", runs[i].Name, cron.Name),
			do:      fmt.Sprintf("`kubectl -n %s logs job/%s` says why; %s", cron.Namespace, runs[i].Name, again),
		}
	case len(runs) > 0:
		return answer{
			problem: fmt.Sprintf("Job %s of CronJob %s, created at %s, has not ended", runs[0].Name, cron.Name, stamp(runs[0].CreationTimestamp.Time)),
			do:      fmt.Sprintf("wait for it; `kubectl -n %s describe job %s` says how it is", cron.Namespace, runs[0].Name),
		}
	}
	suspended := ""
	if cron.Spec.Suspend != nil && *cron.Spec.Suspend {
		suspended = ", and it is suspended"
	}
	return answer{
		problem: fmt.Sprintf("no run of CronJob %s has begun after %s, when the lower waves were last changed%s", cron.Name, stamp(done), suspended),
		do:      again,
	}
}

// keepsNone reports whether runs are deleted as soon as they have ended.
func keepsNone(limit *int32) bool { return limit != nil && *limit == 0 }

// newestFirst orders runs. The API server notes whole seconds: of one second, what failed counts.
func newestFirst(a, b batchv1.Job) int {
	if c := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); c != 0 {
		return c
	}
	return failures(&b) - failures(&a)
}

// failures is 1 for a run that has failed.
func failures(job *batchv1.Job) int {
	if jobs.Finished(job) != nil && !succeeded(job) {
		return 1
	}
	return 0
}

// succeeded reports whether a run has ended well.
func succeeded(job *batchv1.Job) bool {
	end := jobs.Finished(job)
	return end != nil && end.Type == batchv1.JobComplete
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
