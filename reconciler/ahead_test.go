package reconciler_test

import (
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// No member restarts by what the members have said a minute ago, whichever clock is ahead: the API server
// takes that long between the last question and the last look.
func TestOldAnswersAreOldByAnyClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"right": 0, "ten minutes ahead": 10 * time.Minute, "ten minutes behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.Reconfigure(func(o *reconciler.Options) { o.Now = func() time.Time { return time.Now().Add(-ahead) } })
				w.Commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
				restart := func(p decision.Plan) bool {
					if len(p.Steps) == 0 || p.Hold != nil {
						return false
					}
					_, restarts := p.Steps[0].Action.(action.RestartMember)
					return restarts
				}
				w.Until(restart)
				before := w.PodUIDs()
				var once sync.Once
				w.API.PrependReactor("get", "statefulsets", func(clienttesting.Action) (bool, runtime.Object, error) {
					once.Do(func() { time.Sleep(time.Minute) })
					return false, nil, nil
				})
				_, _ = w.Pass()
				w.Settle()
				if after := w.PodUIDs(); after != before {
					t.Errorf("a member has restarted: %s, then %s", before, after)
				}
				w.Until(func(decision.Plan) bool { w.Settle(); return w.PodUIDs() != before })
			})
		})
	}
}
