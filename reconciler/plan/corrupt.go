package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/schema/release"
)

// corruptMember names the member that holds other data than all the others, says
// how that is known, and whether it is proven. It is, when in each of two looks
// every member was asked for its hash at one revision since one compaction, all
// but one agree, they are a strict majority, that one is the same both times, and
// etcd accuses nobody else. Else the name is "" or a suspicion, and why says what
// is missing; all is "" where nothing is suspected.
func (s *situation) corruptMember() (name, why string, provable bool) {
	r := s.o.round()
	if !s.formed() || r == nil || !slices.ContainsFunc(s.o.Rounds, Suspicious) {
		return "", "", false
	}
	looks := s.deepLooks()
	if len(looks) < 2 {
		return "", "the members' data has not been compared twice yet", false
	}
	for _, look := range looks {
		odd, problem := oddOne(look)
		switch {
		case problem != "":
			return "", problem, false
		case name != "" && name != odd:
			return "", fmt.Sprintf("%s differed from all others in one look, and %s in another", name, odd), false
		}
		name = odd
	}
	if name == "" {
		return "", "all members hold the same data", false
	}
	last := looks[len(looks)-1]
	why = fmt.Sprintf("%s holds other data than the %d others at revision %d, seen twice", name, len(last.Members)-1, last.member(name).HashRevision)
	if contradiction := s.contradicts(name); contradiction != "" {
		return name, why + ", but " + contradiction, false
	}
	return name, why, true
}

// Suspicious says whether a look has a sign of members that hold different data:
// then the data is compared once more.
func Suspicious(r Round) bool {
	if r.alarmed(Corrupt) {
		return true
	}
	for _, a := range r.Members {
		for _, b := range r.Members {
			if r.Deep && alike(a, b) && a.Hash != b.Hash {
				return true
			}
		}
	}
	return false
}

// alike says whether the hashes of two members are of the same thing.
func alike(a, b Member) bool {
	return a.HashRevision == b.HashRevision && a.CompactRevision == b.CompactRevision
}

// deepLooks are the looks that compared the data.
func (s *situation) deepLooks() []*Round {
	var looks []*Round
	for i := range s.o.Rounds {
		if r := &s.o.Rounds[i]; r.Deep && r.Problem == "" {
			looks = append(looks, r)
		}
	}
	return looks
}

// oddOne is the only member with another hash than all others, "" where all are
// equal; the problem says why nobody can tell.
func oddOne(r *Round) (odd, problem string) {
	byHash := map[uint32][]string{}
	for _, m := range r.Members {
		if m.Problem != "" || m.HashRevision == 0 {
			return "", fmt.Sprintf("the data of %s could not be compared", nameOf(m))
		}
		if !alike(m, r.Members[0]) {
			return "", fmt.Sprintf("%s and %s have compacted at different revisions, so their data cannot be compared", nameOf(m), nameOf(r.Members[0]))
		}
		byHash[m.Hash] = append(byHash[m.Hash], m.Name)
	}
	if len(byHash) <= 1 {
		return "", ""
	}
	for _, names := range byHash {
		if len(byHash) == 2 && len(names) == 1 && len(r.Members) > 2 {
			return names[0], ""
		}
	}
	return "", "no single member differs from a majority that agrees: " + camps(r)
}

// camps lists who holds what.
func camps(r *Round) string {
	var texts []string
	for _, m := range r.Members {
		texts = append(texts, fmt.Sprintf("%s %08x", m.Name, m.Hash))
	}
	return strings.Join(texts, ", ")
}

// contradicts says what speaks against the hashes, or "".
func (s *situation) contradicts(name string) string {
	r, accused := s.o.round(), false
	for _, a := range r.Alarms {
		i := slices.IndexFunc(r.Members, func(m Member) bool { return m.ID == a.MemberID })
		switch {
		case a.Kind != Corrupt:
		case i >= 0 && r.Members[i].Name != name:
			return "etcd accuses " + r.Members[i].Name
		case i >= 0 || a.MemberID == nobody:
			accused = true
		}
	}
	for _, m := range r.Members {
		if v, err := release.Parse(m.Version); err != nil || (!accused && !release.HashTrusted(v)) {
			return fmt.Sprintf("etcd has raised no alarm, and the hashes of %s alone prove nothing", cmp.Or(m.Version, "an unknown release"))
		}
	}
	return ""
}

// corrupt holds a cluster whose members hold different data, which is the repair
// rule's where it is known who is wrong. The alarm ends when all agree again, and
// the one that etcd accused is a member no longer.
func (s *situation) corrupt() verdict {
	name, why, provable := s.corruptMember()
	switch looks := s.deepLooks(); {
	case len(looks) < 2:
		return confirmIn(instant, "the members' data has not been compared twice yet")
	case provable:
		return unhealthy("alarm CORRUPT: "+why, name+" is replaced by a new member as soon as the others are well; etcd serves nobody until then")
	case name == "" && s.sameData(looks) && s.replaced():
		return s.disarm(Corrupt, "all members hold the same data, and the one that did not is a member no longer")
	}
	return unhealthy(
		fmt.Sprintf("%s: etcd serves nobody, and quorate cannot prove which member is wrong: %s", alarmList(s.o.round().Alarms), why),
		"compare the members with `etcdctl endpoint hashkv --cluster`; then either delete the pod and the volume claim of the one that is wrong, which is then replaced, or restore a backup into a new cluster, or, if all agree, end the alarm with `etcdctl alarm disarm`")
}

// sameData says whether all members were seen with the same data, each time.
func (s *situation) sameData(looks []*Round) bool {
	for _, r := range looks {
		if odd, problem := oddOne(r); odd != "" || problem != "" || s.identity(r, "") != "" {
			return false
		}
	}
	return true
}

// replaced says whether whoever the alarms accuse is gone: by the ID that they
// name, or where they name none, by the backup that the last repair began with.
func (s *situation) replaced() bool {
	for _, a := range s.o.round().Alarms {
		listed := slices.ContainsFunc(s.o.round().Members, func(m Member) bool { return m.ID == a.MemberID })
		mended := s.o.Record.Backup != nil && strings.HasPrefix(s.o.Record.Backup.For, "repair ")
		if a.Kind == Corrupt && (listed || (a.MemberID == nobody && !mended)) {
			return false
		}
	}
	return true
}
