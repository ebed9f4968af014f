package situation

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// RollOpen reports whether a roll has begun and not ended: pods of two templates, a
// StatefulSet that has not closed it, or a downgrade that etcd has not ended.
func (s *Situation) RollOpen() bool {
	if r := s.Observed.Round(); s.Observed.Set.CurrentTemplate != s.Observed.Set.Template || (r != nil && r.Downgrading) {
		return true
	}
	for _, p := range s.Observed.Pods {
		if s.IsMember(p.Name) && p.Template != s.Observed.Set.Template {
			return true
		}
	}
	return false
}

// Transferee is the member that takes the leadership over: one that is upgraded
// already, so that it need not move again in this roll. Among equals it is the
// one with the lowest ordinal, which restarts last: in this roll, and in the
// next one. Every move counts, because etcd drops the proposals that reach a
// leader while it hands over. In a downgrade a member with the newer minor leads
// for as long as there is one: it is the one that knows of the downgrade.
func (s *Situation) Transferee(leaving string) *state.Member {
	var best, upgraded *state.Member
	for _, p := range s.Observed.Pods {
		m := s.Observed.Round().Member(p.Name)
		if p.Name == leaving || !s.HealthyNow(p) || m.Learner {
			continue
		}
		best = m
		if stays := p.Template != s.Desired.Template; stays == s.Descending() {
			upgraded = m
		}
	}
	if upgraded != nil {
		return upgraded
	}
	return best
}

// RestartReason tells why it is this member's turn.
func (s *Situation) RestartReason(t *state.Pod) string {
	switch left := len(s.Outdated()); {
	case s.Small():
		return fmt.Sprintf("%s to go; a cluster of %s does not serve while one restarts", state.Plural(left, "member"), state.Plural(len(s.Observed.Pods), "member"))
	case !s.HealthyNow(*t) && s.remedied(*t):
		return fmt.Sprintf("it does not run (%s), so restarting it causes no disruption; the others keep the quorum", t.Trouble)
	case !s.HealthyNow(*t):
		return "an abandoned rollout left it broken; the others keep the quorum"
	default:
		return fmt.Sprintf("all members are healthy and caught up, the others keep the quorum; %d left to go", left)
	}
}

// Settings is a hash of what the file declares of the members themselves: what it
// declares of their number, hibernation, backups and times does not change them.
func (s *Situation) Settings() string {
	spec := s.Desired.Spec
	spec.Replicas, spec.State, spec.Mode, spec.Deletion = 0, "", "", schema.DeletionSpec{}
	spec.Storage.RemovedVolumes, spec.TakeOver, spec.Recovery = "", "", schema.RecoverySpec{}
	spec.Backup, spec.Upgrade, spec.Maintenance, spec.Repair = schema.BackupSpec{}, schema.UpgradeSpec{}, nil, schema.RepairSpec{}
	spec.Storage, spec.Defragmentation, spec.Drift = schema.StorageSpec{}, schema.DefragmentationSpec{}, schema.DriftSpec{}
	spec.TLS.Rotate, spec.TLS.Lifetimes, spec.TLS.Overlap = "", schema.TLSLifetimes{}, nil
	return schema.SpecHash(spec)
}
