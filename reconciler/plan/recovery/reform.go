package recovery

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Reform gives a cluster that could not form another template. There is no data
// and no quorum to protect, and no member gets ready before a quorum is up: so
// the partition goes to 0 and the broken pods make way.
func Reform(s *situation.Situation, p *state.Pod) verdict.Verdict {
	if !s.Started() {
		a := action.NewStartRoll(s)
		a.Partition = 0
		return verdict.Do(a, fmt.Sprintf("the cluster has never formed, because of %s: %s; Git now says otherwise", p.Name, p.Trouble))
	}
	return verdict.Do(action.RestartMember{
		SetUID: s.Observed.Set.UID, Member: p.Name, Ordinal: p.Ordinal, PodUID: p.UID,
		Partition: s.Observed.Set.Partition, ByDeletion: true, From: p.Version, To: s.Observed.Set.Version,
	}, "the cluster has never formed, and this pod cannot start with the template it has: "+p.Trouble)
}
