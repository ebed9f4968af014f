package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// slowly is a snapshot that comes in six parts, and takes so long.
func slowly(database []byte, lasts time.Duration) io.Reader {
	from, part := bytes.NewReader(database), len(database)/6+1
	return scheduler.ReadFunc(func(p []byte) (int, error) {
		if from.Len() > 0 {
			time.Sleep(lasts / 6)
		}
		return from.Read(p[:min(len(p), part)])
	})
}

// goesTo lets the file of the cluster name another directory for its backups.
func goesTo(w *reconcilertest.World, dir string) {
	w.Wish.Spec.Backup.Destination.ObjectURLTemplate = "file://" + dir + "/{{ .Name }}-{{ .UID }}.db?root=" + dir
	w.R.SetDesired([]desired.Cluster{w.Wish})
}

// madeDirectory is a new directory below that of the backups.
func madeDirectory(w *reconcilertest.World, name string) string {
	dir := filepath.Join(w.Backups, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	return dir
}

// edited changes the text of a request's record.
func edited(w *reconcilertest.World, q desired.Backup, change func(string) string) {
	w.Helper()
	_, live, err := w.R.Scheduler.ReadRequest(w.Context(), q)
	if err != nil {
		w.Fatal(err)
	}
	next := live.DeepCopy()
	next.Data[guard.RecordFile] = change(next.Data[guard.RecordFile])
	w.Put(corev1.SchemeGroupVersion.WithResource("configmaps"), next)
}

// 172: what was begun at a place that cannot be reached any more keeps no backup back
// when Git names another one, be it in the file of the backup or in that of the cluster;
// that it is given up is told, once.
func TestAPlaceThatGitNoLongerNamesKeepsNoBackupBack(t *testing.T) {
	for name, c := range map[string]struct {
		q       desired.Backup
		mend    func(w *reconcilertest.World, q *desired.Backup, good string)
		earlier bool
	}{
		"a backup, by its cluster's file": {q: clustertest.Once()},
		"a schedule, by its cluster's file": {q: clustertest.Nightly(func(s *schema.BackupScheduleSpec) {
			s.Schedule = "* * * * *"
		})},
		"a backup, by its own file": {q: clustertest.Once(), mend: func(_ *reconcilertest.World, q *desired.Backup, good string) {
			q.Spec.Destination.ObjectURLTemplate = "file://" + good + "/{{ .UID }}.db?root=" + good
		}},
		"one that an earlier version began": {q: clustertest.Once(), earlier: true, mend: func(_ *reconcilertest.World, q *desired.Backup, good string) {
			q.Spec.Destination.ObjectURLTemplate = "file://" + good + "/{{ .UID }}.db?root=" + good
		}},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
				bad, good, q := madeDirectory(w, "bad"), madeDirectory(w, "good"), c.q
				goesTo(w, bad)
				w.Etcd.Stream = func(context.Context) io.Reader { return reconcilertest.Failing{Err: errors.New("cut off")} }
				w.MustPassRequests(q, 3*time.Minute)
				if k := w.RequestRecord(q); k.Begun == nil || !k.Begun.Failed {
					t.Fatalf("%+v", k)
				}
				w.Etcd.Stream = nil
				if err := os.RemoveAll(bad); err != nil {
					t.Fatal(err)
				}
				w.MustPassRequests(q, 10*time.Minute)
				if n := len(w.Manifests()); n != 0 {
					t.Fatalf("%d backups at no place", n)
				}
				if c.earlier {
					edited(w, q, func(text string) string { return strings.ReplaceAll(text, `"to":`, `"unknown":`) })
				}
				if c.mend == nil {
					goesTo(w, good)
				} else {
					c.mend(w, &q, good)
				}
				w.MustPassRequests(q, time.Hour)
				k := w.RequestRecord(q)
				if len(w.Manifests()) == 0 || k.Failures != 0 || k.Begun != nil || !strings.Contains(k.Last.Object, "/good/") {
					t.Errorf("%d backups, %+v\n%s", len(w.Manifests()), k, w.Log)
				}
				if told := w.Lines("backup given up", "url"); len(told) != 1 || !strings.Contains(told[0], "/bad/") {
					t.Errorf("told of %q", told)
				}
			})
		})
	}
}

