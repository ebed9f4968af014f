package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/lab"
)

const (
	// earlierCommit is the quorate that is replaced: the last one before the reconciler was
	// divided into packages, which must not show in anything that outlives a daemon.
	earlierCommit = "5b8793abd7a41bddd3f0e34dd2dd9acf3fae69a5"
	// deployedCommit is the first one of which two replicas run.
	deployedCommit = "ea3da03c18890dd37210490a2eeec4684869b79c"
)

// The ConfigMaps of what must be known when a daemon starts.
const (
	clusterRecord  = name + "-record"
	requestRecord  = "before-sale-backup-request"
	scheduleRecord = "daily-backup-schedule"
)

// build is a quorate, and its image on the nodes.
type build struct{ binary, image string }

// TestNewerQuorateTakesOver ends an earlier quorate and starts this one in its place,
// as a deployment does, while clients write. What the earlier one has recorded is
// read: no member restarts, nothing is done twice, and the next commit is applied.
func TestNewerQuorateTakesOver(t *testing.T) {
	t.Parallel()
	earlier := buildAt(t, earlierCommit, image+"-earlier")
	t.Run("162: a cluster at rest", func(t *testing.T) {
		takesLong(t)
		t.Parallel()
		takeOverAtRest(t, earlier)
	})
	t.Run("162: a rollout in progress", func(t *testing.T) {
		t.Parallel()
		takeOverRoll(t, earlier)
	})
	t.Run("575: a rollout, there and back", func(t *testing.T) {
		takesLong(t)
		t.Parallel()
		takeOverThereAndBack(t, earlier)
	})
}

func takeOverAtRest(t *testing.T, earlier build) {
	want := spec{version: "3.6.12", replicas: 3, backup: "Required"}
	w := createEarlier(t, "takeover-rest", earlier, want)
	writer, history, pods := w.load(), w.recordHistory("history/"), w.watchPods()

	// Let the records tell of an upgrade, and of backups that were taken: one that is
	// asked for once, and one at a time that then does not come again for a day.
	soon := time.Now().UTC().Add(75 * time.Second)
	files := func(version string, keep int) map[string]string {
		want.version = version
		return map[string]string{file: w.text(want), "clusters/backups.yaml": w.backupFiles("daily", fmt.Sprintf("%d %d * * *", soon.Minute(), soon.Hour()), keep)}
	}
	w.commitFiles("Upgrade, and ask for backups", files("3.6.16", 2))
	w.awaitFields(clusterRecord, w.applied)
	w.awaitFields(requestRecord, func(f map[string]any) bool { return f["done"] != nil })
	w.awaitFields(scheduleRecord, func(f map[string]any) bool { return f["last"] != nil && f["retained"] != nil })
	w.expectRoll(pods, "orders-2", "orders-1", "orders-0")

	// Nothing is written by the one that takes over but what the earlier one did not note down: how
	// far each member has come, and the accepted files as this one reads them.
	before, etcds := w.settled(), w.etcds()
	record, schedule := w.fields(clusterRecord), w.fields(scheduleRecord)
	w.takeOver()
	w.awaitIdle(want.version, holdLimit)
	w.eventually("more passes", holdLimit, func(context.Context) (bool, error) {
		return w.metric("quorate_pass_duration_seconds_count") >= 3, nil
	})
	w.expectObjects(before, "ConfigMap "+clusterRecord)
	w.expectKept(clusterRecord, record, "revision")
	w.expectRoll(pods)
	if after := w.etcds(); !maps.Equal(after, etcds) {
		t.Errorf("the pods were %v and are %v", etcds, after)
	}
	for _, l := range w.lines(0, lab.Step()) {
		t.Errorf("it acted: %s", l.Raw)
	}
	w.checkHistory(history)

	// The next commit is applied, and makes it write both records.
	w.commitFiles("Upgrade, and keep more backups", files("3.7.3", 3))
	w.awaitDone(rollLimit)
	w.expectRoll(pods, "orders-2", "orders-1", "orders-0")
	w.expectVersion(3, want.version)
	w.expectGuard(shared.image)
	w.expectRecord(3)
	w.expectKept(clusterRecord, record, "backup", "applied", "revision")
	w.expectKept(scheduleRecord, schedule, "specHash")
	w.awaitStatus(schema.PhaseReady, func(s schema.ObjectStatus) bool { return s.Cluster.Version.Lowest == want.version })
	once, scheduled, err := w.taken(t.Context())
	w.must(err)
	if len(once) != 1 || len(scheduled) != 1 {
		t.Errorf("%d backups were taken that were asked for once, and %d of the schedule; want one of each", len(once), len(scheduled))
	}
	w.checkHistory(history)
	w.finishLoad(writer)
}

