package situation

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/state"
)

// Unformed says what is missing for the cluster to have formed, or "".
func (s *Situation) Unformed(r *state.Round) string {
	for _, p := range s.Observed.Pods {
		if p.Trouble != "" {
			return p.Name + ": " + p.Trouble
		}
	}
	switch {
	case r == nil:
		return "no member was asked yet"
	case r.Problem != "":
		return r.Problem
	case len(r.Members) != int(s.Founders()):
		return fmt.Sprintf("%d of %d members have joined", len(r.Members), s.Founders())
	case r.Leader() == nil:
		return "no leader yet"
	}
	for _, m := range r.Members {
		if m.Problem != "" || m.Name == "" {
			return fmt.Sprintf("member %s: %s", state.NameOf(m), m.Problem)
		}
	}
	return ""
}

// NeverStarted is a pod that cannot start with the template that it was made from,
// when Git now says another template and etcd has never run in any pod: so there
// is nothing that could be lost. Else nil.
func (s *Situation) NeverStarted() *state.Pod {
	var broken *state.Pod
	for i := range s.Observed.Pods {
		switch p := &s.Observed.Pods[i]; {
		case p.Ran:
			return nil
		case p.Template != s.Desired.Template && p.Trouble != "" && !p.Terminating && broken == nil:
			broken = p
		}
	}
	return broken
}
