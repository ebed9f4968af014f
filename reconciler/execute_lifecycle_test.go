package reconciler

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// I7: what does not carry quorate's labels is somebody else's, whatever its name.
func TestDeletionTouchesNothingOfSomebodyElse(t *testing.T) {
	formed(t, func(w *world) {
		set := w.set()
		set.Labels = map[string]string{"app": "theirs"}
		w.put(setsResource(), set)
		err := w.r.deleteObject(w.Context(), w.look(), plan.DeleteObject{Kind: "StatefulSet", Name: "orders"})
		if err == nil || !strings.Contains(err.Error(), "somebody else's") {
			t.Errorf("the StatefulSet of somebody else: error %v", err)
		}
		if w.set() == nil {
			t.Error("it is gone")
		}
		if err := w.do(plan.DeleteObject{Kind: "Node", Name: "n1"}); err == nil {
			t.Error("it deletes what it never made")
		}
	})
}

// 50: who else has set the number of replicas is named.
func TestWhoScaledIsNamed(t *testing.T) {
	formed(t, func(w *world) {
		if by := scaledBy(w.set()); by != "" {
			t.Errorf("nobody has scaled, and it says %s", by)
		}
	})
}

// Only a cluster that Git wants deleted is asked for its Secrets, and only
// quorate's own count.
func TestLeftoversAreQuoratesOwnSecrets(t *testing.T) {
	formed(t, func(w *world) {
		if n := len(w.look().observed.Leftovers); n != 0 {
			t.Errorf("%d leftovers of a cluster that is to run", n)
		}
		w.commit(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted })
		if n := len(w.look().observed.Leftovers); n != 5 {
			t.Errorf("%d leftovers, want the two authorities and three certificates", n)
		}
	})
}
