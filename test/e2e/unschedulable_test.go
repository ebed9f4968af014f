package e2e

import (
	"testing"
	"time"
)

// TestNoNodeForAFirstMember declares a cluster whose pods fit no node: quorate says
// so and waits, and a commit fixes it, as nothing was ever written (31).
func TestNoNodeForAFirstMember(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "unschedulable")
	want := spec{version: "3.6.16", replicas: 3, more: "  podTemplate:\n    spec:\n      nodeSelector: {disk: of-gold}\n"}
	w.commit("Add orders, for nodes that do not exist", want)
	w.start()
	hold := w.awaitHold("Waiting", createLimit, "the cluster is forming", "not scheduled", "node")
	t.Logf("quorate says: %s", hold.Hold())
	time.Sleep(quiet)
	if r := w.record(); r.Formed() {
		t.Errorf("a cluster without pods has formed: %+v", r)
	}

	want.more = ""
	w.apply("Take any node", want)
	w.expectVersion(3, want.version)
	w.expectServing(3)
	w.expectRecord(3)
}
