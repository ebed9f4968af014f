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
		"other bytes":               {[]corev1.ContainerStatus{jobstest.Ended("restore", ExitOtherBytes, "quorate: the backup is unfit: it has other bytes")}, nil, "bad, if the store has them: quorate: the backup is unfit: it has other bytes"},
		"a store that is away":      {[]corev1.ContainerStatus{jobstest.Ended("restore", 1, "quorate: fetch the backup: 503")}, failed, "unclear: restore: quorate: fetch the backup: 503"},
		"etcd crashed once":         {[]corev1.ContainerStatus{crashes(jobstest.Ended(naming.ContainerEtcd, 2, "panic: x"), 1)}, nil, "goes on: etcd: panic: x"},
		"etcd crashes":              {[]corev1.ContainerStatus{crashes(jobstest.Ended(naming.ContainerEtcd, 2, "panic: x"), 3)}, nil, "unclear: etcd does not start: panic: x"},
		"etcd calls it corrupt":     {[]corev1.ContainerStatus{crashes(jobstest.Ended(naming.ContainerEtcd, 2, "panic: snap: crc mismatch"), 3)}, nil, "bad: etcd does not start on it: panic: snap: crc mismatch"},
		"etcd has no memory":        {[]corev1.ContainerStatus{crashes(oom, 5)}, failed, "unclear: etcd does not start: OOMKilled"},
		"etcd has no disk":          {[]corev1.ContainerStatus{crashes(jobstest.Ended(naming.ContainerEtcd, 1, "no space left on device"), 5)}, failed, "unclear: etcd does not start: no space left on device"},
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

// 188: what ends a container before it has read the backup, or in the midst of that, says
// nothing of the backup, whatever the exit status: runtimes give out 126 to 128 and
// 137 for their own reasons, and a killed step may have any.
func TestNoBackupIsCondemnedForItsSurroundings(t *testing.T) {
	because := func(reason string, code int32, message string) func(name string) corev1.ContainerStatus {
		return func(name string) corev1.ContainerStatus {
			s := jobstest.Ended(name, code, message)
			s.State.Terminated.Reason = reason
			return s
		}
	}
	for why, end := range map[string]func(name string) corev1.ContainerStatus{
		"the runtime starts nothing":       because("StartError", 128, "failed to create containerd task: exec: \"/usr/local/bin/etcd\": stat: no such file or directory"),
		"the runtime starts nothing, 3":    because("StartError", ExitUnfit, "failed to create containerd task"),
		"it cannot be run":                 because("ContainerCannotRun", 127, "no such file or directory"),
		"another processor's image":        because("Error", 1, "exec /usr/local/bin/etcd: exec format error"),
		"another processor's image, shell": because("Error", 126, "cannot execute binary file: Exec format error"),
		"no such program":                  because("Error", 127, ""),
		"an exit status out of range":      because("Error", 128, ""),
		"killed":                           because("Error", 137, ""),
		"out of memory":                    because("OOMKilled", 137, ""),
		"out of memory, in a child":        because("OOMKilled", ExitUnfit, ""),
		"a crash of the program":           because("Error", 139, ""),
		"told to end":                      because("Error", 143, ""),
		"the status was lost":              because("ContainerStatusUnknown", 137, "The container could not be located when the pod was deleted"),
		"the status was lost, 3":           because("ContainerStatusUnknown", ExitUnfit, ""),
		"evicted":                          because("Evicted", 137, "The node was low on resource: ephemeral-storage"),
		"an unknown flag":                  because("Error", 2, "flag provided but not defined: -initial-cluster-tokn"),
		"a full disk":                      because("Error", 1, "write /var/lib/etcd/default.etcd/member/wal/0.tmp: no space left on device"),
		"a broken disk with corrupt data":  because("Error", 1, "panic: freepages: failed to get all reachable pages: input/output error: database file is corrupt"),
		"a port that is taken":             because("Error", 1, "listen tcp 127.0.0.1:2379: bind: address already in use"),
	} {
		for _, name := range []string{RestoreContainer, naming.ContainerEtcd, DrillContainer} {
			for phase, job := range map[corev1.PodPhase]*batchv1.Job{
				corev1.PodFailed:  {Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}}}},
				corev1.PodPending: {},
			} {
				pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Unix(999_000, 0))}, Status: corev1.PodStatus{Phase: phase, InitContainerStatuses: []corev1.ContainerStatus{crashes(end(name), 9)}}}
				j := Judge(job, []corev1.Pod{pod})
				if j.Result.Problem != "" || j.Over && j.Unclear == "" {
					t.Errorf("%s, %s, %s: %s", why, name, phase, j.Words())
				}
				if (phase == corev1.PodFailed || name == naming.ContainerEtcd) && !j.Over {
					t.Errorf("%s, %s, %s: it does not end", why, name, phase)
				}
			}
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
	case j.OtherBytes:
		return "bad, if the store has them: " + j.Result.Problem
	case j.Result.Problem != "":
		return "bad: " + j.Result.Problem
	}
	return fmt.Sprintf("%s: %d keys at %d, hash %d", backup.DrillPassed, j.Result.Keys, j.Result.Revision, j.Result.Hash)
}
