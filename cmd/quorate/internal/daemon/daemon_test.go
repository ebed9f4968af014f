package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestGuardImageOfTheOwnPod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "quorate-0", Namespace: "quorate-system"}}
	pod.Spec.Containers = []corev1.Container{{Name: "sidecar", Image: "other"}, {Name: "quorate", Image: "quorate:v1"}}
	t.Setenv("POD_NAME", pod.Name)
	t.Setenv("POD_NAMESPACE", pod.Namespace)
	if image, err := findGuardImage(t.Context(), fake.NewClientset(pod), ""); err != nil || image != "quorate:v1" {
		t.Errorf("%q, %v", image, err)
	}
	pod.Spec.Containers = pod.Spec.Containers[:1]
	if _, err := findGuardImage(t.Context(), fake.NewClientset(pod), ""); err == nil || !strings.Contains(err.Error(), "no container quorate") {
		t.Errorf("without such a container: %v", err)
	}
	if image, err := findGuardImage(t.Context(), fake.NewClientset(), "given"); err != nil || image != "given" {
		t.Errorf("%q, %v", image, err)
	}
}

func TestEventsReachTheAPIServer(t *testing.T) {
	kube := fake.NewClientset()
	recorder, stop := newRecorder(kube)
	defer stop()
	recorder.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-0", Namespace: "shop", UID: "u"}}, corev1.EventTypeNormal, "Test", "hello")
	cmdtest.Await(t, func() bool {
		list, err := kube.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Message == "hello" && list.Items[0].Source.Component == "quorate"
	})
}

func TestABackupURLOfFilesIsWarnedOf(t *testing.T) {
	for url, warned := range map[string]bool{
		"file:///backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db": true,
		"s3://backups/{{ .UID }}.db?region=eu-west-1":                false,
		"": false,
	} {
		var log bytes.Buffer
		warnOfFiles(url, slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "podAccess.claimName"); got != warned {
			t.Errorf("%q: %s", url, log.String())
		}
	}
}
