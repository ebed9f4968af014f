package e2e

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// busyPrefix begins the names of what the load of an API server writes.
const busyPrefix = "busy-"

// TestABusyAPIServersEtcdIsRestored runs a real API server on a cluster of quorate's. It is
// written to all the time and compacts its history every few seconds, as the etcd of
// every Kubernetes does, so that no backup is of a history that is whole. Its backups
// pass their drills, and one of them is restored three times in a row, in the cluster's
// own place, while an informer watches: each time the informer is turned away, reads
// anew, and never sees a revision go back (163, 167).
func TestABusyAPIServersEtcdIsRestored(t *testing.T) {
	takesLong(t)
	if shared.cluster.Sandbox == nil {
		t.Skip("only the sandbox has an API server to start")
	}
	t.Parallel()
	w := newWorld(t, "busy")
	want := spec{version: "3.6.16", replicas: 3, tls: "Disabled"}
	w.create(want)
	door := w.startTunnel(w.clientAddress())
	k := startAPIServer(t, "http://"+door.address, "--etcd-compaction-interval=4s")
	for name, value := range map[string]string{"kept": "1", "changed": "before", "dropped": "1"} {
		k.put(name, value)
	}
	informer := k.inform()
	then := map[string]string{"kept": "1", "changed": "before", "dropped": "1"}
	informer.expect("what was written", then)
	stop := k.keepBusy()

	schedule := fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdBackupSchedule
metadata: {name: minutely, namespace: %s}
spec:
  schedule: "* * * * *"
  verify: {restore: Always}
  retention: {keepLast: 99}
  backupTemplate: {source: {clusterName: orders}}
`, w.namespace)
	w.commitFiles("Ask for backups", map[string]string{file: w.text(want), "clusters/backups.yaml": schedule})
	for range 2 {
		w.awaitDrill("restore drill passed")
	}
	w.commitFiles("That is enough", map[string]string{"clusters/backups.yaml": ""})
	chosen := w.drilled()
	k.put("changed", "after")
	k.put("late", "1")
	k.must(k.client.CoreV1().ConfigMaps(k.namespace).Delete(t.Context(), "dropped", metav1.DeleteOptions{}))
	informer.expect("what was written after the backup", map[string]string{"kept": "1", "changed": "after", "late": "1"})

	for i := range 3 {
		seen := informer.LastSyncResourceVersion()
		deleted := want
		deleted.state = "Deleted"
		source := fmt.Sprintf("{objectURL: %q}", chosen.Object)
		w.commitFiles("Restore it in its place", map[string]string{
			file: w.text(deleted), "clusters/restore.yaml": w.restoreNamed(fmt.Sprintf("back-%d", i+1), source, want),
		})
		w.awaitRestored(fmt.Sprintf("back-%d", i+1))
		door.leadTo(w.clientAddress())
		client, err := w.cluster.Dial(t.Context(), w.namespace, name)
		k.expectExpired(client, err, seen)
		informer.expect("what the backup has", then)
		if now := number(t, informer.LastSyncResourceVersion()); now < number(t, seen)+state.RevisionBump/2 {
			t.Fatalf("restore %d: the informer was at %s and is at %d", i+1, seen, now)
		}
		k.put("changed", fmt.Sprintf("again %d", i+1))
		informer.expect("what is written then", map[string]string{"kept": "1", "changed": fmt.Sprintf("again %d", i+1), "dropped": "1"})
		w.commitFiles("It is a cluster like any other", map[string]string{file: w.text(want), "clusters/restore.yaml": ""})
	}
	if writes := stop(); writes < 100 {
		t.Errorf("only %d writes were acknowledged meanwhile", writes)
	}
}

// clientAddress is where clients reach the cluster, as a host and a port, once they may.
func (w *world) clientAddress() (address string) {
	w.Helper()
	w.eventually("the Service for clients", holdLimit, func(ctx context.Context) (bool, error) {
		service, err := w.cluster.Client.CoreV1().Services(w.namespace).Get(ctx, naming.ClientService(name), metav1.GetOptions{})
		if err == nil {
			address = net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(naming.ClientPort))
		}
		return err == nil, nil
	})
	return address
}

// awaitRestored waits until clients may come to what a restore has made.
func (w *world) awaitRestored(restore string) {
	w.Helper()
	w.eventually("the restore "+restore, 2*rollLimit, func(context.Context) (bool, error) {
		r := w.record()
		return r.Restored != nil && r.Restored.Name == restore && !r.Restored.At.IsZero(), nil
	})
}

// drilled is a backup of the schedule that was taken after a compaction, with its hash,
// and that passed its drill.
func (w *world) drilled() backup.Manifest {
	w.Helper()
	_, all, err := w.taken(w.Context())
	w.must(err)
	for _, m := range all {
		if m.HashRevision > 0 && m.CompactRevision > 0 && m.Drill.Result == backup.DrillPassed {
			return m
		}
	}
	w.Fatalf("no backup after a compaction passed its drill: %+v", all)
	return backup.Manifest{}
}

// leadTo lets the tunnel lead to another address; open connections are cut. It listens on meanwhile:
// a port that is given up for a moment may be another one's then.
func (t *tunnel) leadTo(target string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.target = target
	for conn := range t.open {
		_ = conn.Close()
	}
}

// keepBusy creates, changes and deletes ConfigMaps until it is stopped, some fifty times a
// second at most and for an hour at most. It returns how many changes were acknowledged.
func (k *kube) keepBusy() (stop func() int64) {
	ctx, cancel := context.WithTimeout(k.Context(), time.Hour)
	var acknowledged atomic.Int64
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if k.change(ctx, i) == nil {
				acknowledged.Add(1)
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	stop = sync.OnceValue(func() int64 { cancel(); all.Wait(); return acknowledged.Load() })
	k.Cleanup(func() { stop() })
	return stop
}

// change makes the i-th change of the load. Each name is created, changed and deleted in
// turn.
func (k *kube) change(ctx context.Context, i int) error {
	configMaps := k.client.CoreV1().ConfigMaps(k.namespace)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", busyPrefix, i%37)}, Data: map[string]string{"value": fmt.Sprint(i)}}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if i/37%7 == 6 {
		return configMaps.Delete(ctx, cm.Name, metav1.DeleteOptions{})
	}
	_, err := configMaps.Update(ctx, cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, created := configMaps.Create(ctx, cm, metav1.CreateOptions{})
		return created
	}
	return err
}
