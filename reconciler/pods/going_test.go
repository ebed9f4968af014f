package pods_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/pods"
)

// 348: Kubernetes keeps a claim for as long as a pod uses it, which is no obstacle.
func TestGoing(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"kubernetes.io/pvc-protection"}}}
	if since, kept := pods.Going(claim); !since.IsZero() || kept != "" {
		t.Errorf("a claim that stays: %s %q", since, kept)
	}
	claim.DeletionTimestamp = new(metav1.NewTime(at))
	if since, kept := pods.Going(claim); !since.Equal(at) || kept != "" {
		t.Errorf("a claim in use: %s %q", since, kept)
	}
	claim.Finalizers = append(claim.Finalizers, "example.com/a", "example.com/b")
	if since, kept := pods.Going(claim); !since.Equal(at) || kept != "example.com/a, example.com/b" {
		t.Errorf("a claim that others keep: %s %q", since, kept)
	}
}
