// Package jobstest makes the pods of ended Jobs for tests.
package jobstest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ended is a container that has ended, with its last words.
func Ended(name string, code int32, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", Message: message, FinishedAt: metav1.NewTime(time.Unix(1_000_000, 0)),
	}}}
}
