package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/test/lab"
)

// TestLostQuorum takes the majority away: one volume is gone, and another member
// is cut off the network with its volume. Nothing happens on its own. A commit that
// names the survivor brings the cluster back, with all data and on all members,
// and nothing that the cut-off member had is deleted.
func TestLostQuorum(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "quorum")
	sandbox := w.cluster.Sandbox
	if sandbox == nil {
		t.Skip("only in the sandbox can a pod be cut off")
	}
	want := spec{version: "3.6.16", replicas: 3}
	w.create(want)
	writer := w.load()
	w.eventually("some hundred writes", holdLimit, func(context.Context) (bool, error) { return writer.Report().Writes.OK >= 200, nil })
	writer.Stop()
	w.eventually("every member to have them", holdLimit, w.levelled)
	lost, claims := w.record(), w.claimUIDs()

	// 84: a volume is gone, and a node cannot be reached.
	background := metav1.DeleteOptions{}
	w.must(w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Delete(t.Context(), "data-orders-0", background))
	w.must(sandbox.CutPod(t.Context(), w.namespace, "orders-2"))
	w.must(w.cluster.Client.CoreV1().Pods(w.namespace).Delete(t.Context(), "orders-0", background))
	w.mark = w.daemon.Log.Mark()
	w.awaitHold("Unhealthy", rollLimit, "the quorum is lost: it takes 2 of 3 members, and 1 answer", "orders-1 is at revision",
		"orders-0 does not answer", "orders-2 does not answer", fmt.Sprintf("{clusterID: %q, member: orders-1}", lost.ClusterID))

	// I18: nothing is done automatically, nor for another cluster.
	before := w.uids()
	want.more = "  recovery: {clusterID: c0ffee, member: orders-1}\n"
	w.commit("Recover another cluster", want)
	w.awaitHold("Refused", holdLimit, "it names cluster c0ffee, and this is cluster "+lost.ClusterID)
	time.Sleep(quiet)
	if now := w.record(); now.Recovering != nil || now.ClusterID != lost.ClusterID || fmt.Sprint(w.uids()) != fmt.Sprint(before) {
		t.Fatalf("something was done automatically: %+v", now)
	}

	want.more = fmt.Sprintf("  recovery: {clusterID: %q, member: orders-1}\n", lost.ClusterID)
	w.commit("Recover from orders-1", want)
	w.awaitIdle(want.version, 2*rollLimit)
	w.expectVersion(3, want.version)
	w.expectRecovered(lost.ClusterID, lost.Token)
	w.expectWrites(writer, writer.Report())
	for name, uid := range w.claimUIDs() {
		if name != "data-orders-0" && claims[name] != uid {
			t.Errorf("claim %s is another one", name)
		}
	}

	// I13: once. A later commit that still names it does nothing, and neither does
	// one without it.
	again := w.record()
	w.commit("Say it again", spec{version: want.version, replicas: 3, soak: "1s", more: want.more})
	w.awaitIdle(want.version, rollLimit)
	w.commit("Take it out", spec{version: want.version, replicas: 3})
	w.awaitIdle(want.version, rollLimit)
	if now := w.record(); now.ClusterID != again.ClusterID || len(now.Recovered) != 1 || now.Recovering != nil {
		t.Errorf("it happened again: %+v", now)
	}
}

// levelled reports whether every member has applied the same.
func (w *world) levelled(ctx context.Context) (bool, error) {
	pods, err := w.cluster.Pods(ctx, w.namespace, name)
	if err != nil {
		return false, err
	}
	revisions := map[int64]bool{}
	for i := range pods {
		client, err := w.cluster.DialMember(ctx, &pods[i])
		if err != nil {
			return false, err
		}
		status, err := client.Status(ctx, client.Endpoints()[0])
		_ = client.Close()
		if err != nil {
			return false, err
		}
		revisions[status.Header.Revision] = true
	}
	return len(revisions) == 1, nil
}

