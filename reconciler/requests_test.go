package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// once is the EtcdBackup shop/before-sale of the cluster orders.
func once(edits ...func(*schema.BackupRequest)) desired.Backup {
	q := desired.Backup{Commit: "0a1b2c3"}
	q.Metadata.Namespace, q.Metadata.Name = "shop", "before-sale"
	q.Spec.Source.ClusterName = "orders"
	for _, edit := range edits {
		edit(&q.Spec)
	}
	return q
}

// backedUp is a formed world that has been asked for something.
func backedUp(t *testing.T, test func(w *world)) {
	t.Helper()
	formed(t, func(w *world) {
		w.r.SetDesired([]desired.Cluster{w.wish})
		test(w)
	})
}

// passRequests lets a request be looked at for a time, and returns the last error.
func (w *world) passRequests(q desired.Backup, during time.Duration) (last error) {
	w.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		wait, err := w.r.scheduler.RequestPass(w.Context(), q)
		if err != nil {
			last = err
			wait = time.Second
		}
		w.settle()
		time.Sleep(min(max(wait, time.Millisecond), time.Until(end)))
	}
	return last
}

// manifests are those of the backups in the store, oldest first.
func (w *world) manifests() []backup.Manifest {
	w.Helper()
	var list []backup.Manifest
	err := filepath.WalkDir(w.backups, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, backup.ManifestSuffix) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var m backup.Manifest
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		list = append(list, m)
		_, err = backup.Store{}.Verify(w.Context(), "file://"+strings.TrimSuffix(path, backup.ManifestSuffix)+"?root="+w.backups)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	slices.SortFunc(list, func(a, b backup.Manifest) int { return a.Time.Compare(b.Time) })
	return list
}

// requestRecord is what the API server has of a request's record.
func (w *world) requestRecord(q desired.Backup) (rec requestRecord) {
	w.Helper()
	cm, err := w.api.CoreV1().ConfigMaps("shop").Get(w.Context(), recordNameOf(q), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return rec
	}
	if err == nil {
		err = json.Unmarshal([]byte(cm.Data[guard.RecordFile]), &rec)
	}
	if err != nil {
		w.Fatal(err)
	}
	return rec
}

// restart lets another process go on.
func (w *world) restart() { w.as(w.r.options.Owner); w.r.SetDesired([]desired.Cluster{w.wish}) }

// 95: a backup is taken once for a name and a spec, and never again: not by a
// restart, not by a file that is added again, not by a spec that was there before.
func TestBackupIsTakenOnce(t *testing.T) {
	backedUp(t, func(w *world) {
		q := once()
		if err := w.passRequests(q, time.Minute); err != nil {
			w.Fatal(err)
		}
		list := w.manifests()
		if len(list) != 1 || list[0].Request != "before-sale" || list[0].Schedule != "" || list[0].Member != "orders-1" ||
			list[0].ClusterID != "c1" || list[0].Commit != "0a1b2c3" || list[0].Hash != 99 || list[0].HashRevision != 7 || list[0].EtcdVersion == "" {
			w.Fatalf("%+v", list)
		}
		rec := w.requestRecord(q)
		if done := rec.Done[q.Hash()]; done.SHA256 != list[0].SHA256 || rec.Begun != nil || rec.Last.Object != list[0].Object {
			w.Errorf("%+v", rec)
		}
		if urls := w.lines("backup", "url"); !slices.Equal(urls, []string{list[0].Object}) || strings.Contains(w.log.String(), "root=") {
			w.Errorf("said %q", urls)
		}
		if events := w.drainEvents(); len(events) != 1 || !strings.Contains(events[0], "Normal BackupTaken "+list[0].Object) {
			w.Errorf("%q", events)
		}
		w.restart()
		w.api.ClearActions()
		if err := w.passRequests(q, 100*time.Hour); err != nil || len(w.manifests()) != 1 {
			w.Fatalf("%v, %d backups after a restart", err, len(w.manifests()))
		}
		if writes := w.api.writes(); len(writes) > 0 {
			w.Errorf("at rest it wrote %q", writes)
		}
		elsewhere := once(func(s *schema.BackupRequest) {
			s.Destination.ObjectURLTemplate = "file://" + w.backups + "/elsewhere/{{ .Name }}-{{ .UID }}.db?root=" + w.backups
		})
		for i, wish := range []desired.Backup{elsewhere, q, elsewhere} {
			if err := w.passRequests(wish, time.Hour); err != nil || len(w.manifests()) != 2 {
				w.Fatalf("spec %d: %v, %d backups", i, err, len(w.manifests()))
			}
		}
	})
}

