package checks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/kube"
)

const (
	// pageSize is how many Jobs one request returns, and maxPages how many requests there are.
	pageSize = 500
	maxPages = 10
)

var errManyJobs = fmt.Errorf("there are more than %d Jobs", pageSize*maxPages)

// askCronJob reads a CronJob of the cluster's namespace and its runs.
func (a *Asker) askCronJob(ctx context.Context, s Subject, name string, patience time.Duration) answer {
	namespace, _, _ := strings.Cut(s.Key, "/")
	cron, err := a.kube.BatchV1().CronJobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return answer{problem: fmt.Sprintf("there is no CronJob %s in namespace %s", name, namespace), do: "create it, or correct cronJob.name in the file"}
	}
	if err != nil {
		return unread(ctx, err, "get CronJob "+name, namespace, patience)
	}
	runs, err := a.runs(ctx, cron)
	if err != nil {
		return unread(ctx, err, "list Jobs", namespace, patience)
	}
	return judgeRuns(cron, runs, s.Done)
}

// runs are the Jobs that a CronJob owns. The API selects none by their owner, and labels are those of
// the template when they began: all Jobs of the namespace are read, some at a time, and all or none.
func (a *Asker) runs(ctx context.Context, cron *batchv1.CronJob) (runs []batchv1.Job, err error) {
	read := 0
	for page, err := range kube.Pages(ctx, a.kube.BatchV1().Jobs(cron.Namespace).List, metav1.ListOptions{Limit: pageSize}) {
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if metav1.IsControlledBy(&page.Items[i], cron) {
				runs = append(runs, page.Items[i])
			}
		}
		if read++; read == maxPages && page.Continue != "" {
			return nil, errManyJobs
		}
	}
	return runs, nil
}

// unread says why the API server does not answer what was asked.
func unread(ctx context.Context, err error, what, namespace string, patience time.Duration) answer {
	switch {
	case apierrors.IsForbidden(err):
		return answer{
			problem: fmt.Sprintf("quorate may not %s in namespace %s", what, namespace), detail: err.Error(),
			do: "give quorate the rules for cronjobs and jobs of its ClusterRole there (deploy/base/clusterrole.yaml)",
		}
	case errors.Is(err, errManyJobs):
		return answer{problem: fmt.Sprintf("%s in namespace %s, and no more are read", err, namespace), do: "delete Jobs that have ended, or let ttlSecondsAfterFinished do it"}
	case ctx.Err() != nil:
		return answer{problem: fmt.Sprintf("no answer of the API server within %s", patience)}
	}
	return answer{problem: fmt.Sprintf("quorate cannot %s in namespace %s", what, namespace), detail: err.Error()}
}
