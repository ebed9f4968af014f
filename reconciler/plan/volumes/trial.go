package volumes

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Try wants a volume of another class to have been made, and mounted, before the first member gives up its own for one:
// what a class of that name does, nobody knows before. A class that has made the volume of a member needs no trial.
//
//	the class         a trial     then
//	cannot            –           refused, with what is known
//	–                 none        one is begun
//	–                 runs        a hold, with what it waits for
//	–                 failed      a hold: the class goes back, or is mended
func Try(s *situation.Situation) verdict.Verdict {
	if !Moves(s) || HasMoved(s) {
		return verdict.Pass()
	}
	class, t := situation.ClassName(s.WantedClass()), s.Observed.Trial
	const back = "set spec.storage.storageClassName back, or "
	again := back + fmt.Sprintf("find out why with `kubectl -n %s describe job %s`, "+
		"and delete that Job to have it tried again", s.Desired.Namespace, t.Job)
	switch {
	case t.Problem != "":
		return verdict.Refuse(fmt.Sprintf("no member changes to a volume of %s: %s", class, t.Problem),
			back+"name a class that makes volumes")
	case t.State == state.TrialNone:
		return verdict.Do(action.TryClass{Class: s.WantedClass(), Size: s.WantedSize()},
			"no member gives its volume up for one of a class that has not been seen to make any")
	case t.State == state.TrialRunning:
		text := "a trial volume of " + class + " is being made, before a member gives its own up for one"
		if t.Why != "" {
			text += ": " + t.Why
		}
		return verdict.WaitFor(s, text, t.Since, trialTime, again)
	case t.State == state.TrialFailed:
		return verdict.Unhealthy(
			fmt.Sprintf("no member changes to a volume of %s: a trial volume could not be used: %s", class, t.Why), again)
	}
	return verdict.Pass()
}

// trialTime is how long a volume may take to be made before a person should look.
const trialTime = 5 * time.Minute
