package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/test/lab"
)

// restoreFile is an EtcdRestore into the cluster of the tests.
func (w *world) restoreFile(source string, s spec) string {
	return w.restoreNamed("back", source, s)
}

// restoreNamed is restoreFile for one of several restores.
func (w *world) restoreNamed(restore, source string, s spec) string {
	tls := ""
	if s.tls != "" {
		tls = ", tls: {mode: " + s.tls + "}"
	}
	return fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: %s, namespace: %s}
spec:
  clusterName: %s
  source: %s
  clusterTemplate: {version: %q, replicas: %d, storage: {size: 256Mi}, upgrade: {backup: Skip, soak: 0s}%s}
`, restore, w.namespace, name, source, s.version, s.replicas, tls)
}

// TestRestoreInPlace takes the place of a cluster that Git deletes: one commit says
// both. The backup that was taken before the deletion comes back with all keys, on
// new volumes and as another cluster, under the names that clients know; a watch
// from before gets an error. It happens once, whatever restarts, and the file of the
// cluster that takes over from that of the restore restarts no member.
func TestRestoreInPlace(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "restore")
	want := spec{version: "3.5.35", replicas: 3}
	w.create(want)
	writer := w.load()
	writer.Stop()
	before, claims, service := w.record(), w.claimUIDs(), "orders-client"
	data := w.data()
	seen := w.revision()

	// 117, 119, 126, 128: deleted with a backup, then restored, a minor later.
	deleted := want
	deleted.state, deleted.backup = "Deleted", "Required"
	want.version = "3.6.16"
	restore := w.restoreFile("{clusterName: orders}", want)
	w.commitFiles("Delete it, and restore it in its place", map[string]string{file: w.text(deleted), "clusters/restore.yaml": restore})
	w.awaitIdle(want.version, 2*rollLimit)
	w.expectVersion(3, want.version)
	// The Service has its old name and another address: new connections reach it.
	if found := w.data(); len(found) < 20 || !maps.Equal(found, data) {
		t.Errorf("%d keys of %d, or others, are back", len(found), len(data))
	}

	now := w.record()
	if now.Restored == nil || now.Restored.At.IsZero() || now.ClusterID == before.ClusterID || now.Token == before.Token || len(now.Predecessors) != 1 || len(now.Members) != 3 {
		t.Errorf("the record is %+v", now)
	}
	after := w.claimUIDs()
	for claim, uid := range claims {
		if after[claim] != uid {
			t.Errorf("claim %s of the deleted cluster was touched", claim)
		}
	}
	for i := range 3 {
		if claim := fmt.Sprintf("%s-orders-%d", now.ClaimPrefix, i); after[claim] == "" {
			t.Errorf("no claim %s: %v", claim, after)
		}
	}

	// 125, I8: revisions are far ahead, and a watch from before hears that.
	client, err := w.cluster.Dial(t.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	if at := w.revision(); at < seen+state.RevisionBump {
		t.Errorf("revision %d after %d", at, seen)
	}
	events := client.Watch(t.Context(), "", clientv3.WithPrefix(), clientv3.WithRev(seen+1))
	select {
	case answer := <-events:
		if !errors.Is(answer.Err(), rpctypes.ErrCompacted) {
			t.Errorf("a watch from before: %+v, %v", answer, answer.Err())
		}
	case <-time.After(holdLimit):
		t.Error("a watch from before hears nothing")
	}

	// The Service for clients came last.
	live, err := w.cluster.Client.CoreV1().Services(w.namespace).Get(t.Context(), service, metav1.GetOptions{})
	w.must(err)
	for _, p := range w.births() {
		if p.After(live.CreationTimestamp.Time) {
			t.Errorf("a member's pod is from %s, and clients could come at %s", p, live.CreationTimestamp)
		}
	}

	// 119, I13: not again by another process, nor when the cluster's own file comes.
	pods := w.uids()
	w.must(w.daemon.Restart())
	time.Sleep(quiet)
	w.commitFiles("It is a cluster like any other", map[string]string{file: w.text(want), "clusters/restore.yaml": ""})
	// There is nothing to do, so nothing is logged.
	w.await("the commit", holdLimit, func(l lab.LogLine) bool { return l.Msg == "commit accepted" && l.Commit == w.head })
	time.Sleep(quiet)
	if again := w.record(); again.ClusterID != now.ClusterID || again.Recovering != nil || len(again.Predecessors) != 1 || fmt.Sprint(w.uids()) != fmt.Sprint(pods) {
		t.Errorf("it happened again, or a member restarted: %+v", again)
	}
	begun := 0
	for _, l := range w.daemon.Log.Lines(0) {
		if strings.Contains(l.Raw, "begin to restore") && strings.Contains(l.Raw, `"msg":"step started"`) {
			begun++
		}
	}
	if begun != 1 {
		t.Errorf("%d restores were begun", begun)
	}
}

// data is every key and its value, read through the clients' Service.
func (w *world) data() map[string]string {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	answer, err := client.Get(w.Context(), "", clientv3.WithPrefix())
	w.must(err)
	all := map[string]string{}
	for _, kv := range answer.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}

// births are the times at which the members' pods were made.
func (w *world) births() []time.Time {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	var times []time.Time
	for _, p := range pods {
		times = append(times, p.CreationTimestamp.Time)
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}
