package execute_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// 411: before members stop, and when all have what Git wants, it is noted how far each has written.
func TestFloorsAreNotedBeforeAStop(t *testing.T) {
	for name, act := range map[string]func(w *reconcilertest.World) action.Action{
		"a restart": func(*reconcilertest.World) action.Action {
			return action.RestartMember{Member: "orders-2", Partition: 2}
		},
		"by deletion": func(w *reconcilertest.World) action.Action { return deletion(w) },
		"hibernation": func(*reconcilertest.World) action.Action { return action.Hibernate{} },
		"a deletion":  func(*reconcilertest.World) action.Action { return action.BeginDeletion{} },
		"at rest": func(*reconcilertest.World) action.Action {
			return action.RecordApplied{SpecHash: "h", Version: "3.6.16"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				todo := act(w)
				writeOn(w)
				w.MustDo(todo)
				if got := w.Record().Floors; len(got) != 3 || got["orders-2"] != (guard.Floor{ID: "a2", Term: 2, Index: 150}) {
					t.Errorf("noted %+v", got)
				}
			})
		})
	}
	for name, act := range map[string]func(w *reconcilertest.World) action.Action{
		"by partition": func(*reconcilertest.World) action.Action {
			return action.RestartMember{Member: "orders-2", Partition: 2}
		},
		"by deletion": func(w *reconcilertest.World) action.Action { return deletion(w) },
	} {
		t.Run("without the note nobody stops: "+name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				w.API.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("out of quota")
				})
				stops := act(w)
				writeOn(w)
				w.API.ClearActions()
				if err := w.Do(stops); err == nil || !strings.Contains(err.Error(), "restart orders-2: write the record: out of quota") {
					t.Errorf("error %v", err)
				}
				for _, a := range w.API.Actions() {
					if v := a.GetVerb(); v == "delete" || v == "patch" {
						t.Errorf("%s of %s", v, a.GetResource().Resource)
					}
				}
			})
		})
	}
}

// deletion is a restart of the highest member by deletion of its pod.
func deletion(w *reconcilertest.World) action.Action {
	return action.RestartMember{Member: "orders-2", PodUID: string(w.Pod("orders-2").UID), ByDeletion: true}
}

// writeOn lets clients write 50 keys after what was noted last.
func writeOn(w *reconcilertest.World) {
	w.Etcd.Change = func(r *state.Round) {
		for i := range r.Members {
			r.Members[i].AppliedIndex += 50
		}
	}
}
