package execute_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// 303: a member that was taken for lost is asked once more at the moment of its removal:
// where it answers, or the leader has heard it since the decision, it stays.
func TestARemovalAsksTheMemberItself(t *testing.T) {
	heard := int64(0)
	silent := func(r *state.Round) { r.Members[4].Problem, r.Members[4].Heard = "timeout", heard }
	for name, test := range map[string]struct {
		leave   action.BeginLeave
		change  func(*state.Round)
		removed bool
	}{
		"it answers":                           {action.BeginLeave{Replace: true}, func(*state.Round) {}, false},
		"the leader hears it":                  {action.BeginLeave{Replace: true}, func(r *state.Round) { heard++; silent(r) }, false},
		"nobody hears it":                      {action.BeginLeave{Replace: true}, silent, true},
		"it served when that was decided":      {action.BeginLeave{Replace: true, Serving: true}, func(*state.Round) {}, true},
		"Git wants fewer, and it answers":      {action.BeginLeave{}, func(*state.Round) {}, true},
		"nobody knows what another leader saw": {action.BeginLeave{Replace: true}, func(r *state.Round) { heard++; silent(r); r.HeardBy = string(rune('a' + heard%26)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				test.leave.Member, test.leave.ID = "orders-4", "a4"
				w.MustDo(test.leave)
				w.Etcd.Change = test.change
				err := w.Do(action.RemoveMember{Member: "orders-4", ID: "a4"})
				if unlisted(w, "orders-4") != test.removed || (err == nil) != test.removed || (err != nil && !errors.Is(err, state.ErrChanged)) {
					t.Errorf("removed: %t; %v", unlisted(w, "orders-4"), err)
				}
			}, clustertest.SetReplicas(5))
		})
	}
}