// 111: who can decrypt, and the credentials, are a request's own word also where the
// place is that of its cluster.
func TestARequestsOwnWordIsKept(t *testing.T) {
	backedUp(t, func(w *world) {
		w.wish.Spec.Backup.Destination.Credentials.SecretName = "clusters"
		w.wish.Spec.Backup.Destination.Encryption.Recipients = []string{"age1clusters"}
		w.r.SetDesired([]desired.Cluster{w.wish})
		if to := w.r.scheduler.Effective(once()); to.Credentials.SecretName != "clusters" || to.Encryption.Recipients[0] != "age1clusters" {
			t.Errorf("%+v", to)
		}
		to := w.r.scheduler.Effective(once(func(s *schema.BackupRequest) {
			s.Destination.Credentials.SecretName, s.Destination.Encryption.Recipients = "own", []string{"age1own"}
		}))
		if to.Credentials.SecretName != "own" || to.Encryption.Recipients[0] != "age1own" || to.ObjectURLTemplate != w.r.options.BackupURL {
			t.Errorf("%+v", to)
		}
		w.wish.Problems = []string{"bad"}
		w.r.SetDesired([]desired.Cluster{w.wish})
		if to := w.r.scheduler.Effective(once()); to.Credentials.SecretName != "" || len(to.Encryption.Recipients) > 0 {
			t.Errorf("of a file with errors: %+v", to)
		}
	})
}

// A backup and a schedule of one name are two: each has a record of its own, under
// the name that it has always had.
func TestABackupAndAScheduleOfOneNameHaveTwoRecords(t *testing.T) {
	single, often := once(), nightly()
	often.Metadata.Name = single.Metadata.Name
	if a, b := recordNameOf(single), recordNameOf(often); a != "before-sale-backup-request" || b != "before-sale-backup-schedule" {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := recordLabelsOf(single), recordLabelsOf(often); a[naming.LabelBackup] != "before-sale" || a[naming.LabelSchedule] != "" || b[naming.LabelSchedule] != "before-sale" || b[naming.LabelBackup] != "" {
		t.Errorf("%v and %v", a, b)
	}
}

// What is new about a request is written down, also where only one word of it is.
func TestEachNewWordIsNoted(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	seen, q := requestRecord{}, nightly()
	seen.begin(q, now)
	for name, c := range map[string]struct {
		change func(*requestRecord)
		want   bool
	}{
		"nothing":      {func(*requestRecord) {}, false},
		"another spec": {func(k *requestRecord) { k.SpecHash = "x" }, true},
		"other times":  {func(k *requestRecord) { k.Times = "0 9 * * * UTC" }, true},
		"no beginning": {func(k *requestRecord) { k.Since = time.Time{} }, true},
	} {
		k := seen
		c.change(&k)
		if got := k.begin(q, now.Add(time.Hour)); got != c.want || k.SpecHash != q.Hash() || k.Times != q.Times() || k.Since.IsZero() {
			t.Errorf("%s: %t, %+v", name, got, k)
		}
	}
	// Another spec of a schedule misses no time; a single backup begins anew with it.
	other := nightly(func(s *schema.BackupScheduleSpec) { s.Retention.KeepLast = new(int32(1)) })
	if k := seen; !k.begin(other, now.Add(time.Hour)) || !k.Since.Equal(now) {
		t.Errorf("a schedule since %s", k.Since)
	}
	single := requestRecord{}
	single.begin(once(), now)
	if single.SpecHash = "x"; !single.begin(once(), now.Add(time.Hour)) || !single.Since.Equal(now.Add(time.Hour)) {
		t.Errorf("a single backup since %s", single.Since)
	}
	// Other times count from now on: with none at all, they would be due at once.
	k := seen
	k.Times = "0 9 * * * UTC"
	if k.begin(q, now.Add(time.Hour)); !k.Since.Equal(now.Add(time.Hour)) {
		t.Errorf("since %s", k.Since)
	}
}

// Where there is nobody to take a backup from, it waits and says why, once.
func TestBackupWaitsAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, q *desired.Backup)
		want   string
	}{
		"no such cluster": {func(_ *world, q *desired.Backup) { q.Spec.Source.ClusterName = "users" }, "there is no EtcdCluster shop/users in Git"},
		"a bad file": {func(w *world, _ *desired.Backup) {
			bad := w.wish
			bad.Problems = []string{"bad"}
			w.r.SetDesired([]desired.Cluster{bad})
		}, "the file of shop/orders has errors"},
		"hibernated": {func(w *world, _ *desired.Backup) {
			w.wish.Spec.State = schema.StateHibernated
			w.r.SetDesired([]desired.Cluster{w.wish})
		}, "shop/orders is hibernated"},
		"nobody answers": {func(w *world, _ *desired.Backup) { w.etcd.version = func(string) string { return "" } }, "no member can give a backup: orders-0 does not answer"},
		"data differs":   {func(w *world, _ *desired.Backup) { w.etcd.change = func(r *state.Round) { r.Members[1].Hash = 98 } }, "hold different data"},
		"nobody's":       {func(w *world, _ *desired.Backup) { w.reconfigure(func(o *Options) { o.Owner = us() }) }, ""},
		"a damaged record": {func(w *world, _ *desired.Backup) {
			damage(w)
			w.settle()
		}, "record shop/orders-record: "},
		"one that never formed": {func(w *world, _ *desired.Backup) {
			w.notes(func(r *record.Record) { r.ClusterID, r.Members = "", nil })
		}, "shop/orders has not formed yet"},
		"our own": {func(w *world, _ *desired.Backup) {
			w.mustDo(action.ClaimCluster{To: claimed(us(), 1)})
			w.reconfigure(func(o *Options) { o.Owner = us() })
		}, ""},
		"another owner's": {func(w *world, _ *desired.Backup) {
			w.mustDo(action.ClaimCluster{To: claimed(them(), 1)})
			w.reconfigure(func(o *Options) { o.Owner = us() })
		}, "is looked after by"},
		"somebody's, for one who owns nothing": {func(w *world, _ *desired.Backup) { w.mustDo(action.ClaimCluster{To: claimed(them(), 1)}) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			backedUp(t, func(w *world) {
				q := once()
				c.change(w, &q)
				if err := w.passRequests(q, 10*time.Minute); err != nil {
					w.Fatal(err)
				}
				if c.want == "" {
					if n := len(w.manifests()); n != 1 {
						w.Errorf("%d backups\n%s", n, w.log)
					}
					return
				}
				if said := w.lines("backup waits", "message"); len(said) != 1 || !strings.Contains(said[0], c.want) {
					w.Errorf("said %q", said)
				}
				if n := len(w.manifests()); n != 0 || w.requestRecord(q).Failures != 0 {
					w.Errorf("%d backups, %+v", n, w.requestRecord(q))
				}
			})
		})
	}
}

