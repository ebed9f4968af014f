package situation

import (
	"slices"

	"github.com/quorate/quorate/reconciler/state"
)

// OneTemplate reports whether every pod has the template of the StatefulSet. Which member they
// belong to does not matter: before the cluster has formed there is no list of members.
func (s *Situation) OneTemplate() bool {
	return !slices.ContainsFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Template != s.Observed.Set.Template })
}
