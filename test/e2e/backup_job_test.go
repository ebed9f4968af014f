package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

const (
	// slowly is --backup-bandwidth, and slowBytes the same as a number.
	slowly    = "512Ki"
	slowBytes = 512 << 10
)

// TestBackupByJob has a Job take the backup that a file asks for, at the pace that it
// may have, and kills the daemon meanwhile: the Job continues, its backup is the only
// one, and nothing else is left of it (95, 98).
func TestBackupByJob(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "job")
	w.options.Args = []string{"--backup-runner=job", "--max-backups=1", "--backup-bandwidth=" + slowly}
	w.makeStoreSecret(shared.store)
	want := spec{version: "3.6.16", replicas: 3}
	w.create(want)
	w.writeMuch(8)
	place, query, _ := strings.Cut(shared.store.ObjectURL(""), "?")
	w.commitFiles("Ask for a backup", map[string]string{file: w.text(want), "clusters/backups.yaml": fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdBackup
metadata: {name: before-sale, namespace: %[1]s}
spec:
  source: {clusterName: orders}
  destination:
    objectURLTemplate: "%[2]s%[1]s/{{ .Name }}/{{ .UID }}.db?%[3]s"
    credentials: {secretName: store}
`, w.namespace, place, query)})

	var began time.Time
	w.eventually("the pod of a Job to run", holdLimit, func(ctx context.Context) (bool, error) {
		pods, err := w.jobPods(ctx)
		if err != nil || len(pods) == 0 || pods[0].Status.Phase != corev1.PodRunning {
			return false, err
		}
		began = pods[0].Status.ContainerStatuses[0].State.Running.StartedAt.Time
		return true, nil
	})
	w.must(w.daemon.Restart())
	w.mark = w.daemon.Log.Mark()
	w.awaitBackup("EtcdBackup " + w.namespace + "/before-sale")

	once, _, err := w.taken(t.Context())
	w.must(err)
	if len(once) != 1 || once[0].ClusterID != w.record().ClusterID || once[0].Hash == 0 || once[0].Keys == 0 {
		t.Fatalf("%+v", once)
	}
	key := strings.TrimPrefix(once[0].Object, "s3://"+lab.Bucket+"/")
	written, err := os.Stat(shared.store.ObjectPath(key) + backup.ManifestSuffix)
	w.must(err)
	// Twice the pace is slow enough: a limiter begins with a full bucket.
	if took, least := written.ModTime().Sub(began), time.Duration(once[0].Size)*time.Second/slowBytes/2; took < least {
		t.Errorf("%d bytes took %s, at %s a second that is at least %s", once[0].Size, took, slowly, least)
	}
	w.eventually("nothing to be left of the Job", holdLimit, func(ctx context.Context) (bool, error) {
		pods, err := w.jobPods(ctx)
		if err != nil || len(pods) > 0 {
			return false, err
		}
		running, err := w.cluster.Client.BatchV1().Jobs(w.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(running.Items) == 0, err
	})
}

// makeStoreSecret makes the Secret store, with which files name a store by its endpoint,
// and Jobs use it.
func (w *world) makeStoreSecret(s *lab.S3Server) {
	w.Helper()
	_, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Create(w.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "store", Labels: map[string]string{naming.LabelUse: naming.UseBackups}},
		StringData: map[string]string{"access-key-id": s.AccessKey, "secret-access-key": s.SecretKey},
	}, metav1.CreateOptions{})
	w.must(err)
}

// writeMuch writes so many values of 512 KiB.
func (w *world) writeMuch(count int) {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	for n := range count {
		ctx, cancel := context.WithTimeout(w.Context(), holdLimit)
		_, err := client.Put(ctx, fmt.Sprintf("much/%d", n), strings.Repeat("x", 512<<10))
		cancel()
		w.must(err)
	}
}

// jobPods are the pods of Jobs.
func (w *world) jobPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := w.cluster.Client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}
