package plan

import (
	"fmt"
	"time"
)

// Fight is a field that somebody changes again and again after it was put back.
type Fight struct {
	// Manager is who changes it, as Kubernetes knows them, and Fields are what.
	Manager, Fields string
	// Times is how often it was put back.
	Times int
	// Until is when it is put back next.
	Until time.Time
}

// contested says whether an object is left alone for now, because somebody undoes
// what quorate does to it.
func (s *situation) contested(o Object) bool {
	return o.State == ObjectDrifted && o.Fight != nil && o.Fight.Until.After(s.now)
}

// fight reports an object that somebody changes again and again. Nothing new
// begins meanwhile; what has begun goes on, and so does all that mends.
func fight(s *situation) verdict {
	if s.rolling() && !s.begins() {
		return pass()
	}
	for _, o := range s.o.Objects {
		if s.contested(o) {
			return s.truce(o)
		}
	}
	return pass()
}

// truce is the hold until an object is put back next.
func (s *situation) truce(o Object) verdict {
	f := o.Fight
	v := wait(fmt.Sprintf("%s %s: %s was put back %d times and changed again by %s each time; it is put back next at %s",
		o.Kind, o.Name, f.Fields, f.Times, f.Manager, f.Until.UTC().Format(time.RFC3339)), time.Time{})
	v.hold.Do = "stop " + f.Manager + " from changing it, or write what it wants into the file"
	v.hold.Again = min(f.Until.Sub(s.now), rarely)
	return v
}
