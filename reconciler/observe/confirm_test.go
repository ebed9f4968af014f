package observe_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
)

// What is to be seen twice is asked once more where nothing was wrong a moment ago, when the same pass asked in full, and
// otherwise twice more.
func TestWhatIsSeenTwiceIsAskedOnceMore(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		well := observe.Question{Well: true}
		for _, c := range []struct {
			name   string
			before func(*observe.View)
			ask    observe.Question
			want   int
		}{
			{"nothing was wrong a moment ago", func(*observe.View) {}, well, 1},
			{"something was", func(*observe.View) {}, observe.Question{}, 2},
			{"it was a while ago", func(*observe.View) { time.Sleep(6 * time.Second) }, well, 2},
			{"they were glanced at", func(v *observe.View) { v.Glanced = true }, well, 2},
			{"they were not asked", func(v *observe.View) { v.Observed.Rounds = nil }, well, 2},
			{"their data is compared", func(*observe.View) {}, observe.Question{Well: true, Compare: true}, 2},
			{"the leader is listened to", func(*observe.View) {}, observe.Question{Well: true, Listen: true}, 2},
		} {
			v := w.Look()
			c.before(v)
			had := len(v.Observed.Rounds)
			w.R.Observer.Confirm(w.Context(), v, c.ask)
			rounds := v.Observed.Rounds
			if got := len(rounds) - had; got != c.want {
				t.Errorf("%s: they were asked %d times, not %d", c.name, got, c.want)
			}
			if apart := rounds[len(rounds)-1].At.Sub(rounds[len(rounds)-2].At); apart < state.Between {
				t.Errorf("%s: the last two times were %s apart", c.name, apart)
			}
		}
	})
}
