package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/naming"
)

// 573: the pod of the daemon that acts is marked, and keeps its other labels; one whose mark is
// refused says what people will see.
func TestActingDaemonMarksItsPod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "quorate-0", Namespace: "quorate-system", Labels: map[string]string{"app": "x"}}}
	t.Setenv("POD_NAME", pod.Name)
	t.Setenv("POD_NAMESPACE", pod.Namespace)
	kube, log := fake.NewClientset(pod), &bytes.Buffer{}
	labels := func() map[string]string {
		now, err := kube.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return now.Labels
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	mark(t.Context(), kube, true, logger)
	if got := labels(); got[naming.LabelActing] != "true" || got["app"] != "x" {
		t.Errorf("while it acts: %v", got)
	}
	mark(t.Context(), kube, false, logger)
	if got := labels(); len(got) != 1 || got["app"] != "x" || log.Len() > 0 {
		t.Errorf("after it: %v, %s", got, log)
	}
	kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") })
	mark(t.Context(), kube, true, logger)
	if !strings.Contains(log.String(), "may lead to a daemon that waits") {
		t.Errorf("logged %s", log)
	}
}