// 172, 471: one that came to its end at the old place, and was not recorded, is not lost: it
// stays there, and it is told where. What Git no longer names is not asked for by the word
// of a record.
func TestAGoodBackupAtTheOldPlaceIsTold(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		old, now, q := madeDirectory(w, "old"), madeDirectory(w, "now"), clustertest.Once()
		q.Spec.Destination.ObjectURLTemplate = "file://" + old + "/{{ .UID }}.db?root=" + old
		// The third write is that of a good backup.
		w.PassUntilKilled(w.KillAt(3, false), q)
		if n := len(w.Manifests()); n != 1 || w.RequestRecord(q).Begun == nil {
			t.Fatalf("%d backups, %+v", n, w.RequestRecord(q))
		}
		found := w.Manifests()[0]
		q.Spec.Destination.ObjectURLTemplate = "file://" + now + "/{{ .UID }}.db?root=" + now
		w.MustPassRequests(q, 10*time.Second)
		if told := w.Lines("backup given up", "url"); len(told) != 1 || told[0] != found.Object {
			t.Errorf("told of %q, want %s\n%s", told, found.Object, w.Log)
		}
		if k := w.RequestRecord(q); len(k.Done) != 1 || k.Last.Object == found.Object || k.Failures != 0 || len(w.Manifests()) != 2 {
			t.Errorf("%d backups, %+v", len(w.Manifests()), k)
		}
	})
}

// 172: a manifest that makes no sense is read once.
func TestAManifestThatMakesNoSenseKeepsNoBackupBack(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Once()
		w.KilledWhileTaking(q)
		begun := w.RequestRecord(q).Begun
		if begun == nil {
			t.Fatal("nothing was begun")
		}
		path := strings.TrimPrefix(desired.WithoutQuery(begun.URL), "file://") + ".manifest.json"
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.MustPassRequests(q, time.Hour)
		if k := w.RequestRecord(q); k.Last == nil || len(w.Lines("backup given up", "url")) != 1 {
			t.Errorf("%+v\n%s", k, w.Log)
		}
	})
}

// 172: a Job whose pod cannot start, such as for want of a Secret, gives way to another
// as soon as Git names another place; and where Git does not, in half an hour.
func TestAJobThatCannotStartKeepsNoBackupBack(t *testing.T) {
	starting := func(w *reconcilertest.World) {
		job := reconcilertest.JobsOf(w)[0]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "backup", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		w.Put(reconcilertest.PodsResource(), pod)
	}
	byJobs(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Once(), time.Minute)
		first := reconcilertest.JobsOf(w)[0].Name
		starting(w)
		goesTo(w, madeDirectory(w, "good"))
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if len(reconcilertest.JobsOf(w)) != 0 {
			t.Fatalf("%d Jobs while the pod of the first is there", len(reconcilertest.JobsOf(w)))
		}
		if err := w.API.Tracker().Delete(reconcilertest.PodsResource(), "shop", first); err != nil {
			t.Fatal(err)
		}
		w.MustPassRequests(clustertest.Once(), time.Minute)
		if all := reconcilertest.JobsOf(w); len(all) != 1 || all[0].Name == first || w.RequestRecord(clustertest.Once()).Failures != 0 {
			t.Errorf("%d Jobs, %+v", len(all), w.RequestRecord(clustertest.Once()))
		}
	})
	byJobs(t, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Once(), time.Minute)
		starting(w)
		w.MustPassRequests(clustertest.Once(), 27*time.Minute)
		if len(reconcilertest.JobsOf(w)) != 1 {
			t.Fatalf("%d Jobs", len(reconcilertest.JobsOf(w)))
		}
		w.MustPassRequests(clustertest.Once(), 3*time.Minute)
		if k := w.RequestRecord(clustertest.Once()); k.Failures != 1 || !strings.Contains(k.Problem, "did not start within 30m0s") || !strings.Contains(k.Problem, "ImagePullBackOff") {
			t.Errorf("%+v", k)
		}
	})
}

