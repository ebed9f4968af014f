package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/reconciler/slots"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 95: a backup is taken once for a name and a spec, and never again: not by a
// restart, not by a file that is added again, not by a spec that was there before.
func TestBackupIsTakenOnce(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Signs()
		q := clustertest.Once()
		if err := w.PassRequests(q, time.Minute); err != nil {
			w.Fatal(err)
		}
		list := w.Manifests()
		if len(list) != 1 || list[0].Request != "before-sale" || list[0].Schedule != "" || list[0].Member != "orders-1" ||
			list[0].ClusterID != "c1" || list[0].Commit != "0a1b2c3" || list[0].Hash != 99 || list[0].HashRevision != 7 || list[0].EtcdVersion == "" {
			w.Fatalf("%+v", list)
		}
		rec := w.RequestRecord(q)
		if done := rec.Done[q.Hash()]; done.SHA256 != list[0].SHA256 || rec.Begun != nil || rec.Last.Object != list[0].Object {
			w.Errorf("%+v", rec)
		}
		if urls := w.Lines("backup taken", "url"); !slices.Equal(urls, []string{list[0].Object}) || strings.Contains(w.Log.String(), "root=") {
			w.Errorf("said %q", urls)
		}
		if events := w.DrainEvents(); len(events) != 1 || !strings.Contains(events[0], "Normal BackupTaken "+list[0].Object) {
			w.Errorf("%q", events)
		}
		w.Restart()
		w.API.ClearActions()
		if err := w.PassRequests(q, 100*time.Hour); err != nil || len(w.Manifests()) != 1 {
			w.Fatalf("%v, %d backups after a restart", err, len(w.Manifests()))
		}
		if writes := w.API.Writes(); len(writes) > 0 {
			w.Errorf("at rest it wrote %q", writes)
		}
		elsewhere := clustertest.Once(func(s *schema.BackupRequest) {
			s.Destination.ObjectURLTemplate = "file://" + w.Backups + "/elsewhere/{{ .Name }}-{{ .UID }}.db?root=" + w.Backups
		})
		for i, wish := range []desired.Backup{elsewhere, q, elsewhere} {
			if err := w.PassRequests(wish, time.Hour); err != nil || len(w.Manifests()) != 2 {
				w.Fatalf("spec %d: %v, %d backups", i, err, len(w.Manifests()))
			}
		}
	})
}

// 111: who can decrypt, and the credentials, are a request's own word also where the
// place is that of its cluster.
func TestARequestsOwnWordIsKept(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Wish.Spec.Backup.Destination.Credentials.SecretName = "clusters"
		w.Wish.Spec.Backup.Destination.Encryption.Recipients = []string{"age1clusters"}
		w.R.SetDesired([]desired.Cluster{w.Wish})
		if to := w.R.Scheduler.Effective(clustertest.Once()); to.Credentials.SecretName != "clusters" || to.Encryption.Recipients[0] != "age1clusters" {
			t.Errorf("%+v", to)
		}
		to := w.R.Scheduler.Effective(clustertest.Once(func(s *schema.BackupRequest) {
			s.Destination.Credentials.SecretName, s.Destination.Encryption.Recipients = "own", []string{"age1own"}
		}))
		if to.Credentials.SecretName != "own" || to.Encryption.Recipients[0] != "age1own" || to.ObjectURLTemplate != w.R.Options.BackupURL {
			t.Errorf("%+v", to)
		}
		w.Wish.Problems = []string{"bad"}
		w.R.SetDesired([]desired.Cluster{w.Wish})
		if to := w.R.Scheduler.Effective(clustertest.Once()); to.Credentials.SecretName != "" || len(to.Encryption.Recipients) > 0 {
			t.Errorf("of a file with errors: %+v", to)
		}
	})
}

