package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// surgeGap is how long clients of one member may wait in a surge, with room for a machine that
// is shared: in place nothing serves for several seconds. What it is is printed.
const surgeGap = 2 * time.Second

// TestOneMemberSurges restarts, upgrades and drains a cluster of one member under a load of
// writes, each time by way of a second member: twice, and with -long twenty times.
func TestOneMemberSurges(t *testing.T) {
	w := newWorld(t, "surge")
	w.needsClusterScoped()
	want := spec{version: "3.5.21", replicas: 1, backup: "Required", soak: "1s", tls: "Managed"}
	s := &surging{world: w, want: want}
	s.commit("Add " + name)
	w.start()
	w.awaitIdle(want.version, createLimit)
	s.history = w.recordHistory("history/")
	var err error
	s.writer, err = w.cluster.Write(t.Context(), w.namespace, name, lab.WriterOptions{Limit: 2 * time.Hour, MaxWrites: 2_000_000})
	w.must(err)
	t.Cleanup(s.writer.Close)

	// 552: another patch. 553: another minor. 554: another template. 555: its node is drained.
	s.rests(30 * time.Second)
	s.rolls("3.5.21 → 3.5.35", func() { s.upgrade("3.5.35") })
	if *long {
		s.rolls("3.5.35 → 3.6.12", func() { s.upgrade("3.6.12") })
		w.expectClusterVersion("3.6")
		s.rolls("another template", s.retemplate)
	}
	s.rolls("its node is drained", s.drain)
	for range rounds() {
		s.rolls("another template", s.retemplate)
		s.rolls("its node is drained", s.drain)
		s.rolls("another patch", func() { s.upgrade("3.6.16") })
		s.rolls("a patch back", func() { s.upgrade("3.6.12") })
	}
	seen := s.writer.Stop()
	w.expectWrites(s.writer, seen)
	for _, p := range seen.Problems {
		t.Error(p)
	}
	w.checkHistory(s.history)
	t.Logf("%d rolls, %d of them with no gap above 100ms; writes: %d, failed %d", s.n, s.short, seen.Writes.OK, seen.Writes.Failed)
}

// rounds is how often each way is gone once more.
func rounds() int {
	if *long {
		return 4
	}
	return 0
}

// surging is a world whose only member is replaced again and again.
type surging struct {
	*world
	want     spec
	writer   *lab.Writer
	history  *lab.History
	settings int
	n, short int
}

// commit commits the file with a surge.
func (s *surging) commit(message string) {
	s.Helper()
	s.want.more = fmt.Sprintf("  etcd:\n    options: {heartbeat-interval: \"%d\"}\n", 100+s.settings)
	s.commitText(message, strings.Replace(s.text(s.want), "    soak: ", "    maxSurge: 1\n    soak: ", 1))
}

func (s *surging) upgrade(version string) {
	s.want.version = version
	s.commit("Go to " + version)
	s.awaitDone(rollLimit)
}

func (s *surging) retemplate() {
	s.settings++
	s.commit("Another setting")
	s.awaitDone(rollLimit)
}

// drain drains the node of the member as a person does: the drain ends when the member has
// moved.
func (s *surging) drain() {
	node := s.nodeOf(naming.Member(name, 0))
	defer s.uncordon(node)
	s.mark = s.daemon.Log.Mark()
	s.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m", "--pod-selector="+clusterSelector)
	s.await("the second member to leave", rollLimit, lab.Done("resize the StatefulSet 2 → 1"))
	if now := s.nodeOf(naming.Member(name, 0)); now == node {
		s.Errorf("the member is still on %s", node)
	}
}

// rests says how long clients wait where nothing happens.
func (s *surging) rests(long time.Duration) {
	s.Helper()
	s.writer.Lap()
	time.Sleep(long)
	seen := s.writer.Lap()
	s.Logf("at rest: longest gap of writes %s, of reads %s", lab.Round(seen.Writes.LongestGap), lab.Round(seen.Reads.LongestGap))
}

// rolls has the member replaced, and says how long clients have waited.
func (s *surging) rolls(what string, change func()) {
	s.Helper()
	before, began := s.uids(), time.Now()
	s.writer.Lap()
	change()
	seen := s.writer.Lap()
	gap := max(seen.Writes.LongestGap, seen.Reads.LongestGap)
	s.n++
	if gap <= 100*time.Millisecond {
		s.short++
	}
	s.Logf("%s: took %s, longest gap of writes %s, of reads %s; failed %d and %d", what, lab.Round(time.Since(began)),
		lab.Round(seen.Writes.LongestGap), lab.Round(seen.Reads.LongestGap), seen.Writes.Failed, seen.Reads.Failed)
	for _, f := range append(seen.Writes.Failures, seen.Reads.Failures...) {
		s.Logf("  failed after %s: %s", lab.Round(f.Took), f.Text)
	}
	if gap > surgeGap {
		s.Errorf("%s: clients waited %s", what, gap)
	}
	s.expectVersion(1, s.want.version)
	if now := s.uids(); len(now) != 1 || now[naming.Member(name, 0)] == before[naming.Member(name, 0)] {
		s.Errorf("%s: the pods are %v, were %v", what, now, before)
	}
	s.expectOpen()
	s.checkHistory(s.history)
}

// expectOpen wants the client Service to lead to every member again.
func (s *surging) expectOpen() {
	s.Helper()
	s.eventually("the client Service to lead to every member", holdLimit, func(ctx context.Context) (bool, error) {
		service, err := s.cluster.Client.CoreV1().Services(s.namespace).Get(ctx, naming.ClientService(name), metav1.GetOptions{})
		return err == nil && len(service.Spec.Selector) == 2, err
	})
}
