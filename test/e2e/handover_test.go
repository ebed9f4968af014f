package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// TestLeaseIsHandedOver rolls a cluster under two daemons with a lease, of which the one that
// acts is asked to end, killed, and paused for longer than the lease lasts, each in the midst of
// the roll (573, 574). Whichever acts goes on where the other one was: each member restarts once.
func TestLeaseIsHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "handover")
	if !*namespaced {
		w.must(w.rights.GrantOwn(t.Context(), w.namespace))
	}
	w.options.Args = []string{"--leader-elect", "--lease-namespace=" + w.namespace}
	want := spec{version: "3.5.21", replicas: 5}
	w.create(want)
	first, second := w, w.standBy()
	writer, history, pods := w.load(), w.recordHistory("history/"), w.watchPods()
	commit := func(version string) {
		want.version = version
		first.commit("Upgrade", want)
		second.head = first.head
	}

	// Asked to end, it gives the lease back, and the other has its caches filled already.
	commit("3.5.35")
	first.await("the first restart", rollLimit, lab.Step("restart orders-4"))
	begun := time.Now()
	w.must(first.daemon.Stop())
	ended := time.Now()
	line := second.await("the second daemon to act", holdLimit, acts)
	t.Logf("SIGTERM: ended after %s, the other acted %s after that", ended.Sub(begun).Round(time.Millisecond), line.Time.Sub(ended).Round(time.Millisecond))

	// Killed, it gives nothing back.
	w.must(first.daemon.Start())
	second.await("a restart by the second daemon", rollLimit, lab.Step("restart orders-3"))
	begun = time.Now()
	second.daemon.Kill()
	line = first.await("the first daemon to act again", holdLimit, acts)
	t.Logf("SIGKILL: the other acted after %s", line.Time.Sub(begun).Round(time.Millisecond))

	// Paused, it does not know that another has taken over until it goes on.
	w.must(second.daemon.Start())
	first.await("one more restart by the first daemon", rollLimit, lab.Step("restart orders-2"))
	w.must(first.daemon.Pause())
	begun = time.Now()
	line = second.await("the second daemon to act again", holdLimit, acts)
	t.Logf("SIGSTOP: the other acted after %s", line.Time.Sub(begun).Round(time.Millisecond))
	second.await("a restart by the second daemon", rollLimit, lab.Step("restart orders-1"))
	seen := len(first.daemon.Log.Lines(0))
	w.must(first.daemon.Resume())
	ctx, cancel := context.WithTimeout(t.Context(), holdLimit)
	defer cancel()
	if err := first.daemon.Exited(ctx); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("the paused daemon ended with %v, want exit status 1", err)
	}
	for _, l := range first.lines(seen, func(l lab.LogLine) bool { return l.Msg == "step started" || l.Msg == "step done" }) {
		t.Errorf("the paused daemon went on acting: %s", l.Raw)
	}
	if len(first.lines(seen, lab.Contains("the lease is lost"))) == 0 {
		t.Errorf("the paused daemon does not say why it ends:\n%s", tail(first.daemon, 10))
	}

	second.awaitDone(rollLimit)
	w.expectRoll(pods, "orders-4", "orders-3", "orders-2", "orders-1", "orders-0")
	w.expectVersion(want.replicas, want.version)
	w.checkHistory(history)
	w.finishLoad(writer)
}

// acts matches the line by which a daemon says that it holds the lease.
func acts(l lab.LogLine) bool { return l.Msg == "running" }

// standBy starts a second daemon beside the first one, which waits for the lease.
func (w *world) standBy() *world {
	w.Helper()
	v := *w
	v.options.LogFile = strings.TrimSuffix(w.options.LogFile, ".log") + "-second.log"
	v.options.Listen = ""
	v.start()
	return &v
}
