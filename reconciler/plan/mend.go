package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// mend gives a member back what it was before an abandoned roll broke it, where
// Git now wants an older minor: that release cannot help it, because etcd refuses
// to go down while a member is away. Elsewhere the roll itself fixes the member that it broke.
func mend(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Set == nil || s.Observed.Set.CurrentTemplate == "" || !s.GoesDown() {
		return verdict.Pass()
	}
	p := s.BrokenByAbandonedRoll()
	if p == nil || state.Minor(s.Observed.Set.CurrentVersion) != state.Minor(s.ClusterVersion()) {
		return verdict.Pass()
	}
	if p.Ordinal >= s.Observed.Set.Partition {
		return verdict.Do(action.ResizeSet{SetUID: s.Observed.Set.UID, From: s.Observed.Set.Replicas, To: s.Observed.Set.Replicas, Partition: s.Observed.Set.Replicas},
			fmt.Sprintf("the rollout that broke %s (%s) is abandoned, so that it can come back unchanged", p.Name, p.Trouble))
	}
	return verdict.Do(action.RestartMember{
		SetUID: s.Observed.Set.UID, Member: p.Name, Ordinal: p.Ordinal, PodUID: p.UID, MemberID: s.Observed.Record.Members[p.Name],
		Partition: s.Observed.Set.Partition, ByDeletion: true, From: p.Version, To: s.Observed.Set.CurrentVersion,
	}, "an abandoned rollout left it broken; it comes back as it was before that rollout, and the downgrade begins with every member")
}
