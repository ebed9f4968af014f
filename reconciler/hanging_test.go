package reconciler_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// lines is a log that several write and one reads.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count is how many lines have all the parts.
func (l *lines) count(parts ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.Lines(l.text.String()) {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			n++
		}
	}
	return n
}

// counting counts the snapshots that were begun, and has a clock.
type counting struct {
	fleetEtcd
	snapshots *atomic.Int64
	now       func() time.Time
}

func (c counting) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	r := c.fleetEtcd.Round(ctx, cluster, members, deep)
	r.At = c.now()
	return r
}

func (c counting) Snapshot(ctx context.Context, cluster string, member etcd.Target) (io.ReadCloser, error) {
	c.snapshots.Add(1)
	return c.fleetEtcd.Snapshot(ctx, cluster, member)
}

// takesNothing is a store that answers what reads, and accepts what writes without a word.
func takesNothing(t *testing.T) (address string) {
	t.Helper()
	f := backuptest.StartFaulty(t, "nowhere", backuptest.Certificate{})
	f.Set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
			return true
		}
		return backuptest.Silence(w, r)
	})
	return f.Address
}

// 372: stores that hang, at once or when they are to take something, hold as many backups as
// they like, those before rollouts among them: another cluster is rolled and a third one
// repaired before any of these has ended.
func TestAStoreThatHangsHoldsNoOtherCluster(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) string{
		"it never answers": func(t *testing.T) string { return backuptest.StartMute(t).Address },
		"it takes nothing": takesNothing,
	} {
		t.Run(name, func(t *testing.T) {
			backuptest.SetCredentials(t, "tester", backuptest.Secret)
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			address := store(t)
			to := func(c *schema.EtcdCluster) {
				c.Spec.Upgrade.Backup = schema.BackupRequired
				c.Spec.Backup.Destination.ObjectURLTemplate = "s3://backups/{{ .Name }}-{{ .UID }}.db?region=us-east-1&endpoint=http://" + address
			}
			required := func(c *schema.EtcdCluster) { c.Spec.Upgrade.Backup = schema.BackupRequired }
			names := []string{"a", "b", "c", "d", "e", "f", "users"}
			var live []runtime.Object
			var formed time.Time // by the clock of that world: certificates know no other
			inFleet(t, names, func(f *fleet) {
				reconcilertest.Ill(f.World, time.Now().Add(-time.Hour), func(p *corev1.Pod) {
					p.Status.InitContainerStatuses = []corev1.ContainerStatus{clustertest.Ended(naming.ContainerGuard, 3, "Error", "empty")}
				})
				formed = time.Now()
				for _, o := range f.Contents() {
					live = append(live, o.DeepCopyObject())
				}
			})
			since := time.Now()
			now := func() time.Time { return formed.Add(time.Since(since)) }
			members := counting{fleetEtcd{clusters: map[string]*reconcilertest.FakeEtcd{}}, &atomic.Int64{}, now}
			wishes, backups := []desired.Cluster{reconciler.WishOf("orders", required)}, []desired.Backup{}
			for _, n := range append(names, "orders") {
				e := &reconcilertest.FakeEtcd{Leader: n + "-0", Version: func(string) string { return "3.6.12" }, Database: backuptest.Snapshot(8 << 10)}
				for i := range int32(3) {
					e.Members = append(e.Members, naming.Member(n, i))
				}
				members.clusters["shop/"+n] = e
			}
			members.Members = members.clusters["shop/orders"]
			members.clusters["shop/orders"].Change = func(r *state.Round) {
				r.Members[1].Problem, r.Members[1].Peers, r.Listened = "connection refused", state.PeersApart, true
			}
			for i, n := range names[:6] {
				if i < 3 {
					wishes = append(wishes, reconciler.WishOf(n, to, clustertest.SetVersion("3.6.16")))
					continue
				}
				wishes = append(wishes, reconciler.WishOf(n, to))
				q := clustertest.Once(func(r *schema.BackupRequest) { r.Source.ClusterName = n })
				q.Metadata.Name = "of-" + n
				backups = append(backups, q)
			}
			log, dir := &lines{}, t.TempDir()
			r := reconciler.New(reconcilertest.NewFakeAPI(live...), members, eventrecord.NewFakeRecorder(100_000), report.NewMetrics(prometheus.NewRegistry()),
				slog.New(slog.NewJSONHandler(log, nil)), reconciler.Options{
					Render: reconcilertest.OrdersOptions(), BackupURL: "file://" + dir + "/{{ .Name }}-{{ .UID }}.db?root=" + dir,
					MaxDisrupted: 9, BackupStallTimeout: 3 * time.Minute, Now: now,
				})
			ctx, stop := context.WithCancel(t.Context())
			if err := r.Start(ctx); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r.Run(ctx)
			}()
			defer func() {
				stop()
				<-ended
				r.Close()
			}()
			until := func(what string, is func() bool) {
				t.Helper()
				for n := 0; !is(); n++ {
					if n > 15_000 || name == "it takes nothing" && log.count("did not answer in time") > 0 {
						t.Fatalf("%s: not before the store was given up\n%s", what, log.text.String())
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
			r.SetBackups(backups)
			r.SetDesired(append(wishes[1:], reconciler.WishOf("users")))
			if name == "it takes nothing" { // two of each kind at least, and those that gave way
				until("the backups begin", func() bool { return members.snapshots.Load() >= 4 })
			}
			r.SetDesired(append(wishes, reconciler.WishOf("users", required, clustertest.SetVersion("3.6.16"))))
			until("the roll of users", func() bool { return log.count(`"step done"`, "shop/users", "start the roll") > 0 })
			until("the repair of orders", func() bool { return log.count(`"step done"`, "shop/orders", "orders-1 leaves") > 0 })
		})
	}
}
