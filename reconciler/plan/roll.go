package plan

import (
	"cmp"
	"fmt"

	"github.com/quorate/quorate/schema"
)

// start gives the StatefulSet the new template and touches no pod.
func start(s *situation) verdict {
	if !s.rolling() || s.started() {
		return pass()
	}
	if v := s.agreed(); !v.silent() {
		return v
	}
	if s.stop().Flush {
		return do(s.startRoll(), s.flushReason())
	}
	return do(s.startRoll(), "the StatefulSet learns the new template; its partition stands above every pod, so none restarts yet")
}

// startRoll is the action that puts the partition above every pod.
func (s *situation) startRoll() StartRoll {
	return StartRoll{
		SetUID: s.o.Set.UID, Template: s.d.Template, Partition: s.o.Set.Replicas,
		From: s.from(), To: s.d.Spec.Version,
	}
}

// leader moves the leadership off the member that is about to stop, so that the
// cluster need not wait for an election.
func leader(s *situation) verdict {
	t := s.target()
	l := s.o.round().leader()
	if !s.rolling() || t == nil || l == nil || l.Name != t.Name || len(s.o.Pods) == 1 {
		return pass()
	}
	heir := s.heir(t.Name)
	if heir == nil {
		return unhealthy(t.Name+" leads and no other member is fit to take over", "")
	}
	return do(MoveLeader{From: l.Name, FromID: l.ID, To: heir.Name, ToID: heir.ID},
		fmt.Sprintf("%s restarts next, and a leader that just stops costs an election", l.Name))
}

// heir is the member that takes the leadership over: one that is upgraded
// already, so that it need not move again in this roll. Among equals it is the
// one with the lowest ordinal, which restarts last: in this roll, and in the
// next one. Every move counts, because etcd drops the proposals that reach a
// leader while it hands over. In a downgrade a member with the newer minor leads
// for as long as there is one: it is the one that knows of the downgrade.
func (s *situation) heir(leaving string) *Member {
	var best, upgraded *Member
	for _, p := range s.o.Pods {
		m := s.o.round().member(p.Name)
		if p.Name == leaving || m == nil || !s.wellNow(p) || m.Learner {
			continue
		}
		best = m
		if stays := p.Template != s.d.Template; stays == s.descending() {
			upgraded = m
		}
	}
	if upgraded != nil {
		return upgraded
	}
	return best
}

// restart takes one member, from the highest ordinal down, by lowering the
// partition to it.
func restart(s *situation) verdict {
	t := s.target()
	if !s.rolling() || t == nil {
		return pass()
	}
	a := RestartMember{
		SetUID: s.o.Set.UID, Member: t.Name, Ordinal: t.Ordinal, PodUID: t.UID,
		MemberID: s.o.Record.Members[t.Name], Partition: t.Ordinal,
		From: t.Version, To: s.d.Spec.Version,
	}
	if t.Ordinal != s.outdated()[0].Ordinal {
		return s.restartVictim(a)
	}
	return do(a, s.restartReason(t))
}

// restartReason says why it is this member's turn.
func (s *situation) restartReason(t *Pod) string {
	switch left := len(s.outdated()); {
	case s.small():
		return fmt.Sprintf("%s to go; a cluster of %s does not serve while one restarts", members(left), members(len(s.o.Pods)))
	case !s.wellNow(*t) && s.remedied(*t):
		return fmt.Sprintf("it does not run as it is (%s), so this costs nobody anything; the others keep the quorum", t.Trouble)
	case !s.wellNow(*t):
		return "an abandoned roll left it broken; the others keep the quorum"
	default:
		return fmt.Sprintf("all members are healthy and caught up, the others keep the quorum; %d left to go", left)
	}
}

// restartVictim mends a broken member that the partition cannot reach without
// taking a healthy one first: its pod is deleted and comes back with the
// template of the last roll that ended.
func (s *situation) restartVictim(a RestartMember) verdict {
	if p := s.o.pod(a.Member); p.Template == s.o.Set.CurrentTemplate {
		return refuse(
			fmt.Sprintf("%s cannot start (%s), and a new pod for it would be the same; the roll would have to take a healthy member first", a.Member, p.Trouble),
			"mend what keeps that pod from starting")
	}
	if version := s.clusterVersion(); !s.alone() && line(s.o.Set.CurrentVersion) != line(version) {
		return refuse(
			fmt.Sprintf("%s is broken and would come back with etcd %s, while the cluster version is %s",
				a.Member, s.o.Set.CurrentVersion, cmp.Or(version, "unknown")),
			"restore that member by hand")
	}
	a.ByDeletion, a.Partition, a.To = true, s.o.Set.Partition, s.o.Set.CurrentVersion
	return do(a, "an abandoned roll left it broken; it comes back as it was before that roll, while the others keep the quorum")
}

// end closes a roll: it is over when the cluster's own version says so, not
// when the pods do. Between two rolls the partition stands above every pod, so
// that an edit of the StatefulSet by hand restarts nothing.
func end(s *situation) verdict {
	if !s.formed() || s.rolling() {
		return pass()
	}
	if r := s.o.round(); s.unfinished() && line(r.ClusterVersion) != s.wanted().Line() {
		v := wait(fmt.Sprintf("every member runs etcd %s; the cluster version is still %s and follows within seconds",
			s.d.Spec.Version, r.ClusterVersion), s.newestPod())
		v.hold.Again = quickly
		return v
	}
	if r := s.o.round(); s.unfinished() && r.Downgrading {
		v := wait(fmt.Sprintf("every member runs etcd %s; etcd ends the downgrade by itself within seconds", s.d.Spec.Version), s.newestPod())
		v.hold.Again = quickly
		return v
	}
	if s.o.Set.CurrentTemplate != s.d.Template {
		return wait("every pod has the template; the StatefulSet controller closes the roll", s.newestPod())
	}
	if s.o.Set.Partition != s.o.Set.Replicas {
		return do(EndRoll{SetUID: s.o.Set.UID, Template: s.d.Template, Replicas: s.o.Set.Replicas},
			"every pod has the template; the partition goes back above them all, so that no edit by hand restarts one")
	}
	return pass()
}

// applied writes down what was carried out.
func applied(s *situation) verdict {
	if !s.formed() || s.passing() || (s.o.Record.Applied != nil && s.o.Record.Applied.SpecHash == s.d.SpecHash) {
		return pass()
	}
	return do(s.recordApplied(s.d.Spec.Version),
		fmt.Sprintf("every member runs etcd %s and is healthy, and the cluster version says so too", s.d.Spec.Version))
}

// recordApplied is the action that writes down that the spec is carried out, by
// members of that version.
func (s *situation) recordApplied(version string) RecordApplied {
	return RecordApplied{SpecHash: s.d.SpecHash, Settings: s.settings(), Version: version, Commit: s.d.Commit}
}

// settings is a hash of what the file says of the members themselves: what it
// says of their number, their sleep, backups and times does not change them.
func (s *situation) settings() string {
	spec := s.d.Spec
	spec.Replicas, spec.State, spec.Mode, spec.Deletion = 0, "", "", schema.DeletionSpec{}
	spec.Storage.RemovedVolumes, spec.TakeOver, spec.Recovery = "", "", schema.RecoverySpec{}
	spec.Backup, spec.Upgrade, spec.Maintenance, spec.Repair = schema.BackupSpec{}, schema.UpgradeSpec{}, nil, schema.RepairSpec{}
	spec.Storage, spec.Defragmentation = schema.StorageSpec{}, schema.DefragmentationSpec{}
	return schema.SpecHash(spec)
}
