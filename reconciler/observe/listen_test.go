package observe_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// 303: to listen is to ask the leader twice, far enough apart for a heartbeat of each member.
func TestToListenTakesLongerThanAHeartbeat(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		heard := int64(0)
		w.Etcd.Change = func(r *state.Round) {
			heard++
			r.Members[1].Problem, r.Members[2].Problem, r.Members[2].Heard = "timeout", "timeout", heard
		}
		v := w.Look()
		begun := time.Now()
		w.R.Observer.Confirm(w.Context(), v, observe.Question{Listen: true})
		last := v.Observed.Round()
		if took := time.Since(begun); took < state.Listening || !last.Listened {
			t.Errorf("it listened for %s: %+v", took, last)
		}
		for i, want := range []state.Peers{state.PeersUnknown, state.PeersApart, state.PeersLinked} {
			if got := last.Members[i].Peers; got != want {
				t.Errorf("member %d is %q and should be %q", i, got, want)
			}
		}
		w.R.Observer.Confirm(w.Context(), v, observe.Question{})
		if last := v.Observed.Round(); last.Listened || last.Members[1].Peers != state.PeersUnknown {
			t.Errorf("nobody listened: %+v", last)
		}
		w.Etcd.Change = func(r *state.Round) { r.Members[1].Problem, r.HeardBy = "timeout", "" }
		w.R.Observer.Confirm(w.Context(), v, observe.Question{Listen: true})
		if last := v.Observed.Round(); !last.Listened || last.Members[1].Peers != state.PeersUnknown {
			t.Errorf("the leader says nothing: %+v", last)
		}
	})
}
