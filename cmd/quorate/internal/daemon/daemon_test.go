package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/signing"
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

// A missing namespace of the lease is told with what to do; where it may not be read, the lease
// tells.
func TestAMissingNamespaceOfTheLeaseIsTold(t *testing.T) {
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "quorate-system"}})
	err := checkHome(t.Context(), kube, "elsewhere")
	if err == nil || !strings.Contains(err.Error(), "create it with kubectl create namespace elsewhere, or name another one with --lease-namespace") {
		t.Errorf("no namespace: %v", err)
	}
	if err := checkHome(t.Context(), kube, "quorate-system"); err != nil {
		t.Errorf("it is there: %v", err)
	}
	kube.PrependReactor("get", "namespaces", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "elsewhere", errors.New("no right"))
	})
	if err := checkHome(t.Context(), kube, "elsewhere"); err != nil {
		t.Errorf("it may not be read: %v", err)
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

func TestAPlaceThatAllNamespacesShareIsWarnedOf(t *testing.T) {
	for template, want := range map[string]string{
		"s3://backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db": "",
		"s3://{{ .Namespace }}/{{ .UID }}.db":                     "",
		"s3://backups/{{ .UID }}.db?region=eu-west-1":             "place=s3://backups/ ",
		"s3://backups/{{ .Namespace }}-{{ .UID }}.db":             "place=s3://backups/ ",
		"s3://backups/{{ .Name }}/{{ .Namespace }}/{{ .UID }}.db": "place=s3://backups/ ",
		"s3://archive/":         "place=s3://archive/ ",
		"s3://{{ .Name }}/1.db": "", // it is no place
		"":                      "",
	} {
		var log bytes.Buffer
		warnOfSharedPlaces([]string{template}, slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %s", template, got)
		}
	}
}

func TestABackupURLThatDoesNotServeIsWarnedOf(t *testing.T) {
	const overHTTP = "s3://backups/{{ .UID }}.db?region=eu-west-1&endpoint=http://minio"
	for _, c := range []struct {
		url      string
		insecure bool
		want     string
	}{
		{"file:///backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db", false, "podAccess.claimName"},
		{"s3://backups/{{ .UID }}.db?region=eu-west-1", false, ""},
		{"s3://backups/{{ .UID }}.db?region=eu-west-1&endpoint=https://minio/{{ .Namespace }}", false, ""},
		{overHTTP, false, "parameter=endpoint remedy=\"write https, or add --insecure-stores\""},
		{overHTTP, true, ""},
		{"s3://backups/{{ .UID }}.db?region=x&role=arn:aws:iam::1:role/{{ .Name }}", false, "no field but {{ .Namespace }}"},
		{"s3://backups/{{ .UID }}.db?regoin=x", false, "did you mean region?"},
		{"", false, "give --backup-url, which is BACKUP_URL of the ConfigMap quorate-settings with deploy/base, or set spec.backup.destination.objectURLTemplate"},
	} {
		var log bytes.Buffer
		warnOfStore(c.url, c.insecure, slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Count(got, "level=WARN") > 1 {
			t.Errorf("%q: %s", c.url, got)
		}
	}
}

// That what is restored is not signed is said once, at the start.
func TestUnsignedBackupsAreWarnedOf(t *testing.T) {
	key, _ := backuptest.NewKeyFile(t)
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	if err := os.WriteFile(trusted, backuptest.PublicPEM(t, key), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, trusted, want string }{
		{"", "", "can replace a backup and its manifest together"},
		{"", trusted, "backups that are taken are not signed"},
		{key, "", ""},
		{key, trusted, ""},
	} {
		keys, err := signing.OpenKeys(c.key, c.trusted, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		warnOfUnsigned(keys, slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Count(got, "level=WARN") > 1 || c.want != "" && !strings.Contains(got, "--backup-signing-key-file") {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The heap may grow more while a commit is read, and no more after that.
func TestCollectLater(t *testing.T) {
	before := debug.SetGCPercent(garbage)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	end := collectLater()
	during := percent()
	end()
	if after := percent(); during <= garbage || after != garbage {
		t.Errorf("GOGC is %d while a commit is read, and %d after that", during, after)
	}
}
