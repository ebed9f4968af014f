package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/test/lab"
)

// TestDelete deletes a cluster by the one word in Git that means it, brings it
// back from its volumes by the same file, and deletes it with its volumes.
func TestDelete(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "delete")
	want := spec{version: "3.6.16", replicas: 3}
	w.create(want)
	history := w.recordHistory("history/")
	before, revision := w.record(), w.revision()
	w.checkHistory(history)
	history.Stop()

	// 130: deleted, the volumes kept.
	want.state = "Deleted"
	w.apply("Delete", want)
	w.expectGone("orders-0", "orders-1", "orders-2")
	w.expectClaims("data-orders-0", "data-orders-1", "data-orders-2")
	if keys := w.backups(shared.store); len(keys) != 1 {
		t.Errorf("backups %q, want the one before the deletion", keys)
	}
	w.expectNone("StatefulSet", "Service", "Pod", "Budget")

	// The same file again brings the data back.
	want.state = "Running"
	w.apply("Bring it back", want)
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	if after := w.record(); after.ClusterID != before.ClusterID || !maps.Equal(after.Members, before.Members) {
		t.Errorf("cluster %s with members %v became %s with %v", before.ClusterID, before.Members, after.ClusterID, after.Members)
	}
	if now := w.revision(); now < revision {
		t.Errorf("revision %d became %d", revision, now)
	}
	w.checkHistory(history)
	again := w.recordHistory("again/")
	w.checkHistory(again)
	again.Stop()

	// Deleted permanently, although the StatefulSet was removed while
	// quorate was down, and left its pods running.
	w.must(w.daemon.Stop())
	orphan := metav1.DeletePropagationOrphan
	w.must(w.cluster.Client.AppsV1().StatefulSets(w.namespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &orphan}))
	w.eventually("the StatefulSet to be gone", holdLimit, func(ctx context.Context) (bool, error) {
		_, err := w.cluster.Client.AppsV1().StatefulSets(w.namespace).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	want.state, want.more = "Deleted", "  deletion:\n    volumes: Delete\n    backup: Skip\n"
	w.commit("Delete it with its volumes", want)
	w.must(w.daemon.Start())
	w.awaitDone(changeLimit)
	for _, pod := range []string{"orders-0", "orders-1", "orders-2"} {
		if len(w.lines(0, lab.Step("delete the pod of "+pod))) != 1 {
			t.Errorf("no step deleted %s", pod)
		}
	}
	w.expectClaims()
	w.eventually("everything of quorate's to be gone", holdLimit, func(context.Context) (bool, error) {
		left := w.objects()
		for key := range left {
			// Kubernetes' own notes; a StatefulSet that was orphaned leaves them.
			if strings.HasPrefix(key, "Revision ") {
				delete(left, key)
			}
		}
		return len(left) == 0, nil
	})
	w.eventually("the volumes to be gone", rollLimit, func(ctx context.Context) (bool, error) {
		list, err := w.cluster.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, v := range list.Items {
			if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.Namespace == w.namespace {
				return false, nil
			}
		}
		return true, nil
	})
}

// expectNone waits until no object of these kinds is left in the namespace.
func (w *world) expectNone(kinds ...string) {
	w.Helper()
	var left []string
	w.eventually("these to go: "+strings.Join(kinds, ", "), holdLimit, func(context.Context) (bool, error) {
		left = left[:0]
		for key := range w.objects() {
			if kind, _, _ := strings.Cut(key, " "); slices.Contains(kinds, kind) {
				left = append(left, key)
			}
		}
		return len(left) == 0, nil
	})
}

// TestDeletionNeedsABackup asks for a deletion while no backup can be taken:
// nothing is deleted.
func TestDeletionNeedsABackup(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "undeletable")
	w.options.BackupURL = ""
	want := spec{version: "3.6.16", replicas: 1}
	w.create(want)
	before := w.settled()
	want.state = "Deleted"
	w.commit("Delete", want)
	w.awaitHold("Refused", holdLimit, "backup", "objectURLTemplate")
	w.expectObjects(before)
	w.expectServing(1)
}

// TestADeletionKeepsClaimsThatTheStatefulSetOwns deletes a cluster whose StatefulSet was given, by
// hand, a retention policy by which it owns its claims and takes them with it: they stay all the same.
func TestADeletionKeepsClaimsThatTheStatefulSetOwns(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "owned")
	want := spec{version: "3.6.16", replicas: 1}
	w.create(want)
	before, revision := w.record(), w.revision()
	w.must(w.daemon.Stop())
	patch := func(text string) {
		t.Helper()
		_, err := w.cluster.Client.AppsV1().StatefulSets(w.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		w.must(err)
	}
	patch(`{"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}}`)
	w.eventually("the claim to be owned", holdLimit, func(ctx context.Context) (bool, error) {
		claim, err := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).Get(ctx, "data-orders-0", metav1.GetOptions{})
		return err == nil && len(claim.OwnerReferences) == 1, err
	})
	patch(`{"spec": {"replicas": 0}}`)
	w.expectNone("Pod")

	want.state, want.more = "Deleted", "  deletion:\n    backup: Skip\n"
	w.commit("Delete it, and keep its volume", want)
	w.must(w.daemon.Start())
	w.awaitDone(changeLimit)
	w.expectNone("StatefulSet", "Service", "Pod", "Budget")
	w.expectClaims("data-orders-0")

	want.state, want.more = "Running", ""
	w.apply("Bring it back", want)
	w.expectVersion(1, want.version)
	if after := w.record(); after.ClusterID != before.ClusterID || w.revision() < revision {
		t.Errorf("cluster %s came back as %s", before.ClusterID, after.ClusterID)
	}
}