// 104, 113: a stream that breaks is a failure that is told and tried again, later
// each time; the next good one ends it.
func TestBackupIsTriedAgain(t *testing.T) {
	backedUp(t, func(w *world) {
		q := once()
		w.etcd.stream = func(context.Context) io.Reader {
			return io.MultiReader(bytes.NewReader(w.etcd.snapshot[:4096]), failing{errors.New("etcdserver: leader changed")})
		}
		began := time.Now()
		if err := w.passRequests(q, 8*time.Minute); err != nil {
			w.Fatal(err)
		}
		// At 0, 1, 3 and 7 minutes.
		if n := len(w.etcdCalls("snapshot of ")); n != 4 || len(w.manifests()) != 0 {
			w.Errorf("%d tries in %s", n, time.Since(began))
		}
		rec := w.requestRecord(q)
		if rec.Failures != 4 || !strings.Contains(rec.Problem, "leader changed") || len(w.lines("backup failed", "error")) != 4 {
			w.Errorf("%+v\n%s", rec, w.log)
		}
		w.wantMetric(`quorate_backup_failures_total{cluster="orders",namespace="shop",schedule=""} 4`)
		w.etcd.stream = nil
		if err := w.passRequests(q, time.Hour); err != nil || len(w.manifests()) != 1 {
			w.Fatalf("%v, %d backups", err, len(w.manifests()))
		}
		if rec := w.requestRecord(q); rec.Failures != 0 || rec.Problem != "" {
			w.Errorf("%+v", rec)
		}
	})
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func (w *world) etcdCalls(prefix string) []string {
	w.etcd.mu.Lock()
	defer w.etcd.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.etcd.calls), func(c string) bool { return !strings.HasPrefix(c, prefix) })
}

// wantMetric wants a line of the metrics.
func (w *world) wantMetric(line string) {
	w.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			text := fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue())
			if text == line {
				return
			}
			if strings.HasPrefix(text, "quorate_backup") {
				lines = append(lines, text)
			}
		}
	}
	w.Errorf("no metric %s in\n%s", line, strings.Join(lines, "\n"))
}

