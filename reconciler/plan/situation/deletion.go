package situation

import (
	"slices"

	"github.com/quorate/quorate/reconciler/state"
)

// OneTemplate says whether every pod has the template of the StatefulSet. Whose they are
// matters not: before the cluster has formed nobody knows who its members are.
func (s *Situation) OneTemplate() bool {
	return !slices.ContainsFunc(s.Observed.Pods, func(p state.Pod) bool { return p.Template != s.Observed.Set.Template })
}
