package admission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The overlay that docs/signing.md shows gives quorate the key, and an API server takes it.
func TestTheOverlayOfSignedBackupsIsDeployed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "signing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```yaml\n")
	shown, _, _ = strings.Cut(shown, "```")
	dir := overlayOf(t, strings.Replace(shown, "../../base", deployFrom+"/base", 1))
	h, seen := emptyHouse(t), false
	for _, o := range deployed(t, dir) {
		switch o.GetKind() {
		case "Namespace":
			h.apply(o)
		case "Deployment":
			h.takes(o)
			pod := typed[appsv1.Deployment](t, o).Spec.Template.Spec
			flag := slices.Contains(pod.Containers[0].Args, "--backup-signing-key-file=/etc/quorate/signing/backup-signing.pem")
			seen = flag && slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
				return v.Secret != nil && v.Secret.SecretName == "quorate-backup-signing"
			}) && slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/quorate/signing" })
		}
	}
	if !seen {
		t.Error("quorate does not get the key")
	}
}
