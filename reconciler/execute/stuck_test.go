package execute_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/slots"
)

// stuck is a snapshot that sends nothing until its ctx ends.
type stuck struct{ ctx context.Context }

func (s stuck) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// 173, 175: a backup before an upgrade that does not move leaves its place among the
// backups to others, and ends.
func TestABackupThatIsStuckEnds(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Etcd.Stream = func(ctx context.Context) io.Reader { return stuck{ctx} }
		ended := make(chan error)
		go func() { ended <- w.Do(execute.TakeForTest()) }()
		time.Sleep(20 * time.Second)
		if n := w.R.Executor.Slots.Taken(slots.Step); n != 1 {
			t.Errorf("%d places taken", n)
		}
		time.Sleep(20 * time.Second)
		if n := w.R.Executor.Slots.Taken(slots.Step); n != 0 {
			t.Errorf("%d places taken by a backup that does not move", n)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "the member sent nothing for 5m0s") {
			t.Error(err)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// 173: a backup before an upgrade waits for a place for a minute, and its cluster is
// looked at again.
func TestABackupWaitsForAPlaceForAMinute(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		for range w.R.Options.MaxBackups {
			if _, ok := w.R.Executor.Slots.TryAcquire(slots.For{Kind: slots.Step}); !ok {
				t.Fatal("no place")
			}
		}
		began := time.Now()
		err := w.Do(execute.TakeForTest())
		if err == nil || !strings.Contains(err.Error(), "2 other backups are being taken, and --max-backups allows no more") || time.Since(began) > 2*time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if begun := w.Record().BackupBegun; begun != "" {
			t.Errorf("it has begun at %s", begun)
		}
	}, clustertest.SetVersion("3.6.12"))
}

// 173: while the only worker's cluster waits for a backup that is stuck, another cluster
// is created.
func TestABackupThatIsStuckCostsNoOtherCluster(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Reconfigure(func(o *reconciler.Options) { o.Workers = 1 })
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.Etcd.Stream = func(ctx context.Context) io.Reader { return stuck{ctx} }
		ctx, cancel := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.R.Run(ctx)
		}()
		w.R.SetDesired([]desired.Cluster{w.Wish})
		time.Sleep(time.Minute)
		if len(w.EtcdCalls("snapshot of ")) != 1 {
			t.Fatalf("no backup is being taken\n%s", w.Log)
		}
		users := *clustertest.InGit()
		users.Metadata.Name = "users"
		w.R.SetDesired([]desired.Cluster{w.Wish, users})
		time.Sleep(time.Minute)
		if _, err := w.API.CoreV1().ConfigMaps("shop").Get(w.Context(), "users-record", metav1.GetOptions{}); apierrors.IsNotFound(err) {
			t.Errorf("the other cluster is not begun: %v\n%s", err, w.Log)
		}
		if n := len(w.EtcdCalls("snapshot of ")); n != 1 {
			t.Errorf("%d backups: the first one is over", n)
		}
		cancel()
		<-ended
	}, clustertest.SetVersion("3.6.12"))
}

// 172: what the backup before has left at a place that cannot be reached any more keeps
// the next one not back; one that came to its end there is told.
func TestAnOldPlaceKeepsNoBackupBeforeAnUpgradeBack(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Commit(clustertest.SetVersion("3.6.16"))
		w.MustDo(execute.TakeForTest())
		good := w.Record().Backup.URL
		reconcilertest.First()(w)
		for left, told := range map[string]string{
			good:                        "backup came to its end and was not recorded: it is kept",
			"file:///nowhere/at/all.db": "incomplete backup may have left an object",
		} {
			w.Notes(func(r *record.Record) { r.BackupBegun = left })
			w.MustDo(execute.TakeForTest())
			if said := w.Lines(told, "url"); len(said) != 1 || said[0] != desired.WithoutQuery(left) {
				t.Errorf("of %s it says %q", left, said)
			}
		}
		if _, err := os.Stat(strings.TrimPrefix(desired.WithoutQuery(good), "file://")); err != nil {
			t.Error(err)
		}
	}, clustertest.SetVersion("3.6.12"))
}
