package observe

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/state"
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
	if s := restoreStateOf(&failed, []corev1.Pod{pod(time.Hour, "first"), pod(time.Minute, "no space left")}); s.State != state.RestoreFailed || s.Detail != "restore: no space left" {
		t.Errorf("%+v", s)
	}
	if s := restoreStateOf(&failed, nil); s.Detail != "too often" {
		t.Errorf("%+v", s)
	}
	for _, c := range []batchv1.JobCondition{
		{}, {Type: batchv1.JobFailed, Status: corev1.ConditionFalse}, {Type: batchv1.JobComplete, Status: corev1.ConditionUnknown}, {Type: batchv1.JobSuspended, Status: corev1.ConditionTrue},
	} {
		job := batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{c}}}
		if s := restoreStateOf(&job, nil); s.State != state.RestoreRunning || s.Detail != "" {
			t.Errorf("with the condition %+v: %+v", c, s)
		}
	}
	if s := restoreStateOf(&batchv1.Job{}, []corev1.Pod{pod(time.Minute, "no space left")}); s.State != state.RestoreRunning || !strings.Contains(s.Detail, "no space left") {
		t.Errorf("%+v", s)
	}
}
