package e2e

import (
	"context"

	"github.com/quorate/quorate/test/lab"
)

// recordHistory starts clients that read, put and swap the same keys until the test
// ends; each history of a test has its own prefix.
func (w *world) recordHistory(prefix string) *lab.History {
	w.Helper()
	w.awaitService()
	h, err := w.cluster.Record(w.Context(), w.namespace, name, lab.HistoryOptions{Prefix: prefix})
	w.must(err)
	w.Cleanup(h.Close)
	w.expectProgress(h)
	return h
}

// awaitService waits until the client Service leads to a member: kube-proxy
// learns of it a moment after the member is ready.
func (w *world) awaitService() {
	w.Helper()
	w.eventually("the client Service to lead to a member", createLimit, func(ctx context.Context) (bool, error) {
		client, err := w.cluster.Dial(ctx, w.namespace, name)
		return err == nil && client.Close() == nil, nil
	})
}

// expectProgress waits until writes are acknowledged, more than there were.
func (w *world) expectProgress(h *lab.History) {
	w.Helper()
	before := h.Report().Writes
	w.eventually("writes to be acknowledged", holdLimit, func(context.Context) (bool, error) {
		return h.Report().Writes >= before+20, nil
	})
}

// checkHistory wants an order of everything that clients did so far in which
// every answer is right: nothing acknowledged is lost, nothing stale was read.
func (w *world) checkHistory(h *lab.History) {
	w.Helper()
	w.awaitService()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	if err := h.Check(w.Context(), client); err != nil {
		w.Fatal(err)
	}
	w.Logf("history: %s", h.Report())
}
