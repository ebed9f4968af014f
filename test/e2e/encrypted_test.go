package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"filippo.io/age"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/test/lab"
)

// TestEncryptedBackup takes an encrypted backup, and restores it into a cluster next to
// the first: with another's private key it is held and nothing runs; once the Secret
// has the right one, it continues.
func TestEncryptedBackup(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "encrypted")
	key, err := age.GenerateX25519Identity()
	w.must(err)
	another, err := age.GenerateX25519Identity()
	w.must(err)
	want := spec{version: "3.6.16", replicas: 1}
	w.create(want)
	writer := w.load()
	writer.Stop()
	data := w.data()

	w.commitFiles("Ask for a backup", map[string]string{file: w.text(want), "clusters/backup.yaml": fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdBackup
metadata: {name: before-sale, namespace: %s}
spec:
  source: {clusterName: orders}
  destination: {encryption: {recipients: [%s]}}
`, w.namespace, key.Recipient())})
	w.awaitBackup("EtcdBackup " + w.namespace + "/before-sale")
	taken, _, err := w.taken(t.Context())
	w.must(err)
	url := taken[0].URL(shared.store.ObjectURL(""))
	if m, err := (backup.Store{Drivers: clouds.Drivers(), Identity: key.String()}).Verify(t.Context(), url); err != nil || !m.Encrypted {
		t.Fatalf("%+v, %v", m, err)
	}

	// 111: the Secret has another's key.
	secrets := w.cluster.Client.CoreV1().Secrets(w.namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "age"}, StringData: map[string]string{"identity": another.String()}}
	_, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	w.must(err)
	w.commitFiles("Restore it", map[string]string{"clusters/restore.yaml": fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: copy, namespace: %s}
spec:
  source: {objectURL: %q, decryption: {secretName: age}}
  clusterTemplate: {version: "3.6.16", replicas: 1, storage: {size: 256Mi}, upgrade: {backup: Skip, soak: 0s}}
`, w.namespace, taken[0].Object)})
	hold := w.awaitHold("Unhealthy", rollLimit, "could not be restored", "not for the private key that was given")
	if strings.Contains(hold.Raw, "AGE-SECRET-KEY") {
		t.Error("the log has the private key")
	}

	// 112: the Secret is put right, and what the hold says is done.
	secret.StringData["identity"] = key.String()
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	w.must(err)
	running := w.cluster.Client.BatchV1().Jobs(w.namespace)
	list, err := running.List(t.Context(), metav1.ListOptions{LabelSelector: "quorate.dev/restore-of=copy"})
	w.must(err)
	for _, job := range list.Items {
		w.must(running.Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
	}
	w.await("the restored cluster", rollLimit, lab.Idle(w.namespace+"/copy", "3.6.16"))
	client, err := w.cluster.Dial(t.Context(), w.namespace, "copy")
	w.must(err)
	defer func() { _ = client.Close() }()
	answer, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	w.must(err)
	found := map[string]string{}
	for _, kv := range answer.Kvs {
		found[string(kv.Key)] = string(kv.Value)
	}
	if len(data) < 20 || !maps.Equal(found, data) {
		t.Errorf("%d keys of %d, or others", len(found), len(data))
	}
}