// claimUIDs are the UIDs of the volume claims by name.
func (w *world) claimUIDs() map[string]string {
	w.Helper()
	list, err := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).List(w.Context(), metav1.ListOptions{})
	w.must(err)
	uids := map[string]string{}
	for _, c := range list.Items {
		uids[c.Name] = string(c.UID)
	}
	return uids
}

// expectRecovered wants the record to say that the cluster was recovered, and its
// revisions to be far ahead (I8).
func (w *world) expectRecovered(clusterID, token string) {
	w.Helper()
	r := w.record()
	if len(r.Recovered) != 1 || r.Recovered[0].ClusterID != clusterID || r.Recovered[0].Token != token || r.ClusterID == clusterID || r.Token == token || len(r.Members) != 3 {
		w.Errorf("the record is %+v", r)
	}
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	now, err := client.Get(w.Context(), "nothing")
	w.must(err)
	if now.Header.Revision < state.RevisionBump || fmt.Sprintf("%x", now.Header.ClusterId) != r.ClusterID {
		w.Errorf("cluster %x at revision %d", now.Header.ClusterId, now.Header.Revision)
	}
	if _, err := client.Get(w.Context(), "nothing", clientv3.WithRev(10)); !errors.Is(err, rpctypes.ErrCompacted) {
		w.Errorf("a revision of the lost cluster: %v", err)
	}
}

// TestRecoveryFromBackup loses every volume, and recovers from a backup.
func TestRecoveryFromBackup(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "recovery")
	want := spec{version: "3.5.35", replicas: 3}
	w.create(want)
	writer := w.load()
	writer.Stop()
	// An upgrade takes a backup.
	want.version, want.backup = "3.6.16", "Required"
	w.commit("Upgrade", want)
	w.awaitIdle(want.version, rollLimit)
	lost := w.record()

	// 86: every volume is gone.
	for i := range 3 {
		member := fmt.Sprintf("%s-%d", name, i)
		w.must(w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Delete(t.Context(), "data-"+member, metav1.DeleteOptions{}))
		w.must(w.cluster.Client.CoreV1().Pods(w.namespace).Delete(t.Context(), member, metav1.DeleteOptions{}))
	}
	w.mark = w.daemon.Log.Mark()
	object, _, _ := strings.Cut(lost.Backup.URL, "?")
	w.awaitHold("Unhealthy", rollLimit, "the quorum is lost: it takes 2 of 3 members, and 0 answer", "the last verified backup is "+object)
	want.more = fmt.Sprintf("  recovery: {clusterID: %q, objectURL: %q}\n", lost.ClusterID, object)
	w.commit("Recover from the backup", want)
	// The pod that restores has the URL from a Secret, and not in its words.
	w.await("the restore to begin", rollLimit, lab.Done("restore the volume of "))
	running := w.restores()
	if len(running) != 1 || len(running[0].Spec.Template.Spec.Volumes) != 2 || running[0].Spec.Template.Spec.Volumes[1].Secret == nil {
		t.Fatalf("the restore is %+v", running)
	}
	secret := running[0].Spec.Template.Spec.Volumes[1].Secret.SecretName
	w.awaitIdle(want.version, 2*rollLimit)
	w.expectVersion(3, want.version)
	w.expectRecovered(lost.ClusterID, lost.Token)
	w.expectWrites(writer, writer.Report())
	// With the recovery all that it needed is over.
	if left := w.restores(); len(left) > 0 {
		t.Errorf("left behind: %+v", left)
	}
	if _, err := w.cluster.Client.CoreV1().Secrets(w.namespace).Get(t.Context(), secret, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Secret %s is left behind (%v)", secret, err)
	}
}

// restores are the Jobs that restore a volume, those on their way out aside.
func (w *world) restores() []batchv1.Job {
	w.Helper()
	list, err := w.cluster.Client.BatchV1().Jobs(w.namespace).List(w.Context(), metav1.ListOptions{})
	w.must(err)
	return slices.DeleteFunc(list.Items, func(j batchv1.Job) bool { return j.DeletionTimestamp != nil })
}
