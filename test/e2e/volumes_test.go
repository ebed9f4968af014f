package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVolumesGrow asks for larger volumes: they grow in use, no member restarts,
// and members that come later get the new size as well.
func TestVolumesGrow(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "grow")
	w.needsClusterScoped()
	want := spec{version: "3.6.16", replicas: 3}
	text := w.text(want)
	w.create(want)
	history, before := w.recordHistory("history/"), w.uids()

	w.commitText("Grow the volumes", strings.Replace(text, "256Mi", "384Mi", 1))
	w.awaitDone(changeLimit)
	for _, claim := range []string{"data-orders-0", "data-orders-1", "data-orders-2"} {
		w.eventually(claim+" to be larger", holdLimit, func(ctx context.Context) (bool, error) {
			pvc, err := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Get(ctx, claim, metav1.GetOptions{})
			return err == nil && pvc.Status.Capacity.Storage().Cmp(resource.MustParse("384Mi")) >= 0, err
		})
	}
	if after := w.uids(); !maps.Equal(before, after) {
		t.Errorf("pods were %v and are %v", before, after)
	}
	set, err := w.cluster.Client.AppsV1().StatefulSets(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
	w.must(err)
	if size := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage(); size.String() != "384Mi" {
		t.Errorf("the next member would get a volume of %s", size)
	}
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	w.checkHistory(history)

	// 6: never smaller.
	w.commitText("Shrink the volumes", text)
	w.awaitHold("Refused", holdLimit, "spec.storage.size")
}

// TestNoSpace fills the database up to its quota with old revisions: quorate
// makes room, one member at a time, and takes the alarm away.
func TestNoSpace(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "nospace")
	want := spec{version: "3.6.16", replicas: 3, backup: "Required", more: "  etcd:\n    quotaBackendBytes: 16Mi\n"}
	w.create(want)
	history := w.recordHistory("history/")
	before := w.uids()
	client, err := w.cluster.Dial(t.Context(), w.namespace, name)
	w.must(err)
	t.Cleanup(func() { _ = client.Close() })

	// 91: the same key again and again; only its newest value is needed.
	from := w.daemon.Log.Mark()
	w.fillDatabase(client)
	w.mark = from
	w.eventually("etcd to take writes again", changeLimit, func(ctx context.Context) (bool, error) {
		alarms, err := client.AlarmList(ctx)
		if err != nil || len(alarms.Alarms) > 0 {
			return false, nil
		}
		_, err = client.Put(ctx, "filler", "")
		return err == nil, nil
	})
	w.expectOrder(from, "back up", "compact", "defragment", "defragment", "defragment", "disarm")
	if after := w.uids(); !maps.Equal(before, after) {
		t.Errorf("pods were %v and are %v", before, after)
	}
	w.expectServing(3)
	w.checkHistory(history)
	w.expectProgress(history)
	w.checkHistory(history)
}

// fillDatabase overwrites one key until etcd refuses, at most 100 MiB in all.
func (w *world) fillDatabase(client *clientv3.Client) {
	w.Helper()
	value := strings.Repeat("x", 512<<10)
	for n := range 200 {
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		_, err := client.Put(ctx, "filler", fmt.Sprintf("%d %s", n, value))
		cancel()
		if err != nil && strings.Contains(err.Error(), "space exceeded") {
			return
		}
		w.must(err)
	}
	w.Fatal("etcd took 100 MiB in spite of its quota")
}
