package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/quorate/quorate/test/lab"
)

// TestHibernate hibernates a cluster and starts it again, while clients keep on
// trying to write: no pod is left, and everything acknowledged is there again.
func TestHibernate(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "hibernate")
	want := spec{version: "3.6.16", replicas: 3, backup: "Required"}
	w.create(want)
	history := w.recordHistory("history/")
	before, revision := w.record(), w.revision()

	want.state = "Hibernated"
	w.apply("Hibernate", want)
	w.expectGone("orders-0", "orders-1", "orders-2")
	w.expectClaims("data-orders-0", "data-orders-1", "data-orders-2")
	if after := w.record(); after.ClusterID != before.ClusterID || len(after.Members) != 3 {
		t.Errorf("the record has members %v of cluster %s", after.Members, after.ClusterID)
	}
	if keys := w.backups(shared.store); len(keys) != 1 {
		t.Errorf("backups %q, want the one before hibernation", keys)
	}

	want.state = "Running"
	w.apply("Wake", want)
	w.expectVersion(3, want.version)
	w.expectRecord(3)
	if after := w.record(); after.ClusterID != before.ClusterID || after.Token != before.Token {
		t.Errorf("cluster %s became %s", before.ClusterID, after.ClusterID)
	}
	if now := w.revision(); now < revision {
		t.Errorf("revision %d became %d", revision, now)
	}
	w.checkHistory(history)
	w.expectServing(3)
	w.expectProgress(history)
	w.checkHistory(history)
	w.expectIdle(want.version)
}

// revision is the newest that any member has.
func (w *world) revision() int64 {
	w.Helper()
	return slices.MaxFunc(w.members(), func(a, b lab.Member) int { return int(a.Revision - b.Revision) }).Revision
}

// expectClaims waits until these are the cluster's claims.
func (w *world) expectClaims(want ...string) {
	w.Helper()
	w.eventually("these claims and no others", holdLimit, func(ctx context.Context) (bool, error) {
		now, err := w.claims(ctx)
		return slices.Equal(now, want), err
	})
}