// Where there is nobody to take a backup from, it waits and says why, once.
func TestBackupWaitsAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *reconcilertest.World, q *desired.Backup)
		want   string
	}{
		"no such cluster": {func(_ *reconcilertest.World, q *desired.Backup) { q.Spec.Source.ClusterName = "users" }, "there is no EtcdCluster shop/users in Git"},
		"a bad file": {func(w *reconcilertest.World, _ *desired.Backup) {
			bad := w.Wish
			bad.Problems = []string{"bad"}
			w.R.SetDesired([]desired.Cluster{bad})
		}, "the file of shop/orders has errors"},
		"hibernated": {func(w *reconcilertest.World, _ *desired.Backup) {
			w.Wish.Spec.State = schema.StateHibernated
			w.R.SetDesired([]desired.Cluster{w.Wish})
		}, "shop/orders is hibernated"},
		"nobody answers": {func(w *reconcilertest.World, _ *desired.Backup) { w.Etcd.Version = func(string) string { return "" } }, "no member can give a backup: orders-0 does not answer"},
		"data differs": {func(w *reconcilertest.World, _ *desired.Backup) {
			w.Etcd.Change = func(r *state.Round) { r.Members[1].Hash = 98 }
		}, "hold different data"},
		"nobody's": {func(w *reconcilertest.World, _ *desired.Backup) {
			w.Reconfigure(func(o *reconciler.Options) { o.Owner = reconcilertest.Us() })
		}, ""},
		"a damaged record": {func(w *reconcilertest.World, _ *desired.Backup) {
			reconcilertest.Damage(w)
			w.Settle()
		}, "record shop/orders-record: "},
		"one that never formed": {func(w *reconcilertest.World, _ *desired.Backup) {
			w.Notes(func(r *record.Record) { r.ClusterID, r.Members = "", nil })
		}, "shop/orders has not formed yet"},
		"our own": {func(w *reconcilertest.World, _ *desired.Backup) {
			w.MustDo(action.ClaimCluster{To: reconcilertest.Claimed(reconcilertest.Us(), 1)})
			w.Reconfigure(func(o *reconciler.Options) { o.Owner = reconcilertest.Us() })
		}, ""},
		"another owner's": {func(w *reconcilertest.World, _ *desired.Backup) {
			w.MustDo(action.ClaimCluster{To: reconcilertest.Claimed(reconcilertest.Them(), 1)})
			w.Reconfigure(func(o *reconciler.Options) { o.Owner = reconcilertest.Us() })
		}, "is looked after by"},
		"somebody's, for one who owns nothing": {func(w *reconcilertest.World, _ *desired.Backup) {
			w.MustDo(action.ClaimCluster{To: reconcilertest.Claimed(reconcilertest.Them(), 1)})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
				q := clustertest.Once()
				c.change(w, &q)
				if err := w.PassRequests(q, 10*time.Minute); err != nil {
					w.Fatal(err)
				}
				if c.want == "" {
					if n := len(w.Manifests()); n != 1 {
						w.Errorf("%d backups\n%s", n, w.Log)
					}
					return
				}
				if said := w.Lines("backup waits", "reason"); len(said) != 1 || !strings.Contains(said[0], c.want) {
					w.Errorf("said %q", said)
				}
				if n := len(w.Manifests()); n != 0 || w.RequestRecord(q).Failures != 0 {
					w.Errorf("%d backups, %+v", n, w.RequestRecord(q))
				}
			})
		})
	}
}

// 104, 113: a stream that breaks is a failure that is told and tried again, later
// each time; the next good one ends it.
func TestBackupIsTriedAgain(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		q := clustertest.Once()
		w.Etcd.Stream = func(context.Context) io.Reader {
			return io.MultiReader(bytes.NewReader(w.Etcd.Database[:4096]), reconcilertest.Failing{Err: errors.New("etcdserver: leader changed")})
		}
		began := time.Now()
		if err := w.PassRequests(q, 8*time.Minute); err != nil {
			w.Fatal(err)
		}
		// At 0, 1, 3 and 7 minutes.
		if n := len(w.EtcdCalls("snapshot of ")); n != 4 || len(w.Manifests()) != 0 {
			w.Errorf("%d tries in %s", n, time.Since(began))
		}
		rec := w.RequestRecord(q)
		if rec.Failures != 4 || !strings.Contains(rec.Problem, "leader changed") || len(w.Lines("backup failed", "error")) != 4 {
			w.Errorf("%+v\n%s", rec, w.Log)
		}
		w.WantMetric(`quorate_backup_failures_total{backup="before-sale",etcd_cluster="orders",etcd_namespace="shop",schedule=""} 4`)
		w.Etcd.Stream = nil
		if err := w.PassRequests(q, time.Hour); err != nil || len(w.Manifests()) != 1 {
			w.Fatalf("%v, %d backups", err, len(w.Manifests()))
		}
		if rec := w.RequestRecord(q); rec.Failures != 0 || rec.Problem != "" {
			w.Errorf("%+v", rec)
		}
	})
}