// I21 and 98: quorate is killed at each write, before and after it, and in the
// middle of the stream. Whoever comes next makes exactly one backup of it.
func TestBackupSurvivesAKillAtEachStep(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := range 5 {
			t.Run(fmt.Sprintf("write %d, carried out %t", n+1, after), func(t *testing.T) {
				backedUp(t, func(w *world) {
					w.passUntilKilled(w.killAt(n+1, after), once())
					w.oneBackup(once())
				})
			})
		}
	}
	for _, read := range []int{0, 1, 4096, 8<<10 + 32} {
		t.Run(fmt.Sprintf("after %d bytes", read), func(t *testing.T) {
			backedUp(t, func(w *world) {
				ctx, kill := context.WithCancel(w.Context())
				w.etcd.stream = func(context.Context) io.Reader {
					return io.MultiReader(bytes.NewReader(w.etcd.snapshot[:min(read, len(w.etcd.snapshot))]), readFunc(func([]byte) (int, error) {
						kill()
						return 0, context.Canceled
					}))
				}
				w.passUntilKilled(ctx, once())
				w.etcd.stream = nil
				w.oneBackup(once())
			})
		})
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// killAt ends the process, by its ctx, at a write of a record.
func (w *world) killAt(n int, after bool) context.Context {
	ctx, kill := context.WithCancel(w.Context())
	writes := 0
	w.api.PrependReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if v := action.GetVerb(); ctx.Err() != nil || v != "create" && v != "update" {
			return false, nil, nil
		}
		if writes++; writes != n {
			return false, nil, nil
		}
		kill()
		return !after, nil, context.Canceled
	})
	return ctx
}

// passUntilKilled makes passes until the process is killed, or all is done.
func (w *world) passUntilKilled(ctx context.Context, q desired.Backup) {
	for range 20 {
		_, _ = w.r.scheduler.RequestPass(ctx, q)
		w.settle()
		if ctx.Err() != nil {
			break
		}
		time.Sleep(Soon)
	}
	w.restart()
}

// killedWhileTaking lets quorate be killed between the first byte of a backup and its
// end.
func (w *world) killedWhileTaking(q desired.Backup) {
	w.Helper()
	ctx, kill := context.WithCancel(w.Context())
	w.etcd.stream = func(context.Context) io.Reader {
		kill()
		return failing{context.Canceled}
	}
	w.passUntilKilled(ctx, q)
	w.etcd.stream = nil
}

// oneBackup wants what another process makes of it to be one backup.
func (w *world) oneBackup(q desired.Backup) {
	w.Helper()
	if err := w.passRequests(q, time.Hour); err != nil {
		w.Fatal(err)
	}
	list := w.manifests()
	if len(list) != 1 {
		w.Fatalf("%d backups", len(list))
	}
	rec := w.requestRecord(q)
	if rec.Last == nil || rec.Last.SHA256 != list[0].SHA256 || rec.Last.Object != list[0].Object || rec.Begun != nil || rec.Failures != 0 {
		w.Errorf("%+v", rec)
	}
}

// A record that cannot be read stops the request, and is never taken for none.
func TestDamagedRequestRecordIsNoEmptyOne(t *testing.T) {
	for name, c := range map[string]struct {
		change func(cm *corev1.ConfigMap)
		want   string
	}{
		"broken":     {func(cm *corev1.ConfigMap) { cm.Data[guard.RecordFile] = "{" }, "is not readable"},
		"newer":      {func(cm *corev1.ConfigMap) { cm.Data[guard.RecordFile] = `{"formatVersion": 99}` }, "run the newer one"},
		"a stranger": {func(cm *corev1.ConfigMap) { cm.Labels = nil }, "this ConfigMap is not quorate's"},
	} {
		t.Run(name, func(t *testing.T) {
			backedUp(t, func(w *world) {
				q := once()
				if err := w.passRequests(q, time.Minute); err != nil {
					w.Fatal(err)
				}
				k, err := w.r.scheduler.ReadRequest(w.Context(), q)
				if err != nil {
					w.Fatal(err)
				}
				live := k.live.DeepCopy()
				c.change(live)
				w.put(corev1.SchemeGroupVersion.WithResource("configmaps"), live)
				if err := w.passRequests(q, time.Minute); err == nil || !strings.Contains(err.Error(), c.want) {
					w.Errorf("%v", err)
				}
				if n := len(w.manifests()); n != 1 {
					w.Errorf("%d backups", n)
				}
			})
		})
	}
}

// Without the lease nothing is written, and nothing is taken.
func TestBackupNeedsTheLease(t *testing.T) {
	backedUp(t, func(w *world) {
		w.reconfigure(func(o *Options) { o.Lease = func() error { return errors.New("the lease is another's") } })
		if err := w.passRequests(once(), time.Minute); err == nil || len(w.api.writes()) > 0 || len(w.manifests()) > 0 {
			w.Errorf("%v, wrote %q", err, w.api.writes())
		}
	})
}