func takeOverRoll(t *testing.T, earlier build) {
	want := spec{version: "3.5.35", replicas: 3, backup: "Required"}
	w := createEarlier(t, "takeover-roll", earlier, want)
	writer, history, pods := w.load(), w.recordHistory("history/"), w.watchPods()
	before := w.uids()
	want.version = "3.6.16"
	w.commit("Upgrade", want)
	w.awaitRestart(before, "orders-2")

	record := w.fields(clusterRecord)
	w.takeOver()
	w.awaitDone(rollLimit)
	w.expectOrder(0, "restart orders-1", "restart orders-0", "end the roll", "3.6.16 is applied")
	w.expectRoll(pods, "orders-2", "orders-1", "orders-0")
	w.expectVersion(3, want.version)
	w.expectClusterVersion("3.6")
	w.expectRecord(3)
	w.expectKept(clusterRecord, record, "applied", "revision")
	w.expectBackups("3.5.35 before 3.6.16")
	w.expectGuard(earlier.image) // another one would have made it a second roll
	w.checkHistory(history)
	w.finishLoad(writer)
	w.expectIdle(want.version)
}

// takeOverThereAndBack rolls by the earlier quorate, this one, and the earlier one again, as
// where an update of quorate is taken back in the midst.
func takeOverThereAndBack(t *testing.T, earlier build) {
	want := spec{version: "3.5.21", replicas: 5, backup: "Required"}
	w := createEarlier(t, "takeover-back", earlier, want)
	writer, history, pods := w.load(), w.recordHistory("history/"), w.watchPods()
	want.version = "3.5.35"
	before := w.uids()
	w.commit("Upgrade", want)
	w.awaitRestart(before, "orders-4")
	w.takeOver()
	w.awaitRestart(before, "orders-3")
	w.takeBack(earlier)
	w.awaitRestart(before, "orders-2")
	w.takeOver()
	w.awaitDone(rollLimit)
	w.takeBack(earlier)
	w.await("the earlier quorate to act", holdLimit, acts)
	w.eventually("passes of the earlier quorate", holdLimit, func(context.Context) (bool, error) {
		return w.metric("quorate_pass_duration_seconds_count") >= 3, nil
	})
	w.expectRoll(pods, "orders-4", "orders-3", "orders-2", "orders-1", "orders-0")
	w.expectVersion(want.replicas, want.version)
	w.expectBackups("3.5.21 before 3.5.35")
	w.expectGuard(earlier.image)
	w.checkHistory(history)
	w.finishLoad(writer)
}

// TestQuorateItselfIsRolledOut updates a deployed quorate of two replicas to this one in the
// midst of a roll, and takes that back later in the same roll, while clients write (575). No
// member restarts for that, and each restarts once for the roll.
func TestQuorateItselfIsRolledOut(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "rolledout")
	if w.cluster.Sandbox == nil {
		t.Skip("only the sandbox can be given an image of an earlier quorate")
	}
	before := buildAt(t, deployedCommit, image+"-before")
	want := spec{version: "3.5.21", replicas: 5, backup: "Required"}
	w.commit("Add "+name, want)
	system := w.deployImage(before.image, "--status=branch", "--status-interval=1s")
	w.awaitFields(clusterRecord, w.applied)
	writer, history, pods := w.load(), w.recordHistory("history/"), w.watchPods()
	uids := w.uids()
	update := func(image string) {
		t.Helper()
		begun := time.Now()
		w.kubectl("-n", system, "set", "image", "deployment/quorate", "quorate="+image)
		w.awaitDeployed(system)
		holder, err := w.leaseHolder(t.Context(), system)
		w.must(err)
		t.Logf("rolled out %s in %s; %q acts", image, time.Since(begun).Round(time.Second), holder)
	}

	want.version = "3.5.35"
	w.commit("Upgrade", want)
	w.awaitRestart(uids, "orders-4")
	update(shared.image)
	w.awaitRestart(uids, "orders-2")
	update(before.image)
	w.awaitFields(clusterRecord, w.applied)
	update(shared.image)
	w.expectRoll(pods, "orders-4", "orders-3", "orders-2", "orders-1", "orders-0")
	w.expectVersion(want.replicas, want.version)
	w.expectBackups("3.5.21 before 3.5.35")
	w.checkHistory(history)
	w.finishLoad(writer)
	w.runPage("running.md", system)
}