// I21 and 98: quorate is killed at each write, before and after it, and in the
// middle of the stream. Whoever comes next makes exactly one backup of it.
func TestBackupSurvivesAKillAtEachStep(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := range 5 {
			t.Run(fmt.Sprintf("write %d, carried out %t", n+1, after), func(t *testing.T) {
				reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
					w.PassUntilKilled(w.KillAt(n+1, after), clustertest.Once())
					w.OneBackup(clustertest.Once())
				})
			})
		}
	}
	for _, read := range []int{0, 1, 4096, 8<<10 + 32} {
		t.Run(fmt.Sprintf("after %d bytes", read), func(t *testing.T) {
			reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
				ctx, kill := context.WithCancel(w.Context())
				w.Etcd.Stream = func(context.Context) io.Reader {
					return io.MultiReader(bytes.NewReader(w.Etcd.Database[:min(read, len(w.Etcd.Database))]), scheduler.ReadFunc(func([]byte) (int, error) {
						kill()
						return 0, context.Canceled
					}))
				}
				w.PassUntilKilled(ctx, clustertest.Once())
				w.Etcd.Stream = nil
				w.OneBackup(clustertest.Once())
			})
		})
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
			reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
				q := clustertest.Once()
				if err := w.PassRequests(q, time.Minute); err != nil {
					w.Fatal(err)
				}
				_, kept, err := w.R.Scheduler.ReadRequest(w.Context(), q)
				if err != nil {
					w.Fatal(err)
				}
				live := kept.DeepCopy()
				c.change(live)
				w.Put(corev1.SchemeGroupVersion.WithResource("configmaps"), live)
				if err := w.PassRequests(q, time.Minute); err == nil || !strings.Contains(err.Error(), c.want) {
					w.Errorf("%v", err)
				}
				if n := len(w.Manifests()); n != 1 {
					w.Errorf("%d backups", n)
				}
			})
		})
	}
}

// Without the lease nothing is written, and nothing is taken.
func TestBackupNeedsTheLease(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.Lease = func() error { return errors.New("the lease is another's") } })
		if err := w.PassRequests(clustertest.Once(), time.Minute); err == nil || len(w.API.Writes()) > 0 || len(w.Manifests()) > 0 {
			w.Errorf("%v, wrote %q", err, w.API.Writes())
		}
	})
}

// No more backups than --max-backups are taken at once; the others wait.
func TestBackupsWaitForAPlace(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		var place *slots.Place
		for range w.R.Options.MaxBackups {
			var ok bool
			if place, ok = w.R.Executor.Slots.TryAcquire(slots.For{Kind: slots.Asked}); !ok {
				w.Fatal("no place")
			}
		}
		if err := w.PassRequests(clustertest.Once(), time.Minute); err != nil || len(w.Manifests()) != 0 {
			w.Errorf("%v, %d backups", err, len(w.Manifests()))
		}
		if said := w.Lines("backup waits", "reason"); len(said) != 1 || !strings.Contains(said[0], "--max-backups") {
			w.Errorf("%q", said)
		}
		place.Release()
		if err := w.PassRequests(clustertest.Once(), time.Minute); err != nil || len(w.Manifests()) != 1 {
			w.Errorf("%v, %d backups", err, len(w.Manifests()))
		}
	})
}

