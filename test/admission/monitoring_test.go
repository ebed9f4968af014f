package admission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deployFrom stands for deploy/ in the text of an overlay.
const deployFrom = "DEPLOY"

// overlayOf is the directory of a kustomization.
func overlayOf(t *testing.T, text string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at, err := filepath.Abs(deploy(""))
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err == nil {
		at, err = filepath.Rel(dir, at) // kustomize takes no other
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(strings.ReplaceAll(text, deployFrom, at)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The overlay that the head of deploy/monitoring/secure shows has quorate serve its metrics by TLS at a
// port of their own, the monitor scrape them there, and an API server take it.
func TestTheSecureMetricsAreDeployed(t *testing.T) {
	h := emptyHouse(t)
	found := map[string]bool{}
	for _, o := range deployed(t, overlayOf(t, "resources: [DEPLOY/base, DEPLOY/monitoring]\ncomponents: [DEPLOY/monitoring/secure]\n")) {
		found[o.GetKind()] = true
		switch o.GetKind() {
		case "Namespace":
			h.apply(o)
		case "Deployment":
			d := typed[appsv1.Deployment](t, o)
			h.takes(o)
			servesByTLS(t, d.Spec.Template.Spec)
		case "Service":
			s := typed[corev1.Service](t, o)
			h.takes(o)
			if s.Name != "quorate-metrics" {
				continue // the one that acts, for people
			}
			if i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == "metrics" }); i < 0 || s.Spec.Ports[i].TargetPort.String() != "metrics" {
				t.Errorf("the Service has the ports %+v", s.Spec.Ports)
			}
		case "ServiceMonitor":
			endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
			h.must(err)
			for _, e := range endpoints {
				e, _ := e.(map[string]any)
				ca, _, _ := unstructured.NestedString(e, "tlsConfig", "ca", "secret", "name")
				name, _, _ := unstructured.NestedString(e, "tlsConfig", "serverName")
				if e["port"] != "metrics" || e["scheme"] != "https" || e["bearerTokenFile"] == nil || ca != "quorate-tls" || name != "quorate-metrics."+quorateSystem+".svc" {
					t.Errorf("the monitor scrapes %v", e)
				}
			}
			found["endpoint"] = len(endpoints) == 1
		}
	}
	for _, kind := range []string{"Deployment", "Service", "ServiceMonitor", "endpoint", "PrometheusRule"} {
		if !found[kind] {
			t.Errorf("there is no %s", kind)
		}
	}
}

// servesByTLS wants quorate to have its flags, the port that they name, and the files.
func servesByTLS(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	for _, flag := range []string{"--metrics-listen=:8443", "--metrics-auth=token", "--tls-cert-file=/tls/tls.crt", "--tls-key-file=/tls/tls.key"} {
		if !slices.Contains(c.Args, flag) {
			t.Errorf("quorate has no %s: %q", flag, c.Args)
		}
	}
	if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" && p.ContainerPort == 8443 }) {
		t.Errorf("quorate has the ports %+v", c.Ports)
	}
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "tls" && m.MountPath == "/tls" && m.ReadOnly }) {
		t.Errorf("quorate has the mounts %+v", c.VolumeMounts)
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Name == "tls" && v.Secret != nil && v.Secret.SecretName == "quorate-tls"
	}) {
		t.Errorf("quorate has the volumes %+v", pod.Volumes)
	}
}

// takes wants the API server to take an object, which is not made.
func (h *house) takes(o *unstructured.Unstructured) {
	h.Helper()
	_, err := h.of(o).Create(h.Context(), o, metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		h.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
}