// 175: a backup takes as long as it takes while it moves; one that does not move fails in
// minutes, and says who was waited for.
func TestABackupTakesAsLongAsItMoves(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.BackupStallTimeout = time.Hour })
		w.Etcd.Stream = func(context.Context) io.Reader { return slowly(w.Etcd.Database, 5*time.Hour) }
		w.MustPassRequests(clustertest.Once(), 6*time.Hour)
		if k := w.RequestRecord(clustertest.Once()); k.Failures != 0 || k.Last == nil {
			t.Errorf("%+v", k)
		}
	})
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		began := time.Now()
		w.Etcd.Stream = func(ctx context.Context) io.Reader {
			return scheduler.ReadFunc(func([]byte) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
		}
		w.MustPassRequests(clustertest.Once(), 5*time.Minute)
		if k := w.RequestRecord(clustertest.Once()); k.Failures != 1 || !strings.Contains(k.Problem, "the member sent nothing for 5m0s") || k.FailedAt.Sub(began) > 6*time.Minute {
			t.Errorf("%+v", k)
		}
	})
}

// 174: a schedule is overdue on time, in its metric and in its status, while a pass over
// it does not get through.
func TestOverdueWaitsForNoPass(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		ctx, cancel := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.R.Run(ctx)
		}()
		w.Etcd.Stream = func(context.Context) io.Reader { return slowly(w.Etcd.Database, 20*time.Minute) }
		q := clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Schedule = "*/10 * * * *" })
		w.R.SetBackups([]desired.Backup{q})
		labels := `{etcd_cluster="orders",etcd_namespace="shop",schedule="nightly"} `
		time.Sleep(10*time.Minute + time.Second)
		w.WantMetric("quorate_backup_overdue" + labels + "0")
		time.Sleep(18 * time.Minute)
		w.WantMetric("quorate_backup_overdue" + labels + "1")
		w.WantPhase(schema.KindBackupSchedule, "nightly", schema.PhaseStalled, "Overdue")
		if n := len(w.Manifests()); n != 0 {
			t.Errorf("%d backups: the pass got through", n)
		}
		time.Sleep(4 * time.Minute)
		w.WantMetric("quorate_backup_overdue" + labels + "0")
		w.R.SetBackups(nil)
		time.Sleep(40 * time.Minute)
		if _, there := reconcilertest.Gather(t, w.Registry)["quorate_backup_overdue{etcd_cluster=orders,schedule=nightly}"]; there {
			t.Error("a schedule that Git does not name any more is measured")
		}
		cancel()
		<-ended
	})
}

// A schedule that a commit takes out of Git, or gives to another cluster, while its backup is being taken
// is in no metric of the cluster after it, and in no status: an alert about it would never end.
func TestAScheduleThatIsTakenOutDuringItsBackupIsForgotten(t *testing.T) {
	for name, next := range map[string][]desired.Backup{
		"taken out":       nil,
		"another cluster": {clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.BackupTemplate.Source.ClusterName = "users" })},
	} {
		for _, good := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, good: %t", name, good), func(t *testing.T) {
				reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
					w.Etcd.Stream = func(context.Context) io.Reader {
						if !good {
							return slowly([]byte("this is no database"), 20*time.Minute)
						}
						return slowly(w.Etcd.Database, 20*time.Minute)
					}
					w.R.SetBackups([]desired.Backup{clustertest.Nightly(func(s *schema.BackupScheduleSpec) { s.Schedule = "*/10 * * * *" })})
					w.Running(func(reconcilertest.Running) {
						time.Sleep(12 * time.Minute)
						w.R.SetBackups(next)
						time.Sleep(time.Hour)
					})
					for series := range reconcilertest.Gather(t, w.Registry) {
						if strings.Contains(series, "etcd_cluster=orders,schedule=nightly") {
							t.Errorf("%s is still there", series)
						}
					}
					list, _ := w.R.Statuses()
					for _, s := range list {
						if s.Kind == schema.KindBackupSchedule && next == nil {
							t.Errorf("its status is still there: %+v", s)
						}
					}
				})
			})
		}
	}
}

