package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

const (
	// name is the cluster of nearly every test, file its path in Git.
	name = "orders"
	file = "clusters/orders.yaml"
	// clusterSelector selects what belongs to the cluster.
	clusterSelector = naming.LabelCluster + "=" + name
	// interval is how often quorate polls Git.
	interval = 300 * time.Millisecond
)

// The bounds of waits. They only keep a hung test from hanging forever: what is
// awaited takes seconds.
const (
	createLimit = 6 * time.Minute
	rollLimit   = 9 * time.Minute
	holdLimit   = 3 * time.Minute
	changeLimit = 15 * time.Minute
	// quiet is how long nothing may happen where nothing should.
	quiet = 3 * time.Second
)

// world is one test's namespace, repository and daemon.
type world struct {
	*testing.T
	cluster *lab.Cluster
	// namespace is the test's own.
	namespace string
	git       *lab.GitServer
	daemon    *lab.Daemon
	// mark is the position in the daemon's log from which waits search.
	mark int
	// head is the newest commit.
	head string
	// options are how the daemon is started.
	options lab.DaemonOptions
	// rights are quorate's: those of all tests, or of this one alone with -namespaced.
	rights *lab.Rights
}

// newWorld prepares a test. It removes what it made when the test ends.
func newWorld(t *testing.T, short string) *world {
	t.Helper()
	w := &world{T: t, cluster: shared.cluster, namespace: "e2e-" + short}
	w.must(w.cluster.CreateNamespace(t.Context(), w.namespace))
	t.Cleanup(w.remove)
	var err error
	w.git, err = lab.StartGitServer(t.Context(), w.cluster.Host)
	w.must(err)
	t.Cleanup(w.git.Close)
	w.grant()
	w.options = lab.DaemonOptions{
		Binary: shared.binary, Repo: w.git.URL(), Interval: interval,
		Kubeconfig: w.rights.Kubeconfig, Namespaces: w.namespaces(), GuardImage: shared.image,
		BackupURL: shared.store.URLTemplate(), Env: shared.store.Credentials(),
		LogFile: filepath.Join(shared.dir, short+".log"),
	}
	return w
}

// grant gives quorate its rights.
func (w *world) grant() {
	w.Helper()
	if w.rights = shared.rights; !*namespaced {
		return
	}
	var err error
	w.rights, err = w.cluster.GrantRightsIn(w.Context(), shared.dir, w.namespace)
	w.must(err)
	w.Cleanup(func() {
		if err := w.rights.Revoke(context.Background()); err != nil {
			w.Error(err)
		}
	})
}

// namespaces are those of --namespaces, none without it.
func (w *world) namespaces() []string {
	if *namespaced {
		return []string{w.namespace}
	}
	return nil
}

// needsClusterScoped gives quorate what belongs to no namespace where it has a namespace only: the
// comment of deploy/overlays/namespaces says what does not work without.
func (w *world) needsClusterScoped() {
	w.Helper()
	if *namespaced {
		w.must(w.rights.GrantClusterScoped(w.Context()))
	}
}

// remove deletes the namespace behind the back of the tests that follow.
func (w *world) remove() {
	if w.Failed() && shared.keep {
		w.Logf("left behind: namespace %s", w.namespace)
		return
	}
	shared.endings.Go(func() {
		if err := w.cluster.DeleteNamespace(context.Background(), w.namespace); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
		}
	})
}

// must ends the test on an error, with what the daemon said last.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start starts the daemon, and sees to it that it ends well.
func (w *world) start() {
	w.Helper()
	d, err := lab.StartDaemon(w.Context(), w.options)
	w.must(err)
	w.daemon, w.mark = d, 0
	w.Cleanup(func() {
		if err := d.Stop(); err != nil {
			w.Error(err)
		}
		if w.Failed() {
			w.Logf("quorate said last: %s\n%s\nthe whole log: %s", d.Log.LastHold(), tail(d, 25), d.LogFile)
			return
		}
		_ = os.Remove(d.LogFile)
	})
}

