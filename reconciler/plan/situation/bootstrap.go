package situation

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/state"
)

// Unformed is what is missing for the cluster to have formed.
func (s *Situation) Unformed(r *state.Round) Remark {
	for _, p := range s.Observed.Pods {
		if p.Trouble != "" {
			return Remark{Member: p.Name, Text: p.Name + ": " + p.Trouble}
		}
	}
	switch {
	case r == nil:
		return Remark{Text: "no member was asked yet"}
	case r.Problem != "":
		return Remark{Text: "the members cannot be listed", Detail: r.Problem}
	case len(r.Members) != int(s.Founders()):
		return Remark{Text: fmt.Sprintf("%d of %d members have joined", len(r.Members), s.Founders())}
	case r.Leader() == nil:
		return Remark{Text: "no leader yet"}
	}
	for _, m := range r.Members {
		if m.Problem != "" || m.Name == "" {
			return Remark{Member: m.Name, Text: "member " + state.NameOf(m) + " does not answer", Detail: m.Problem}
		}
	}
	return Remark{}
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