// 496: a namespace that has just had a place leaves the next one to another that waits, for
// as long as that one asks, and not while it waits at a store that is stuck.
func TestNamespacesHavePlacesInTurn(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		pass := func(namespace, name string) {
			w.Helper()
			q := clustertest.Once()
			q.Metadata.Namespace, q.Metadata.Name = namespace, name
			if err := w.PassRequests(q, time.Second); err != nil {
				w.Error(err)
			}
		}
		pass("shop", "first")
		w.Reconfigure(func(o *reconciler.Options) { o.MaxBackups = 1 })
		pass("shop", "second")
		if got := len(w.Manifests()); got != 2 {
			w.Fatalf("%d backups where no other namespace waits", got)
		}
		place, _ := w.R.Executor.Slots.TryAcquire(slots.For{Kind: slots.Asked})
		pass("other", "waiting")
		place.Release()
		pass("shop", "third")
		if got := len(w.Manifests()); got != 2 {
			w.Errorf("%d backups: it went before one that waits", got)
		}
		if said := w.Lines("backup waits", "reason"); len(said) == 0 || !strings.Contains(said[len(said)-1], "it is the turn of one of them") {
			w.Errorf("%q", said)
		}
		time.Sleep(16 * time.Second)
		pass("shop", "third")
		if got := len(w.Manifests()); got != 3 {
			w.Errorf("%d backups after the other one has stopped asking", got)
		}
	})
}

// The bandwidth is that of all backups together.
func TestBackupsKeepToTheBandwidth(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.BackupBandwidth = 64 << 10 })
		w.Etcd.Database = backuptest.Snapshot(1 << 20)
		began := time.Now()
		q := clustertest.Once()
		for len(w.Manifests()) == 0 {
			if _, err := w.R.Scheduler.Pass(w.Context(), q); err != nil {
				w.Fatal(err)
			}
		}
		if took, want := time.Since(began), time.Duration(len(w.Etcd.Database)>>16)*time.Second; took < want-2*time.Second || took > want+5*time.Second {
			w.Errorf("took %s, want about %s", took, want)
		}
	})
}

// The loop does all of this by itself, and forgets what Git forgets.
func TestRequestsAreCarriedOutByTheLoop(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		ctx, cancel := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.R.Run(ctx)
		}()
		w.R.Scheduler.SetDesired([]desired.Backup{clustertest.Once()})
		time.Sleep(time.Minute)
		if len(w.Manifests()) != 1 || len(w.R.Scheduler.Backups()) != 1 {
			w.Errorf("%d backups\n%s", len(w.Manifests()), w.Log)
		}
		w.R.Scheduler.SetDesired(nil)
		w.R.Scheduler.SetDesired([]desired.Backup{clustertest.Once()})
		time.Sleep(time.Minute)
		if len(w.Manifests()) != 1 || len(w.Lines("backup is not in Git any more", "request")) != 1 {
			w.Errorf("%d backups\n%s", len(w.Manifests()), w.Log)
		}
		cancel()
		<-ended
	})
}

// A file that says what it said before is no reason to look; another word is.
func TestOnlyWhatChangedIsLookedAtAtOnce(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		look := func(what string, q desired.Backup, want int) {
			t.Helper()
			w.R.Scheduler.SetDesired([]desired.Backup{q})
			n := w.R.Scheduler.Queue().Len()
			for range n {
				reconcilertest.Drop(w.Context(), w.R.Scheduler.Queue())
			}
			if n != want {
				t.Errorf("%s: %d are looked at, want %d", what, n, want)
			}
		}
		q := clustertest.Once()
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
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.R.Scheduler.Queue().Add("EtcdBackup shop/gone")
		if !w.R.Scheduler.Next(w.Context()) || len(w.API.Requests()) > 0 {
			t.Errorf("requests %q", w.API.Requests())
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
			reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
				w.API.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.answer })
				w.R.Scheduler.SetDesired([]desired.Backup{clustertest.Once()})
				for range 2 {
					w.R.Scheduler.Queue().Add(clustertest.Once().Key())
					w.R.Scheduler.Next(w.Context())
				}
				if said := w.Lines("pass failed", "error"); len(said) != c.want {
					t.Errorf("said %q", said)
				}
			})
		})
	}
}
