package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// TestRestoreFromAClaim restores a backup from files on a PersistentVolumeClaim into
// volumes that are too small for it, first by what Git says and then by what the file
// system says: the restore waits, and continues on the volume that Git enlarges (192, 206).
func TestRestoreFromAClaim(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "claim")
	w.needsClusterScoped() // a volume grows
	url := w.backUpOnClaim("backups", 40)
	want := spec{version: "3.6.16", replicas: 3}
	sized := func(size string) map[string]string {
		text := w.restoreFile(fmt.Sprintf("{objectURL: %q, podAccess: {claimName: backups}}", url), want)
		return map[string]string{"clusters/restore.yaml": strings.Replace(text, "size: 256Mi", "size: "+size, 1)}
	}

	w.options.Args = append(w.options.Args, "--backup-place=file:///")
	w.commitFiles("Restore", sized("128Mi"))
	w.start()
	hold := w.awaitHold("Refused", holdLimit, "its restore needs", "set spec.clusterTemplate.storage.size to more than that")
	t.Logf("quorate says: %s", hold.Hold())
	w.expectNone("StatefulSet", "Job")

	// A file system takes some of the volume for itself.
	m, err := backup.Store{Drivers: clouds.Drivers()}.ReadManifest(t.Context(), url)
	w.must(err)
	w.commitFiles("Ask for larger volumes", sized(fmt.Sprintf("%dMi", state.RestoreRoom(cmp.Or(m.SnapshotSize, m.Size))>>20+1)))
	hold = w.awaitHold("Unhealthy", rollLimit, "the volume has no room for it", "raise storage.size in its file")
	t.Logf("quorate says: %s", hold.Hold())
	w.commitFiles("Ask for volumes that have room", sized("256Mi"))
	w.awaitIdle(want.version, 2*rollLimit)
	w.expectVersion(3, want.version)

	client, err := w.cluster.Dial(t.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	keys, err := client.Get(t.Context(), "much/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	w.must(err)
	if keys.Count != 40 {
		t.Errorf("%d keys of 40 are back", keys.Count)
	}
	claim, err := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Get(t.Context(), naming.Claim("", "orders-0"), metav1.GetOptions{})
	w.must(err)
	if got := claim.Status.Capacity.Storage().String(); got != "256Mi" {
		t.Errorf("the volume has %s", got)
	}
}

// backUpOnClaim makes a claim, and backs an etcd with so many values of 512 KiB up into
// files on it.
func (w *world) backUpOnClaim(claim string, values int) (url string) {
	w.Helper()
	sandbox := w.cluster.Sandbox
	if sandbox == nil {
		w.Skip("only the sandbox's volumes can be reached from here")
	}
	dir := w.makeClaim(claim, "128Mi")
	e, err := sandbox.StartEtcd(w.Context(), "3.6.16", filepath.Join(w.TempDir(), "etcd"))
	w.must(err)
	defer e.Close()
	client, err := e.Dial("", "")
	w.must(err)
	defer func() { _ = client.Close() }()
	for n := range values {
		_, err := client.Put(w.Context(), fmt.Sprintf("much/%d", n), strings.Repeat("x", 512<<10))
		w.must(err)
	}
	url = storeBackup(w.T, client, "file://"+dir+"/orders/1.db?root="+dir, backup.Manifest{})
	// In a cluster the daemon and the pods that restore have the same user.
	w.must(filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) == "lost+found" {
			return err
		}
		return os.Chown(path, naming.NonRootID, naming.NonRootID)
	}))
	return url
}

// makeClaim makes a claim with a volume on some node, and returns where that is on this
// machine.
func (w *world) makeClaim(claim, size string) (dir string) {
	w.Helper()
	nodes, err := w.cluster.Client.CoreV1().Nodes().List(w.Context(), metav1.ListOptions{})
	w.must(err)
	claims := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace)
	_, err = claims.Create(w.Context(), &corev1.PersistentVolumeClaim{
		// No pod of the test uses it before the restore does, so that the scheduler
		// chooses no node.
		ObjectMeta: metav1.ObjectMeta{Name: claim, Annotations: map[string]string{"volume.kubernetes.io/selected-node": nodes.Items[0].Name}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}, metav1.CreateOptions{})
	w.must(err)
	w.eventually("the claim "+claim+" to be bound", holdLimit, func(ctx context.Context) (bool, error) {
		pvc, err := claims.Get(ctx, claim, metav1.GetOptions{})
		return err == nil && pvc.Status.Phase == corev1.ClaimBound, err
	})
	dir, err = w.cluster.VolumePath(w.Context(), w.namespace, claim)
	w.must(err)
	return dir
}