// tail is the end of a daemon's log.
func tail(d *lab.Daemon, n int) string {
	lines := d.Log.Lines(0)
	var text strings.Builder
	for _, l := range lines[max(0, len(lines)-n):] {
		text.WriteString("    " + l.Raw + "\n")
	}
	return text.String()
}

// spec is what the tests vary in a cluster's file.
type spec struct {
	name, version string
	replicas      int
	// backup, soak, mode and state as in the file; the zero values are Skip, 0s,
	// Enforce and Running.
	backup, soak, mode, state string
	// tls is the mode of the certificates, "" for the default.
	tls string
	// more is added at the end, indented as below spec.
	more string
}

// text renders a file.
func (w *world) text(s spec) string {
	if s.tls != "" {
		s.more += "  tls: {mode: " + s.tls + "}\n"
	}
	for field, value := range map[*string]string{&s.name: name, &s.backup: "Skip", &s.soak: "0s", &s.mode: "Enforce", &s.state: "Running"} {
		if *field == "" {
			*field = value
		}
	}
	return fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdCluster
metadata:
  name: %s
  namespace: %s
spec:
  version: %q
  replicas: %d
  mode: %s
  state: %s
  storage:
    size: 256Mi
  upgrade:
    backup: %s
    soak: %s
%s`, s.name, w.namespace, s.version, s.replicas, s.mode, s.state, s.backup, s.soak, s.more)
}

// commit commits the cluster's file; waits search the log from here on.
func (w *world) commit(message string, s spec) {
	w.Helper()
	w.commitText(message, w.text(s))
}

// commitText is commit for a given text.
func (w *world) commitText(message, text string) {
	w.Helper()
	w.commitFiles(message, map[string]string{file: text})
}

func (w *world) commitFiles(message string, files map[string]string) {
	w.Helper()
	if w.daemon != nil {
		w.mark = w.daemon.Log.Mark()
	}
	var err error
	w.head, err = w.git.Commit(w.Context(), message, files)
	w.must(err)
}

// await waits for a log line since the last commit, and continues from it.
func (w *world) await(what string, limit time.Duration, match func(lab.LogLine) bool) lab.LogLine {
	w.Helper()
	line, next, err := w.daemon.WaitFor(w.Context(), w.mark, limit, match)
	if err != nil {
		w.Fatalf("wait for %s: %v", what, err)
	}
	w.mark = next
	return line
}

// awaitIdle waits until the cluster is what Git says.
func (w *world) awaitIdle(version string, limit time.Duration) {
	w.Helper()
	w.await("the cluster at "+version, limit, lab.Idle(w.key(), version))
}

// awaitDone waits until the newest commit is applied: unlike awaitIdle it
// does not mistake the cluster before a commit for the one after it, where the
// version is the same.
func (w *world) awaitDone(limit time.Duration) {
	w.Helper()
	w.await("the cluster to be what the newest commit says", limit, func(l lab.LogLine) bool {
		return l.Msg == "cluster is up to date" && l.Cluster == w.key() && l.Commit == w.head
	})
}

// apply commits the cluster's file and waits until it is applied.
func (w *world) apply(message string, s spec) {
	w.Helper()
	w.commit(message, s)
	w.awaitDone(changeLimit)
}

// awaitHold waits for a hold of a kind whose sentence has all the parts.
func (w *world) awaitHold(kind string, limit time.Duration, parts ...string) lab.LogLine {
	w.Helper()
	says := lab.Hold(parts...)
	return w.await(fmt.Sprintf("a hold %s that says %q", kind, parts), limit, func(l lab.LogLine) bool {
		return says(l) && l.Kind == kind
	})
}

// key names the cluster as quorate's log does.
func (w *world) key() string { return w.namespace + "/" + name }

// create starts the daemon on a cluster and waits until it is there.
func (w *world) create(s spec) {
	w.Helper()
	w.commit("Add "+name, s)
	w.start()
	w.awaitIdle(s.version, createLimit)
	w.expectVersion(s.replicas, s.version)
}

// expectVersion wants every member to report a version, and one leader. A member
// that does not answer at once is asked again.
func (w *world) expectVersion(n int, version string) {
	w.Helper()
	if ok, words := lab.AtVersion(w.members(), n, version); !ok {
		w.Fatalf("want %d members at %s with one leader, they say: %s", n, version, words)
	}
}

// members asks every member what it is, until all have answered.
func (w *world) members() []lab.Member {
	w.Helper()
	var members []lab.Member
	var err error
	if late := lab.Poll(w.Context(), holdLimit, func(ctx context.Context) (bool, error) {
		members, err = w.cluster.Members(ctx, w.namespace, name)
		return err == nil, nil
	}); late != nil {
		w.Fatalf("ask the members: %v; last: %v", late, err)
	}
	return members
}

// load starts a client that writes and reads until finishLoad.
func (w *world) load() *lab.Writer {
	w.Helper()
	writer, err := w.cluster.Write(w.Context(), w.namespace, name, lab.WriterOptions{Pace: 20 * time.Millisecond})
	w.must(err)
	w.Cleanup(writer.Close)
	w.eventually("the first writes", holdLimit, func(context.Context) (bool, error) {
		return writer.Report().Writes.OK >= 20, nil
	})
	return writer
}

// finishLoad ends the load, and wants every acknowledged write to be there.
func (w *world) finishLoad(writer *lab.Writer) {
	w.Helper()
	seen := writer.Stop()
	w.expectWrites(writer, seen)
	w.Logf("writes: %d, failed %d, longest gap %s; reads: %d, failed %d, longest gap %s",
		seen.Writes.OK, seen.Writes.Failed, lab.Round(seen.Writes.LongestGap),
		seen.Reads.OK, seen.Reads.Failed, lab.Round(seen.Reads.LongestGap))
	for _, f := range append(seen.Writes.Failures, seen.Reads.Failures...) {
		w.Logf("failed at %s after %s: %s", f.At.Format(time.TimeOnly), lab.Round(f.Took), f.Text)
	}
}

// expectWrites wants every acknowledged write to be there. The load's end may cut
// off one that is acknowledged all the same.
func (w *world) expectWrites(writer *lab.Writer, seen lab.Report) {
	w.Helper()
	found, err := writer.Verify(w.Context())
	w.must(err)
	if found < seen.Writes.OK || found == 0 {
		w.Errorf("%d of %d acknowledged writes found", found, seen.Writes.OK)
	}
}

// eventually waits until check reports true.
func (w *world) eventually(what string, limit time.Duration, check func(context.Context) (bool, error)) {
	w.Helper()
	if err := lab.Poll(w.Context(), limit, check); err != nil {
		w.Fatalf("wait for %s: %v", what, err)
	}
}

// uids are the pods' UIDs by name.
func (w *world) uids() map[string]string {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	uids := map[string]string{}
	for _, p := range pods {
		uids[p.Name] = string(p.UID)
	}
	return uids
}

// events are the reasons of the Events on the StatefulSet.
func (w *world) events() map[string]int {
	w.Helper()
	list, err := w.cluster.Client.CoreV1().Events(w.namespace).List(w.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=StatefulSet,involvedObject.name=" + name,
	})
	w.must(err)
	reasons := map[string]int{}
	for _, e := range list.Items {
		reasons[e.Reason]++
	}
	return reasons
}

// lines are the daemon's log lines since a position that match.
func (w *world) lines(from int, match func(lab.LogLine) bool) []lab.LogLine {
	var found []lab.LogLine
	for _, l := range w.daemon.Log.Lines(from) {
		if match(l) {
			found = append(found, l)
		}
	}
	return found
}
