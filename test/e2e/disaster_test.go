package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/test/lab"
)

// exampleOfDisaster is the example whose page the test follows.
const exampleOfDisaster = "../../examples/disaster-recovery"

// TestDisasterRecovery destroys every volume of the cluster of the example while
// clients write, and then does what its page tells a person to do in the night, word
// for word. Everything up to the last backup is back, and the clients as well, by the
// name that they had (86, 117, 119).
func TestDisasterRecovery(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "disaster")
	w.makeStoreSecret(shared.store)
	names := w.exampleNames()
	files, err := lab.ReadTree(exampleOfDisaster)
	w.must(err)
	for path, text := range files {
		files[path] = names.Replace(text)
	}
	w.commitFiles("Add orders, its backups, and what to do in the night", files)
	p := w.readPage(filepath.Join(exampleOfDisaster, "README.md"), names)
	w.follow(p, "Before the night")

	w.start()
	w.awaitIdle("3.6.16", createLimit)
	writer := w.load()
	// Some writes before the last backup, and some that will be lost.
	for _, least := range []int{100, 20} {
		before := writer.Report().Writes.OK
		w.eventually("more writes", holdLimit, func(context.Context) (bool, error) {
			return writer.Report().Writes.OK >= before+least, nil
		})
		if least == 100 {
			w.mark = w.daemon.Log.Mark()
			w.awaitBackup("EtcdBackupSchedule " + w.namespace + "/orders")
		}
	}
	lost := w.record()
	w.destroyVolumes()
	writer.Stop()
	// While new pods may only need some time, what quorate says changes from second to second.
	w.awaitHold("Unhealthy", rollLimit, "the quorum is lost: it takes 2 of 3 members, and 0 answer", "is empty although this member had joined")

	// The newest backup, whichever that is by now.
	w.must(shared.store.UseCredentials())
	list, err := backup.Store{Drivers: clouds.Drivers()}.List(t.Context(), shared.store.ObjectURL("scheduled/"+w.namespace+"/orders/"))
	if err != nil || len(list) == 0 {
		t.Fatalf("%d backups, %v", len(list), err)
	}
	w.follow(p, "In the night")
	now := w.record()
	if now.Restored == nil || now.Restored.At.IsZero() || now.ClusterID == lost.ClusterID {
		t.Errorf("the record is %+v", now)
	}
	w.expectVersion(3, "3.6.16")
	found, err := writer.VerifyUntil(t.Context(), list[0].Revision)
	w.must(err)
	if found == 0 {
		t.Error("no acknowledged write is back")
	}
	t.Logf("%d of %d acknowledged writes are back, those up to revision %d", found, writer.Report().Writes.OK, list[0].Revision)
	again, err := w.cluster.Write(t.Context(), w.namespace, name, lab.WriterOptions{Prefix: "again/"})
	w.must(err)
	defer again.Close()

	pods := w.uids()
	w.follow(p, "The morning after")
	if after := w.record(); after.ClusterID != now.ClusterID || fmt.Sprint(w.uids()) != fmt.Sprint(pods) {
		t.Errorf("a member restarted, or it happened again: %+v", after)
	}
	w.finishLoad(again)
}

// exampleNames are the test's own names for what the example names: its namespace and
// its bucket; and its volumes are small, its backups frequent.
func (w *world) exampleNames() *strings.Replacer {
	place, query, _ := strings.Cut(shared.store.ObjectURL(""), "?")
	return strings.NewReplacer(
		"namespace: shop", "namespace: "+w.namespace, "-n shop ", "-n "+w.namespace+" ", "shop/orders", w.key(),
		"s3://shop-backups/", place, "?region=eu-west-1", "?"+query,
		"size: 8Gi", "size: 256Mi", `"*/30 * * * *"`, `"* * * * *"`,
		// The store of the test has an endpoint of its own, for which a file names a Secret.
		"destination:\n      objectURLTemplate:", "destination:\n      credentials: {secretName: store}\n      objectURLTemplate:",
		"destination:\n        objectURLTemplate:", "destination:\n        credentials: {secretName: store}\n        objectURLTemplate:",
		// That volumes are small, backups frequent, and each of the places without TLS.
		"1 schedule, 0 errors, 0 warnings", "1 schedule, 0 errors, 4 warnings",
		"1 restore, 0 errors, 0 warnings", "1 restore, 0 errors, 6 warnings",
	)
}

// destroyVolumes deletes every claim with its volume, and ends the pods that use them.
func (w *world) destroyVolumes() {
	w.Helper()
	w.mark = w.daemon.Log.Mark()
	now, all := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{LabelSelector: clusterSelector}
	w.must(w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).DeleteCollection(w.Context(), metav1.DeleteOptions{}, all))
	w.must(w.cluster.Client.CoreV1().Pods(w.namespace).DeleteCollection(w.Context(), now, all))
}
