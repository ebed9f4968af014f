package plan

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/schema/release"
)

// forCompaction is what the backup before a compaction is taken for.
const forCompaction = "compaction"

// alarms ends an alarm when its cause has ended, and sees to that where it can.
// A cluster under an alarm takes no writes, so nothing here waits for a window.
//
//	NOSPACE  what a database keeps         then
//	         little, in a large file       defragmentation, one by one
//	         a lot                         backup, compaction, defragmentation
//	         too much after that           a person raises the quota or deletes
//	         less than the quota, by all   disarm, and a test write
//	CORRUPT  see corrupt
//
// History is dropped only where a smaller file would not help, and only after
// the backup. A roll that brings a larger quota goes first: it loses nothing.
func alarms(s *situation) verdict {
	r := s.o.round()
	if !s.formed() || r == nil || r.Problem != "" {
		return pass()
	}
	switch {
	case r.alarmed(Corrupt):
		return s.corrupt()
	case r.alarmed(NoSpace) && !s.relieves():
		return s.noSpace()
	}
	return pass()
}

// noSpace frees space. Whatever else is wrong with the cluster is for the rules
// below to say: a member that does not answer is not made to work harder.
func (s *situation) noSpace() verdict {
	if s.rollVictim() != nil {
		return pass() // it is mended first: nobody else is made to work while it is away
	}
	mending := *s
	mending.pardoned = true
	if mending.gate(s.o.round()) != "" {
		return pass()
	}
	if problem := mending.podsReady(); problem != "" {
		return unhealthy(problem+", and space is freed (alarm NOSPACE) only in a cluster that is well otherwise", "look at the member named here")
	}
	if v := mending.twice(); !v.silent() {
		return v
	}
	for _, next := range []func() verdict{mending.compact, mending.shrinkFiles, mending.full} {
		if v := next(); !v.silent() {
			return v
		}
	}
	return s.disarm(NoSpace, "every database is below its quota again")
}

// compact drops the history of a database that needs too much of its quota to be
// helped by a smaller file alone.
func (s *situation) compact() verdict {
	m, l := s.find(s.laden), s.o.round().leader()
	if m == nil || !s.compactable() {
		return pass()
	}
	v := s.backupFirst(s.d.Spec.Upgrade.Backup, backupWish{
		what: "the compaction that frees space", setting: "spec.upgrade.backup", purpose: forCompaction, why: "compaction under NOSPACE",
		reason: fmt.Sprintf("the database of %s is full, and only dropping old revisions makes room; whoever needs one finds it in this backup", m.Name),
	})
	if !v.silent() {
		return v
	}
	return do(Compact{Member: l.Name, ID: l.ID, Revision: l.Revision},
		fmt.Sprintf("%s needs %s of its quota of %s, old revisions included; the newest value of every key stays",
			m.Name, sizeText(m.DBInUse), sizeText(s.quotaOf(*m))))
}

// compactable says whether there is history left to drop: by the last look that
// compared the data, and by the record. Members do not tell of a compaction that
// no write has followed: their hash at that revision is the one from before it.
func (s *situation) compactable() bool {
	l := s.o.round().leader()
	if c := s.o.Record.Compacted; c != nil && l.Revision <= c.Revision {
		return false
	}
	for i := len(s.o.Rounds) - 1; i >= 0; i-- {
		if r := &s.o.Rounds[i]; r.Deep {
			m := r.member(l.Name)
			return m != nil && l.Revision > max(m.CompactRevision, 1)
		}
	}
	return false
}

// stale says whether what the member needs of its file was counted before the
// last compaction took effect: etcd counts it anew with a write, and under the
// alarm there is none.
func (s *situation) stale(m Member) bool {
	c := s.o.Record.Compacted
	return c != nil && s.o.Record.Defragmented[m.Name].Before(c.At)
}

