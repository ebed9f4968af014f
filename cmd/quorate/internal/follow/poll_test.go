package follow

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// followed is a real Git repository and a poller that follows it.
type followed struct {
	*cmdtest.Repository
	p   *Poller
	r   *reconciler.Reconciler
	log *bytes.Buffer
	// kube is the cluster in which the accepted commit is kept.
	kube *fake.Clientset
	// semver is the range of versions that is followed from the next restart on; "" for main.
	semver string
	// signers may sign commits from the next restart on.
	signers sources.Signers
	// policy is that of --policy from the next restart on.
	policy *schema.Policy
	// approved is the value of --approve-commit from the next restart on.
	approved string
	// leads is Config.Leads from the next restart on.
	leads func() error
}

func follow(t *testing.T) *followed {
	t.Helper()
	f := &followed{Repository: cmdtest.NewRepository(t), log: &bytes.Buffer{}, kube: fake.NewClientset()}
	f.restart()
	return f
}

// restart is a new process that follows the same repository in the same cluster.
func (f *followed) restart() {
	f.Helper()
	config := sources.Config{URL: f.Dir, Branch: "main", Path: "clusters", Signers: f.signers}
	if f.semver != "" {
		config.Branch, config.Semver = "", f.semver
	}
	repository, err := sources.New(config)
	if err != nil {
		f.Fatal(err)
	}
	approved, err := ParseApproval(f.approved)
	if err != nil {
		f.Fatal(err)
	}
	log, registry := slog.New(slog.NewTextHandler(f.log, nil)), prometheus.NewRegistry()
	f.p = New(Config{
		Repository: repository, Interval: time.Second, Bounds: schema.Bounds{Policy: f.policy}, Limits: Limits{Clusters: 10, Percent: 50}, Approved: approved,
		Kube: f.kube, Namespace: "quorate-system", Instance: "default", Leads: f.leads,
	}, log, registry)
	f.r = reconciler.New(fake.NewClientset(), etcd.New(), record.NewFakeRecorder(10), report.NewMetrics(registry), log, reconciler.Options{})
}

// pollOnce polls, and wants these clusters, metrics and lines about Git.
func (f *followed) pollOnce(clusters []string, failures, problems float64, errorLines int) {
	f.Helper()
	f.log.Reset()
	f.p.Once(f.Context(), f.r)
	if list := desiredtest.Summary(desired.Values(f.r.Desired())); !slices.Equal(list, clusters) {
		f.Errorf("clusters %q, want %q", list, clusters)
	}
	if n := testutil.ToFloat64(f.p.failures); n != failures {
		f.Errorf("%v failures, want %v", n, failures)
	}
	if n := testutil.ToFloat64(f.p.problems); n != problems {
		f.Errorf("%v file errors, want %v", n, problems)
	}
	held := strings.Count(f.log.String(), `level=WARN msg="commit held"`)
	if n := strings.Count(f.log.String(), "level=ERROR"); n+held != errorLines {
		f.Errorf("%d lines about Git, want %d:\n%s", n+held, errorLines, f.log)
	}
}

// Whatever becomes of the repository, what the last good commit said stays in
// force, and each trouble is said once.
func TestPollerKeepsTheLastGoodCommit(t *testing.T) {
	f := follow(t)
	f.pollOnce(nil, 1, 0, 1)
	if f.p.inForce.Load() || testutil.ToFloat64(f.p.lastSuccess) != 0 {
		t.Error("an empty repository counts as read")
	}
	f.pollOnce(nil, 2, 0, 0)

	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	if !f.p.inForce.Load() || testutil.ToFloat64(f.p.lastSuccess) == 0 {
		t.Error("a good commit does not count as read")
	}
	if !strings.Contains(f.log.String(), `msg="commit accepted"`) || !strings.Contains(f.log.String(), `subject="Change orders.yaml"`) {
		t.Errorf("said\n%s", f.log)
	}

	f.Commit("README.md", "elsewhere")
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	if f.log.Len() > 0 {
		t.Errorf("a commit elsewhere was said:\n%s", f.log)
	}
	// What it declares is the same, and clusters are checked against it: else its status stays pending.
	if is := f.r.Desired()["shop/orders"].Commit; is != f.Head() {
		t.Errorf("after a commit elsewhere, %s, the cluster is declared by %s", f.Head(), is)
	}

	f.Commit("clusters/orders.yaml", desiredtest.BrokenFile)
	f.pollOnce([]string{"shop/orders held"}, 0, 1, 0)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6"))
	f.pollOnce([]string{"shop/orders held"}, 0, 1, 0)

	f.Git("branch", "--move", "main", "gone")
	f.pollOnce([]string{"shop/orders held"}, 1, 1, 1)
	f.pollOnce([]string{"shop/orders held"}, 2, 1, 0)
	f.Git("branch", "--move", "gone", "main")
	f.pollOnce([]string{"shop/orders held"}, 0, 1, 0)

	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)

	back := f.Away()
	f.pollOnce([]string{"shop/orders 3.6.12"}, 1, 0, 1)
	back()
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)
}

