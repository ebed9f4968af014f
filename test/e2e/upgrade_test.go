package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/lab"
	"github.com/quorate/quorate/test/picture"
)

// TestUpgradeChain goes from 3.4 to 3.6 under a load of writes, and asks on the
// way for what must be refused.
func TestUpgradeChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "chain")
	want := spec{version: "3.4.34", replicas: 3, backup: "Required"}
	w.create(want)
	writer, history, pods := w.load(), w.recordHistory("history/"), w.watchPods()

	// 53: two minors at once.
	want.version = "3.6.16"
	w.commit("Skip a minor", want)
	w.awaitHold("Refused", holdLimit, "cannot go from 3.4.34 to 3.6.16")
	w.expectRoll(pods)

	// 53, 70, 71: one minor after the other.
	for _, version := range []string{"3.5.35", "3.6.16"} {
		from := w.daemon.Log.Mark()
		want.version = version
		w.commit("Upgrade to "+version, want)
		w.awaitIdle(version, rollLimit)
		w.expectRoll(pods, "orders-2", "orders-1", "orders-0")
		w.expectVersion(3, version)
		w.expectClusterVersion(version[:3])
		w.expectReasons(from, version)
		if version == "3.6.16" {
			w.expectAsDrawn(from)
		}
		w.checkHistory(history)
	}
	w.expectEvents("TakeBackup", "StartRoll", "RestartMember", "EndRoll", "RecordApplied")
	w.expectBackups("3.4.34 before 3.5.35", "3.5.35 before 3.6.16")

	// 53, 63: once no member has the old minor, going back is a downgrade.
	want.version = "3.5.35"
	w.commit("Go back too late", want)
	w.awaitIdle("3.5.35", rollLimit)
	w.expectRoll(pods, "orders-2", "orders-1", "orders-0")
	w.expectVersion(3, "3.5.35")
	w.expectClusterVersion("3.5")
	w.expectEvents("EnableDowngrade")
	// 60: one backup, also where etcd takes the downgrade for ended before it is.
	w.expectBackups("3.4.34 before 3.5.35", "3.5.35 before 3.6.16", "3.6.16 before 3.5.35")
	w.checkHistory(history)

	// 53: from there etcd has no way down.
	want.version = "3.4.34"
	w.commit("Go back further", want)
	w.awaitHold("Refused", holdLimit, "etcd 3.5 has no downgrade")
	w.expectRoll(pods)
	w.finishLoad(writer)
}

// expectClusterVersion asks every member what the cluster's version is.
func (w *world) expectClusterVersion(line string) {
	w.Helper()
	for member, status := range w.status() {
		if !strings.HasPrefix(status.cluster, line+".") {
			w.Errorf("%s says that the cluster version is %s, want %s", member, status.cluster, line)
		}
	}
}

// expectReasons wants the log of an upgrade to tell of every step, why it was
// taken, and that it was done.
func (w *world) expectReasons(from int, version string) {
	w.Helper()
	steps, done := w.lines(from, lab.Step()), w.lines(from, lab.Done())
	if len(steps) != len(done) {
		w.Errorf("%d steps and %d of them done", len(steps), len(done))
	}
	for _, s := range steps {
		if s.Reason == "" || s.Commit == "" {
			w.Errorf("a step without a reason or a commit: %s", s.Raw)
		}
	}
	for _, part := range []string{
		"back up through", "start the roll", "restart orders-2", "restart orders-1", "restart orders-0", "end the roll", "record that " + version + " is applied",
	} {
		if n := len(w.lines(from, lab.Step(part))); n != 1 {
			w.Errorf("%d steps %q, want 1", n, part)
		}
	}
}

// expectAsDrawn wants the steps since a mark in the log to be those of the README's picture, which is of the
// same upgrade. Which member is backed up, and who leads, differs from time to time.
func (w *world) expectAsDrawn(from int) {
	w.Helper()
	root, err := checkout.Root()
	w.must(err)
	svg, err := os.ReadFile(filepath.Join(root, "docs", "upgrade.svg"))
	w.must(err)
	drawn, err := picture.Read(svg)
	w.must(err)
	var want, got []string
	for _, s := range drawn.Steps {
		want = append(want, s.Action)
	}
	for _, l := range w.lines(from, lab.Step()) {
		got = append(got, l.Action)
	}
	if want, got = alike(want), alike(got); !slices.Equal(want, got) {
		w.Errorf("docs/upgrade.svg shows\n  %s\nand the steps are\n  %s", strings.Join(want, "\n  "), strings.Join(got, "\n  "))
	}
}

// alike are the steps of an upgrade without what differs from time to time.
func alike(steps []string) (list []string) {
	for _, s := range steps {
		switch {
		case strings.HasPrefix(s, "move the leader"):
		case strings.HasPrefix(s, "back up through"):
			list = append(list, "back up")
		default:
			list = append(list, s)
		}
	}
	return list
}

// expectEvents wants the StatefulSet to have Events with all these reasons.
func (w *world) expectEvents(reasons ...string) {
	w.Helper()
	found := w.events()
	for _, reason := range reasons {
		if found[reason] == 0 {
			w.Errorf("no Event %s on the StatefulSet, there are %v", reason, found)
		}
	}
}

// expectBackups wants these backups of the cluster in the store, as "VERSION
// before TARGET", each whole and bound to this cluster.
func (w *world) expectBackups(want ...string) {
	w.Helper()
	clusterID := w.record().ClusterID
	var found []string
	for _, key := range w.backups(shared.store) {
		m, err := backup.Store{Drivers: clouds.Drivers()}.Verify(w.Context(), shared.store.ObjectURL(key))
		w.must(err)
		found = append(found, fmt.Sprintf("%s before %s", m.EtcdVersion, m.TargetVersion))
		if m.ClusterID != clusterID || m.Namespace != w.namespace || m.Name != name || m.Commit == "" || m.Revision == 0 {
			w.Errorf("%s is not bound to cluster %s and a commit: %+v", key, clusterID, m)
		}
	}
	if !slices.Equal(found, want) {
		w.Errorf("backups %q, want %q", found, want)
	}
}

// backups are the keys of this test's backups, the oldest first.
func (w *world) backups(store *lab.S3Server) []string {
	w.Helper()
	keys, err := store.Backups()
	w.must(err)
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, w.namespace+"/") })
}
