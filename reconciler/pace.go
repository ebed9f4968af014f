package reconciler

import (
	"time"

	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/state"
)

// maxPace is the longest time between two tries of the same step.
const maxPace = 5 * time.Minute

// pace slows down an action that does not have its effect: something undoes it each
// time. It decides when the next pass comes, never what to do.
type pace struct{ last memo.Map[repeated] }

// repeated is the last step of a cluster, and how often in a row it was taken.
type repeated struct {
	step  string
	times int
}

// after is how long to wait after a step: nothing, unless it is the same step as the
// last one for this cluster.
func (p *pace) after(key, step string) time.Duration {
	before := p.last.Change(key, func(last repeated) repeated {
		if last.step != step {
			return repeated{step, 1}
		}
		return repeated{step, last.times + 1}
	})
	if before.step != step {
		return 0
	}
	return min(state.MinRequeue<<min(before.times-1, 12), maxPace)
}

func (p *pace) forget(key string) { p.last.Forget(key) }