// A problem is logged when it is new: a repository with many warnings does not have them all logged again
// for a commit that changes something else.
func TestAProblemIsLoggedOnce(t *testing.T) {
	f := follow(t)
	logged := func(path, text string) (n int) {
		t.Helper()
		f.Commit(path, text)
		f.log.Reset()
		f.p.Once(t.Context(), f.r)
		return strings.Count(f.log.String(), `msg="problem in a manifest"`)
	}
	for _, c := range []struct {
		what, path, text string
		want             int
	}{
		{"a file with a problem", "clusters/users.yaml", desiredtest.BrokenFile, 1},
		{"another file", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"), 0},
		{"one more problem", "clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6"), 1},
		{"a problem less", "clusters/users.yaml", desiredtest.ClusterFile("users", "3.6.16"), 0},
		{"the same problem again", "clusters/users.yaml", desiredtest.BrokenFile, 1},
	} {
		if n := logged(c.path, c.text); n != c.want {
			t.Errorf("%s: %d problems are logged, want %d:\n%s", c.what, n, c.want, f.log)
		}
	}
}

func TestPollerSaysNothingWhenItIsToEnd(t *testing.T) {
	f := follow(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.p.Run(ctx, f.r)
	if n := testutil.ToFloat64(f.p.failures); n != 0 || f.log.Len() > 0 {
		t.Errorf("%v failures, and said %q", n, f.log)
	}
}

func TestPollerFollowsUntilItIsToEnd(t *testing.T) {
	f := follow(t)
	f.p.interval = time.Millisecond
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	stop := f.poll()
	cmdtest.Await(t, func() bool { return len(f.r.Desired()) == 1 })
	f.Commit("clusters/users.yaml", desiredtest.ClusterFile("users", "3.6.16"))
	cmdtest.Await(t, func() bool { return len(f.r.Desired()) == 2 })
	stop()
}

// poll lets the poller follow, until it is stopped and has ended.
func (f *followed) poll() (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.p.Run(ctx, f.r)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// A file that is too large holds what it declared before, also for a daemon that starts
// meanwhile, and is no obstacle for the others.
func TestPollerHoldsWhatIsInAFileThatIsTooLarge(t *testing.T) {
	f := follow(t)
	orders := func(version string) string {
		return desiredtest.ClusterFile("orders", version) + backupFile("EtcdBackupSchedule", "nightly", "{schedule: '0 2 * * *', backupTemplate: %s}")
	}
	f.Commit("clusters/orders.yaml", orders("3.6.12"))
	f.Commit("clusters/users.yaml", desiredtest.ClusterFile("users", "3.6.12"))
	f.pollOnce([]string{"shop/orders 3.6.12", "shop/users 3.6.12"}, 0, 0, 0)

	f.Commit("clusters/orders.yaml", orders("3.6.16")+"# "+strings.Repeat("x", 1<<20)+"\n")
	f.Commit("clusters/users.yaml", desiredtest.ClusterFile("users", "3.6.16"))
	held := []string{"shop/orders held", "shop/users 3.6.16"}
	f.pollOnce(held, 0, 1, 0)
	if !strings.Contains(f.log.String(), "clusters/orders.yaml: the file has more than 1048576 bytes") {
		t.Errorf("it is not named:\n%s", f.log)
	}
	f.wantRequests("too large", "EtcdBackupSchedule shop/nightly held")
	back := f.Away()
	f.restart()
	f.pollOnce(held, 1, 1, 1)
	back()
	f.wantRequests("after a start", "EtcdBackupSchedule shop/nightly held")

	f.Commit("clusters/orders.yaml", orders("3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16", "shop/users 3.6.16"}, 0, 0, 0)
	f.wantRequests("small again", "EtcdBackupSchedule shop/nightly")
}

// A restore is a cluster that begins with a backup.
func TestPollerMakesARestoreACluster(t *testing.T) {
	f := follow(t)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/restore.yaml", `---
apiVersion: quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: again, namespace: shop}
spec: {source: {clusterName: orders}, clusterName: copy, clusterTemplate: {version: "3.6.16", replicas: 3, storage: {size: 1Gi}}}
`)
	f.pollOnce([]string{"shop/copy 3.6.16", "shop/orders 3.6.16"}, 0, 0, 0)
}

// backupFile is a document that asks for backups; spec has the place of the request.
func backupFile(kind, name, spec string) string {
	const request = "{source: {clusterName: orders}, destination: {objectURLTemplate: 's3://backups/{{ .UID }}.db'}}"
	return "---\napiVersion: quorate.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: shop}\nspec: " + fmt.Sprintf(spec, request) + "\n"
}

// wantRequests polls once, and wants these backups and schedules.
func (f *followed) wantRequests(what string, names ...string) {
	f.Helper()
	f.p.Once(f.Context(), f.r)
	var got []string
	for key, q := range f.r.Backups() {
		if q.Held {
			key += " held"
		}
		got = append(got, key)
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		f.Errorf("%s: %q", what, got)
	}
}

// Backups and schedules go to the reconciler; one whose document is bad continues as
// it was, also for a daemon that has just started; one that no file names any more
// ends.
func TestPollerHandsOverBackups(t *testing.T) {
	f := follow(t)
	want := f.wantRequests
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	want("a cluster alone")
	once, schedule := backupFile("EtcdBackup", "one", "%s"), backupFile("EtcdBackupSchedule", "nightly", "{schedule: '0 2 * * *', backupTemplate: %s}")
	f.Commit("clusters/backups.yaml", once+schedule)
	want("one of each", "EtcdBackup shop/one", "EtcdBackupSchedule shop/nightly")
	f.Commit("clusters/backups.yaml", once+strings.Replace(schedule, "0 2", "99 2", 1))
	want("a bad schedule", "EtcdBackup shop/one", "EtcdBackupSchedule shop/nightly held")
	f.Commit("clusters/backups.yaml", "kind: [quorate.dev")
	f.restart()
	want("a file broken during a pause", "EtcdBackup shop/one held", "EtcdBackupSchedule shop/nightly held")
	said := f.r.Backups()
	f.restart()
	want("after another start", "EtcdBackup shop/one held", "EtcdBackupSchedule shop/nightly held")
	if again := f.r.Backups(); !reflect.DeepEqual(again, said) {
		t.Errorf("what was said of them has changed: %+v, was %+v", again, said)
	}
	back := f.Away()
	f.restart()
	want("while Git is away", "EtcdBackup shop/one held", "EtcdBackupSchedule shop/nightly held")
	back()
	f.Commit("clusters/backups.yaml", schedule)
	want("one fixed, one removed", "EtcdBackupSchedule shop/nightly")
}

// All that reads a commit lies between Begin and its end, also where the poll fails.
func TestBeginAndEndOfAPoll(t *testing.T) {
	f := follow(t)
	var seen []string
	f.p.begin = func() func() {
		seen = append(seen, "begin "+f.p.State().Commit)
		return func() { seen = append(seen, "end "+f.p.State().Commit) }
	}
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.p.Once(t.Context(), f.r)
	back := f.Away()
	f.p.Once(t.Context(), f.r)
	back()
	head := f.Head()
	if want := []string{"begin ", "end " + head, "begin " + head, "end " + head}; !slices.Equal(seen, want) {
		t.Errorf("polls: %q, want %q", seen, want)
	}
}
