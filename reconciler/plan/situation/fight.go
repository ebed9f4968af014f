package situation

import (
	"github.com/quorate/quorate/reconciler/state"
)

// Contested reports whether an object is left alone for now, because Git says so or
// something undoes what quorate does to it.
func (s *Situation) Contested(o state.Object) bool {
	return o.Left || o.State == state.ObjectDrifted && o.Fight != nil && o.Fight.Until.After(s.Now)
}
