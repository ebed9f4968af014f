package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// fight reports an object that another writer changes again and again, or that is left. Nothing new
// begins meanwhile; what has begun continues, and so does all that repairs.
func fight(s *situation.Situation) verdict.Verdict {
	if s.Rolling() && !s.BeginsDisruption() {
		return verdict.Pass()
	}
	for _, o := range s.Observed.Objects {
		if s.Contested(o) {
			return awaitTruce(s, o)
		}
	}
	return verdict.Pass()
}

// awaitTruce is the hold until an object is put back next, by quorate or by a person.
func awaitTruce(s *situation.Situation, o state.Object) verdict.Verdict {
	if o.Left {
		v := verdict.Refuse(fmt.Sprintf("%s %s is %s: %s; spec.drift.mode is Detect, so it is left as it is", o.Kind, o.Name, o.State, o.Detail),
			"put it back by hand, write into the file what it should be, or set spec.drift.mode to Correct")
		v.Hold.Since = o.ChangedAt
		return v
	}
	f := o.Fight
	v := verdict.Wait(fmt.Sprintf("%s %s: %s was put back again and again, and changed again by %s each time", o.Kind, o.Name, f.Fields, f.Manager), time.Time{}).
		Measured("%d times; it is put back next at %s", f.Times, f.Until.UTC().Format(time.RFC3339))
	v.Hold.Do = "stop " + f.Manager + " from changing it, or write what it wants into the file"
	v.Hold.Again = min(f.Until.Sub(s.Now), verdict.Rarely)
	return v
}
