package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
)

// crashes is a container that was started again after an end.
func crashes(s corev1.ContainerStatus, times int32) corev1.ContainerStatus {
	s.LastTerminationState, s.State, s.RestartCount = s.State, corev1.ContainerState{}, times
	return s
}

// 106, 107: what a drill says of the backup, and what of its own surroundings: only
// the former ever condemns a backup.
func TestJudgeDrill(t *testing.T) {
	failed := []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded", Message: "Job was active longer than specified deadline"}}
	oom := jobstest.Ended(naming.ContainerEtcd, 137, "")
	oom.State.Terminated.Reason = pods.OutOfMemory
	for name, c := range map[string]struct {
		containers []corev1.ContainerStatus
		job        []batchv1.JobCondition
		want       string
	}{
		"it has just begun":         {nil, nil, "goes on"},
		"etcd runs":                 {[]corev1.ContainerStatus{jobstest.Ended("restore", 0, "")}, nil, "goes on"},
		"it passed":                 {[]corev1.ContainerStatus{jobstest.Ended("restore", 0, ""), jobstest.Ended("compare", 0, `{"keys":3,"revision":7,"hash":9}`)}, nil, "passed: 3 keys at 7, hash 9"},
		"it passed and was removed": {[]corev1.ContainerStatus{jobstest.Ended("compare", 0, `{"keys":0,"revision":1}`)}, failed, "passed: 0 keys at 1, hash 0"},
		"another hash":              {[]corev1.ContainerStatus{jobstest.Ended("compare", 0, `{"problem":"the hash differs","revision":7}`)}, nil, "bad: the hash differs"},
		"an alarm":                  {[]corev1.ContainerStatus{jobstest.Ended("compare", 0, `{"problem":"CORRUPT"}`)}, nil, "bad: CORRUPT"},
		"a result that is none":     {[]corev1.ContainerStatus{jobstest.Ended("compare", 0, "")}, nil, "unclear: what it found is not readable"},
		"an unfit backup":           {[]corev1.ContainerStatus{jobstest.Ended("restore", ExitUnfit, "quorate: the backup is unfit: sha256")}, nil, "bad: quorate: the backup is unfit: sha256"},
		"a store that is away":      {[]corev1.ContainerStatus{jobstest.Ended("restore", 1, "quorate: fetch the backup: 503")}, failed, "unclear: restore: quorate: fetch the backup: 503"},
		"etcd crashed once":         {[]corev1.ContainerStatus{crashes(jobstest.Ended(naming.ContainerEtcd, 2, "panic: x"), 1)}, nil, "goes on: etcd: panic: x"},
		"etcd crashes":              {[]corev1.ContainerStatus{crashes(jobstest.Ended(naming.ContainerEtcd, 2, "panic: x"), 3)}, nil, "bad: etcd does not start on it: panic: x"},
		"etcd has no memory":        {[]corev1.ContainerStatus{crashes(oom, 5)}, failed, "unclear: etcd: OOMKilled"},
		"etcd has no disk":          {[]corev1.ContainerStatus{crashes(jobstest.Ended(naming.ContainerEtcd, 1, "no space left on device"), 5)}, failed, "unclear: etcd: no space left on device"},
		"it was not in time":        {nil, failed, "unclear: Job was active longer"},
		"compare gave up":           {[]corev1.ContainerStatus{jobstest.Ended("compare", 1, "quorate: the etcd that began with the backup does not answer")}, failed, "unclear: compare: quorate: the etcd"},
	} {
		job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: c.job}}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Unix(999_000, 0))}, Status: corev1.PodStatus{ContainerStatuses: c.containers}}
		if got := Judge(job, []corev1.Pod{{}, pod}).Words(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Words are a judgement as the tables of tests have it.
func (j Judgement) Words() string {
	switch {
	case !j.Over:
		return strings.TrimSuffix("goes on: "+j.Awaited, ": ")
	case j.Unclear != "":
		return "unclear: " + j.Unclear
	case j.Result.Problem != "":
		return "bad: " + j.Result.Problem
	}
	return fmt.Sprintf("%s: %d keys at %d, hash %d", backup.DrillPassed, j.Result.Keys, j.Result.Revision, j.Result.Hash)
}