// buildAt builds the quorate of a commit from this repository's own history, and gives the
// nodes its image.
func buildAt(t *testing.T, commit, image string) build {
	t.Helper()
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := checkout.Root()
	fail(err)
	git := exec.CommandContext(t.Context(), "git", "archive", "--format=zip", commit)
	git.Dir = root
	archive, err := git.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("the earlier quorate is built from commit %s, which this clone does not have: run git fetch --unshallow (git says: %s)", commit, bytes.TrimSpace(exit.Stderr))
	}
	fail(err)
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	fail(err)
	source, to := t.TempDir(), t.TempDir()
	fail(os.CopyFS(source, files))
	fail(lab.GoBuild(t.Context(), source, to+string(filepath.Separator), "./cmd/quorate", "./cmd/quorate-guard"))
	b := build{filepath.Join(to, "quorate"), shared.image}
	if shared.cluster.Sandbox != nil {
		b.image = image
		fail(shared.cluster.Sandbox.LoadImage(t.Context(), b.image, "65532:65532", b.binary, filepath.Join(to, "quorate-guard")))
	}
	return b
}

// createEarlier begins a test with a cluster that an earlier quorate, deployed with a
// lease, has made.
func createEarlier(t *testing.T, short string, earlier build, s spec) *world {
	t.Helper()
	w := newWorld(t, short)
	if *namespaced {
		// The earlier one knows no --namespaces. To confine it is another change than this one: the
		// status branch would have another owner.
		w.must(w.rights.GrantEverywhere(t.Context()))
		w.needsClusterScoped()
		w.options.Namespaces = nil
	} else {
		w.must(w.rights.GrantOwn(t.Context(), w.namespace))
	}
	w.options.Binary, w.options.GuardImage, w.options.Earlier = earlier.binary, earlier.image, true
	w.options.Args = []string{"--leader-elect", "--lease-namespace=" + w.namespace, "--status=branch", "--status-interval=1s"}
	w.commit("Add "+name, s)
	w.start()
	w.awaitFields(clusterRecord, w.applied)
	w.expectVersion(s.replicas, s.version)
	return w
}

// awaitRestart waits until a pod was replaced that had a UID before.
func (w *world) awaitRestart(before map[string]string, pod string) {
	w.Helper()
	w.eventually("the restart of "+pod, rollLimit, func(context.Context) (bool, error) {
		now := w.uids()[pod]
		return now != "" && now != before[pod], nil
	})
}

// takeOver ends the daemon, and starts the quorate of this checkout in its place.
func (w *world) takeOver() {
	w.Helper()
	w.replaceDaemon(build{shared.binary, shared.image}, false)
}

// takeBack ends the daemon, and starts the earlier quorate in its place.
func (w *world) takeBack(earlier build) {
	w.Helper()
	w.replaceDaemon(earlier, true)
}

func (w *world) replaceDaemon(by build, earlier bool) {
	w.Helper()
	w.must(w.daemon.Stop())
	w.options.Binary, w.options.GuardImage, w.options.Earlier = by.binary, by.image, earlier
	w.start()
}

// etcds tells each pod, and each start of etcd in it, from the next one.
func (w *world) etcds() map[string]string {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	etcds := map[string]string{}
	for _, p := range pods {
		etcds[p.Name] = string(p.UID)
		for _, c := range p.Status.ContainerStatuses {
			etcds[p.Name] += fmt.Sprintf(", %s restarted %d times", c.Name, c.RestartCount)
		}
	}
	return etcds
}

// fields is a record as it is stored, nil where there is none.
func (w *world) fields(configMap string) (fields map[string]any) {
	w.Helper()
	cm, err := w.cluster.Client.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), configMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	w.must(json.Unmarshal([]byte(cm.Data[naming.KeyRecord]), &fields))
	return fields
}

// awaitFields waits for what a record says. The log of an earlier quorate may use other
// words than this one's.
func (w *world) awaitFields(configMap string, match func(map[string]any) bool) {
	w.Helper()
	w.eventually("something in "+configMap, changeLimit, func(context.Context) (bool, error) {
		return match(w.fields(configMap)), nil
	})
}

// applied reports whether the cluster's record says that the newest commit is applied.
func (w *world) applied(fields map[string]any) bool {
	applied, _ := fields["applied"].(map[string]any)
	return applied["commit"] == w.head
}

// expectKept wants a record to have been written, and to have every field that it had;
// only the changed ones may hold something else.
func (w *world) expectKept(configMap string, before map[string]any, changed ...string) {
	w.Helper()
	after := w.fields(configMap)
	if reflect.DeepEqual(before, after) {
		w.Errorf("%s is unchanged: %v", configMap, after)
	}
	for field, value := range before {
		now, there := after[field]
		if !there || !slices.Contains(changed, field) && !reflect.DeepEqual(now, value) {
			w.Errorf("%s: %s was %v and is %v", configMap, field, value, now)
		}
	}
}

// expectGuard wants the guard of every pod to be of an image.
func (w *world) expectGuard(image string) {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	for _, p := range pods {
		if got := p.Spec.InitContainers[0].Image; got != image {
			w.Errorf("the guard of %s is of %s, want %s", p.Name, got, image)
		}
	}
}
