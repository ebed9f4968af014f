package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// fight reports an object that somebody changes again and again. Nothing new
// begins meanwhile; what has begun goes on, and so does all that mends.
func fight(s *situation.Situation) verdict {
	if s.Rolling() && !s.BeginsDisruption() {
		return pass()
	}
	for _, o := range s.Observed.Objects {
		if s.Contested(o) {
			return truce(s, o)
		}
	}
	return pass()
}

// truce is the hold until an object is put back next.
func truce(s *situation.Situation, o state.Object) verdict {
	f := o.Fight
	v := wait(fmt.Sprintf("%s %s: %s was put back %d times and changed again by %s each time; it is put back next at %s",
		o.Kind, o.Name, f.Fields, f.Times, f.Manager, f.Until.UTC().Format(time.RFC3339)), time.Time{})
	v.hold.Do = "stop " + f.Manager + " from changing it, or write what it wants into the file"
	v.hold.Again = min(f.Until.Sub(s.Now), rarely)
	return v
}
