package reconciler_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// minute are members that answer a minute after they were asked.
type minute struct{ reconciler.Members }

func (m minute) Round(ctx context.Context, cluster string, members []etcd.Endpoint, deep bool) state.Round {
	time.Sleep(time.Minute)
	return m.Members.Round(ctx, cluster, members, deep)
}

// A cluster that a commit takes out of Git while its pass is under way is in no metric after it: an
// alert about it would never end.
func TestAClusterThatIsTakenOutDuringItsPassIsForgotten(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Ask(minute{w.Etcd})
		w.Running(func(reconcilertest.Running) {
			time.Sleep(30 * time.Second)
			w.R.SetDesired(nil)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
		})
		for series := range reconcilertest.Gather(t, w.Registry) {
			if strings.Contains(series, "cluster=orders") {
				t.Errorf("%s is still there", series)
			}
		}
	})
}