// standAlone is the one member of a cluster that quorate does not run.
type standAlone struct{ *reconcilertest.FakeEtcd }

func (a standAlone) Round(_ context.Context, _ string, _ []etcd.Endpoint, deep bool) state.Round {
	return state.Round{At: time.Now(), ClusterID: "c1", Deep: deep, Members: []state.Member{{
		ID: "a0", Leader: "a0", Version: "3.6.16", Term: 2, CommitIndex: 100, AppliedIndex: 100, Revision: 7, Hash: 99, HashRevision: 7,
	}}}
}

func (a standAlone) Snapshot(context.Context, string, etcd.Target) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(a.Database)), nil
}

// 173: six stores that accept and say nothing, three of them only when they are to take
// something, cost their own backups and no others: those to thirty healthy stores are
// all taken while the six are stuck.
func TestSilentStoresCostNoOtherStore(t *testing.T) {
	api, ctx := reconcilertest.NewFakeAPI(), t.Context()
	answers := backuptest.StartS3(t)
	secret := clustertest.StoreSecret("s3", backuptest.S3Secret())
	if _, err := api.CoreV1().Secrets("shop").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	r := reconciler.New(api, standAlone{&reconcilertest.FakeEtcd{Database: backuptest.Snapshot(8 << 10)}}, eventrecord.NewFakeRecorder(1000),
		report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(log, nil)), reconciler.Options{
			BackupStallTimeout: 20 * time.Second, MaxBackups: 4, Drivers: clouds.Drivers(), InsecureStores: true, BackupPlaces: []string{"file:///"},
		})
	t.Cleanup(r.Close)
	var all []desired.Backup
	request := func(name string, to schema.Destination) desired.Backup {
		q := clustertest.Once()
		q.Metadata.Name, q.Spec.Source.ClusterName, q.Spec.Source.ClusterURL, q.Spec.Destination = name, "", "http://127.0.0.1:1", to
		return q
	}
	var mutes []*backuptest.Mute
	for i := range 3 {
		mute := backuptest.StartMute(t)
		mutes = append(mutes, mute)
		proxy := backuptest.StartFaulty(t, answers.Address, backuptest.Certificate{})
		proxy.Set(backuptest.Uploads(backuptest.Silence))
		for kind, url := range map[string]string{"mute": mute.URL("{{ .UID }}.db"), "takes-nothing": strings.ReplaceAll(answers.URL("{{ .UID }}.db"), answers.Address, proxy.Address)} {
			to := schema.Destination{ObjectURLTemplate: url}
			to.Credentials.SecretName = "s3"
			all = append(all, request(fmt.Sprintf("%s-%d", kind, i), to))
		}
	}
	var healthy []desired.Backup
	for i := range 30 {
		dir := t.TempDir()
		healthy = append(healthy, request(fmt.Sprintf("healthy-%d", i), schema.Destination{ObjectURLTemplate: "file://" + dir + "/{{ .UID }}.db?root=" + dir}))
	}
	running, stop := context.WithCancel(ctx)
	var loop sync.WaitGroup
	loop.Go(func() { r.Scheduler.Run(running, 6) })
	r.SetBackups(all) // the silent ones come first, and take what there is
	for _, mute := range mutes {
		await(t, func() bool { return mute.Asked() > 0 })
	}
	r.SetBackups(append(all, healthy...))
	await(t, func() bool {
		taken := 0
		for _, q := range healthy {
			if rec, _, err := r.Scheduler.ReadRequest(ctx, q); err == nil && rec.Last != nil && rec.Failures == 0 {
				taken++
			}
		}
		return taken == len(healthy)
	})
	for _, q := range all {
		if rec, _, err := r.Scheduler.ReadRequest(ctx, q); err != nil || rec.Last != nil {
			t.Errorf("%s: %+v, %v", q.Key(), rec.Last, err)
		}
	}
	stop()
	r.Scheduler.ShutDown()
	loop.Wait()
}

// await waits until something is so, as long as the test may take.
func await(t *testing.T, so func() bool) {
	t.Helper()
	for !so() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
