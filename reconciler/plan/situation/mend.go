package situation

import (
	"github.com/quorate/quorate/reconciler/state"
)

// BrokenByAbandonedRoll is a member that does not run because of a template that is neither
// that of the last roll which ended nor what Git wants; nil for none. One that has only
// just been created may yet start.
func (s *Situation) BrokenByAbandonedRoll() *state.Pod {
	for i := range s.Observed.Pods {
		p := &s.Observed.Pods[i]
		if s.IsMember(p.Name) && !p.Ready && !p.Terminating && p.Trouble != "" && !s.Starting(*p) &&
			p.Template != s.Observed.Set.CurrentTemplate && p.Template != s.Desired.Template {
			return p
		}
	}
	return nil
}