// shrinkFiles makes the files of crowded databases smaller.
func (s *situation) shrinkFiles() verdict {
	return s.defragmentOne(func(m Member) string {
		switch {
		case !s.tight(m):
			return ""
		case s.stale(m):
			return fmt.Sprintf("its file has %s of a quota of %s, and the compaction has made room in it", sizeText(m.DBSize), sizeText(s.quotaOf(m)))
		case !spare(m):
			return ""
		}
		return fmt.Sprintf("its file has %s of a quota of %s, and %s of that can be given back", sizeText(m.DBSize), sizeText(s.quotaOf(m)), sizeText(m.DBSize-m.DBInUse))
	})
}

// full says what nobody but a person can do. A size that nobody knows is not
// below any quota.
func (s *situation) full() verdict {
	if m := s.find(func(m Member) bool { return m.DBSize <= 0 }); m != nil {
		return unhealthy("nobody knows how large the database of "+m.Name+" is, so the alarm NOSPACE stays on", "look at the member named here")
	}
	m := s.find(s.over)
	if m == nil {
		return pass()
	}
	return unhealthy(
		fmt.Sprintf("the cluster takes no writes (NOSPACE): %s needs %s of its quota of %s, and there is nothing left to compact or to give back",
			m.Name, sizeText(m.DBInUse), sizeText(s.quotaOf(*m))),
		"raise spec.etcd.quotaBackendBytes in a commit that changes nothing else (8Gi at most is advised, and spec.storage.size must hold it), or delete keys, which still works; quorate does the rest")
}

// disarm ends the alarms of one kind, one by one.
func (s *situation) disarm(kind, reason string) verdict {
	for _, a := range s.o.round().Alarms {
		if a.Kind == kind {
			return do(Disarm{Alarm: kind, MemberID: a.MemberID}, reason)
		}
	}
	return pass()
}

// find is the first member of which something is true, or nil.
func (s *situation) find(is func(Member) bool) *Member {
	r := s.o.round()
	for i := range r.Members {
		if is(r.Members[i]) {
			return &r.Members[i]
		}
	}
	return nil
}

// defragmentOne defragments one member that has a reason to be: followers first,
// from the highest ordinal down, and the leader last, once it leads no longer. A
// member stops answering meanwhile, so only one is taken at a time.
func (s *situation) defragmentOne(reason func(Member) string) verdict {
	var leader *Member
	for _, p := range s.o.Pods {
		m := s.o.round().member(p.Name)
		if m == nil || reason(*m) == "" {
			continue
		}
		if m.Leader != m.ID {
			return s.defragmentMember(*m, reason(*m))
		}
		leader = m
	}
	if leader == nil {
		return pass()
	}
	if heir := s.heir(leader.Name); heir != nil && s.unsafe(*leader) == "" {
		return do(MoveLeader{From: leader.Name, FromID: leader.ID, To: heir.Name, ToID: heir.ID},
			leader.Name+" is defragmented next, and while it is, the cluster would have no leader that answers")
	}
	return s.defragmentMember(*leader, reason(*leader))
}

// defragmentMember defragments one member, unless its release may lose data in that.
func (s *situation) defragmentMember(m Member, reason string) verdict {
	if unsafe := s.unsafe(m); unsafe != "" {
		return refuse(fmt.Sprintf("%s should be defragmented (%s), and is not: %s", m.Name, reason, unsafe),
			"upgrade first; under the alarm NOSPACE raise spec.etcd.quotaBackendBytes before that, in a commit of its own")
	}
	return do(Defragment{Member: m.Name, ID: m.ID}, reason)
}

// unsafe says why the member's release must not be defragmented, or "".
func (s *situation) unsafe(m Member) string {
	v, err := release.Parse(m.Version)
	if err != nil {
		return "nobody knows which release it runs"
	}
	return release.UnsafeDefragmentation(v)
}

// onlyOf says whether every error that a member reports is that alarm.
func onlyOf(errors []string, kind string) bool {
	for _, e := range errors {
		if !strings.Contains(e, "alarm:"+kind) {
			return false
		}
	}
	return true
}

// alarmList is the alarms as text.
func alarmList(alarms []Alarm) string {
	texts := make([]string, len(alarms))
	for i, a := range alarms {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}