// No more backups than --max-backups are taken at once; the others wait.
func TestBackupsWaitForAPlace(t *testing.T) {
	backedUp(t, func(w *world) {
		var release func()
		for range w.r.options.MaxBackups {
			var ok bool
			if release, ok = w.r.executor.slots.TryAcquire(); !ok {
				w.Fatal("no place")
			}
		}
		if err := w.passRequests(once(), time.Minute); err != nil || len(w.manifests()) != 0 {
			w.Errorf("%v, %d backups", err, len(w.manifests()))
		}
		if said := w.lines("backup waits", "message"); len(said) != 1 || !strings.Contains(said[0], "--max-backups") {
			w.Errorf("%q", said)
		}
		release()
		if err := w.passRequests(once(), time.Minute); err != nil || len(w.manifests()) != 1 {
			w.Errorf("%v, %d backups", err, len(w.manifests()))
		}
	})
}

// The bandwidth is that of all backups together.
func TestBackupsKeepToTheBandwidth(t *testing.T) {
	backedUp(t, func(w *world) {
		w.reconfigure(func(o *Options) { o.BackupBandwidth = 64 << 10 })
		w.etcd.snapshot = backuptest.Snapshot(1 << 20)
		began := time.Now()
		q := once()
		for len(w.manifests()) == 0 {
			if _, err := w.r.scheduler.RequestPass(w.Context(), q); err != nil {
				w.Fatal(err)
			}
		}
		if took, want := time.Since(began), time.Duration(len(w.etcd.snapshot)>>16)*time.Second; took < want-2*time.Second || took > want+5*time.Second {
			w.Errorf("took %s, want about %s", took, want)
		}
	})
}

// The loop does all of this by itself, and forgets what Git forgets.
func TestRequestsAreCarriedOutByTheLoop(t *testing.T) {
	backedUp(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.r.Run(ctx)
		}()
		w.r.scheduler.SetRequests([]desired.Backup{once()})
		time.Sleep(time.Minute)
		if len(w.manifests()) != 1 || len(w.r.scheduler.Requests()) != 1 {
			w.Errorf("%d backups\n%s", len(w.manifests()), w.log)
		}
		w.r.scheduler.SetRequests(nil)
		w.r.scheduler.SetRequests([]desired.Backup{once()})
		time.Sleep(time.Minute)
		if len(w.manifests()) != 1 || len(w.lines("backup ends", "request")) != 1 {
			w.Errorf("%d backups\n%s", len(w.manifests()), w.log)
		}
		cancel()
		<-ended
	})
}

// A file that says what it said before is no reason to look; another word is.
func TestOnlyWhatChangedIsLookedAtAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		look := func(what string, q desired.Backup, want int) {
			t.Helper()
			w.r.scheduler.SetRequests([]desired.Backup{q})
			n := w.r.scheduler.queue.Len()
			for range n {
				key, _ := w.r.scheduler.queue.Get()
				w.r.scheduler.queue.Done(key)
			}
			if n != want {
				t.Errorf("%s: %d are looked at, want %d", what, n, want)
			}
		}
		q := once()
		look("a new one", q, 1)
		look("the same again", q, 0)
		q.Held = true
		look("one that is held", q, 1)
		q.Spec.Destination.ObjectURLTemplate = "file:///elsewhere/{{ .UID }}"
		look("one that goes elsewhere", q, 1)
	})
}

// A request that no file names any more is not looked at, whoever queued it.
func TestRequestThatIsGoneIsNotLookedAt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.r.scheduler.queue.Add("EtcdBackup shop/gone")
		if !w.r.scheduler.NextRequest(w.Context()) || len(w.api.requests()) > 0 {
			t.Errorf("requests %q", w.api.requests())
		}
	})
}

// Who else has written the record is no failure, and a failure is told once.
func TestPassThatFailsIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   int
	}{
		"somebody was faster":    {apierrors.NewConflict(corev1.Resource("configmaps"), "x", errors.New("newer")), 0},
		"somebody made it":       {apierrors.NewAlreadyExists(corev1.Resource("configmaps"), "x"), 0},
		"the API server is away": {apierrors.NewInternalError(errors.New("away")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			backedUp(t, func(w *world) {
				w.api.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.answer })
				w.r.scheduler.SetRequests([]desired.Backup{once()})
				for range 2 {
					w.r.scheduler.queue.Add(once().Key())
					w.r.scheduler.NextRequest(w.Context())
				}
				if said := w.lines("failed", "error"); len(said) != c.want {
					t.Errorf("said %q", said)
				}
			})
		})
	}
}
