package plan

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// alarms ends an alarm when its cause has ended, and sees to that where it can.
// A cluster under an alarm takes no writes, so nothing here waits for a window.
//
//	NOSPACE  what a database keeps         then
//	         little, in a large file       defragmentation, one at a time
//	         a lot                         backup, compaction, defragmentation
//	         too much after that           a person raises the quota or deletes
//	         less than the quota, by all   disarm, and a test write
//	CORRUPT  see corrupt
//
// History is dropped only where a smaller file would not help, and only after
// the backup. A roll that brings a larger quota goes first: it loses nothing.
func alarms(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Round()
	if !s.Formed() || r == nil || r.Problem != "" {
		return verdict.Pass()
	}
	switch {
	case r.Alarmed(state.Corrupt):
		return corrupt(s)
	case r.Alarmed(state.NoSpace) && !s.EndsNoSpace():
		return noSpace(s)
	}
	return verdict.Pass()
}

// noSpace frees space. Whatever else is wrong with the cluster is for the rules
// below to say: a member that does not answer is not made to work harder.
func noSpace(s *situation.Situation) verdict.Verdict {
	if s.MendedByRoll() != nil {
		return verdict.Pass() // it is fixed first: no other member is made to work while it is away
	}
	mending := s.ToleratingNoSpace()
	if !mending.HealthProblem(s.Observed.Round()).None() {
		return verdict.Pass()
	}
	if problem := mending.PodProblem(); !problem.None() {
		return verdict.Unhealthy(problem.Text+", and space is freed (alarm NOSPACE) only in a cluster that is healthy otherwise", "check the member named here").About(problem)
	}
	if v := verdict.OneOf(mending, twice, compact, shrinkFiles, full); !v.Silent() {
		return v
	}
	return disarm(s, state.NoSpace, "every database is below its quota again")
}

// compact drops the history of a database that needs too much of its quota to be
// helped by a smaller file alone.
func compact(s *situation.Situation) verdict.Verdict {
	m, l := s.FindMember(s.Overfull), s.Observed.Round().Leader()
	if c := s.Observed.Record.Compacted; m == nil || (c != nil && l.Revision <= c.Revision) {
		return verdict.Pass()
	}
	if v := comparedFirst(s); !v.Silent() {
		return v
	}
	if !s.Compactable() {
		return verdict.Pass()
	}
	v := backupFirst(s, s.Desired.Spec.Upgrade.Backup, backupNeed{
		what: "the compaction that frees space", setting: "spec.upgrade.backup", purpose: state.ForCompaction, why: "compaction under NOSPACE",
		reason: fmt.Sprintf("the database of %s is full, and only dropping old revisions makes room; this backup has them", m.Name),
	})
	if !v.Silent() {
		return v
	}
	return verdict.Do(action.Compact{Member: l.Name, ID: l.ID, Revision: l.Revision},
		fmt.Sprintf("%s needs most of its quota of %s, old revisions included; the newest value of every key stays", m.Name, state.SizeText(s.QuotaOf(*m)))).
		Measured("it needs %s", state.SizeText(m.DBInUse))
}

// shrinkFiles makes the files of crowded databases smaller.
func shrinkFiles(s *situation.Situation) verdict.Verdict {
	return defragmentOne(s, func(m state.Member) situation.Remark {
		switch {
		case !s.NearQuota(m):
			return situation.Remark{}
		case s.SizeIsOld(m):
			return situation.Remark{
				Member: m.Name, Text: fmt.Sprintf("its file comes near its quota of %s, and the compaction has made room in it", state.SizeText(s.QuotaOf(m))),
				Detail: "it has " + state.SizeText(m.DBSize),
			}
		case !situation.WorthDefragmenting(m):
			return situation.Remark{}
		}
		return s.Reclaimable(m)
	})
}

// full tells what only a person can do. An unknown size is not
// below any quota.
func full(s *situation.Situation) verdict.Verdict {
	if m := s.FindMember(func(m state.Member) bool { return m.DBSize <= 0 }); m != nil {
		return verdict.Unhealthy("the size of the database of "+m.Name+" is unknown, so the alarm NOSPACE stays on", "check the member named here").At(m.Name)
	}
	m := s.FindMember(s.OverQuota)
	if m == nil {
		return verdict.Pass()
	}
	return verdict.Unhealthy(
		fmt.Sprintf("the cluster takes no writes (NOSPACE): %s has reached its quota of %s, and there is nothing left to compact or to give back",
			m.Name, state.SizeText(s.QuotaOf(*m))),
		"raise spec.etcd.quotaBackendBytes in a commit that changes nothing else (8Gi at most is advised, and spec.storage.size must hold it), or delete keys, which still works; quorate does the rest").
		At(m.Name).Measured("it needs %s", state.SizeText(m.DBInUse))
}

// disarm ends the alarms of one kind, one at a time.
func disarm(s *situation.Situation, kind, reason string) verdict.Verdict {
	for _, a := range s.Observed.Round().Alarms {
		if a.Kind == kind {
			return verdict.Do(action.Disarm{Alarm: kind, MemberID: a.MemberID}, reason)
		}
	}
	return verdict.Pass()
}

// defragmentOne defragments one member that has a reason to be: followers first,
// from the highest ordinal down, and the leader last, once it leads no longer. A
// member stops answering meanwhile, so only one is taken at a time.
func defragmentOne(s *situation.Situation, reason func(state.Member) situation.Remark) verdict.Verdict {
	var leader *state.Member
	for _, p := range s.Observed.Pods {
		m := s.Observed.Round().Member(p.Name)
		if m == nil || reason(*m).None() {
			continue
		}
		if m.Leader != m.ID {
			return defragmentMember(s, *m, reason(*m))
		}
		leader = m
	}
	if leader == nil {
		return verdict.Pass()
	}
	if unsafe, _ := s.UnsafeToDefragment(*leader); unsafe != "" {
		return defragmentMember(s, *leader, reason(*leader))
	}
	if transferee := s.Transferee(leader.Name); transferee != nil {
		return verdict.Do(action.MoveLeader{From: leader.Name, FromID: leader.ID, To: transferee.Name, ToID: transferee.ID},
			leader.Name+" is defragmented next, and while it is, the cluster would have no leader that answers")
	}
	return defragmentMember(s, *leader, reason(*leader))
}

// defragmentMember defragments one member, unless its release may lose data in that, or its volume is too small.
func defragmentMember(s *situation.Situation, m state.Member, reason situation.Remark) verdict.Verdict {
	if unsafe, do := s.UnsafeToDefragment(m); unsafe != "" {
		return verdict.Refuse(fmt.Sprintf("%s should be defragmented because %s; it is not: %s", m.Name, reason.Text, unsafe), do).About(reason)
	}
	return verdict.Do(action.Defragment{Member: m.Name, ID: m.ID}, reason.Text).About(reason)
}
