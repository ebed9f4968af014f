package situation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// CorruptMember is about the member that holds other data than all the others: how
// that is known, and whether it is proven. It is, when in each of two rounds every
// member was asked for its hash at one revision since one compaction, all but one
// agree, they are a strict majority, that one is the same both times, and etcd
// accuses no other. Else it is about a suspected member or none, and tells what is
// missing; there is no remark where nothing is suspected.
func (s *Situation) CorruptMember() (why Remark, proven bool) {
	if !s.Formed() || !slices.ContainsFunc(s.Observed.Rounds, state.Suspicious) {
		return Remark{}, false
	}
	looks := s.Observed.Compared()
	if len(looks) < 2 {
		return Remark{Text: "the members' data has not been compared twice yet"}, false
	}
	name := ""
	for _, look := range looks {
		odd, problem := oddOne(look)
		switch {
		case !problem.None():
			return problem, false
		case name != "" && name != odd:
			return Remark{Text: fmt.Sprintf("%s differed from all others in one check, and %s in another", name, odd)}, false
		}
		name = odd
	}
	if name == "" {
		return Remark{Text: "all members hold the same data"}, false
	}
	last := looks[len(looks)-1]
	why = Remark{
		Member: name, Text: fmt.Sprintf("%s holds other data than the %d others, seen twice", name, len(last.Members)-1),
		Detail: fmt.Sprintf("compared at revision %d", last.Member(name).HashRevision),
	}
	if contradiction := s.contradicts(name); contradiction != "" {
		why.Text += ", but " + contradiction
		return why, false
	}
	return why, true
}

// oddOne is the only member with another hash than all others, "" where all are
// equal; the problem tells why it is unknown.
func oddOne(r *state.Round) (odd string, problem Remark) {
	byHash := map[uint32][]string{}
	for _, m := range r.Members {
		if m.Problem != "" || m.HashRevision == 0 {
			return "", Remark{Text: fmt.Sprintf("the data of %s could not be compared", state.NameOf(m))}
		}
		if !state.Comparable(m, r.Members[0]) {
			return "", Remark{Text: fmt.Sprintf("%s and %s have compacted at different revisions, so their data cannot be compared", state.NameOf(m), state.NameOf(r.Members[0]))}
		}
		byHash[m.Hash] = append(byHash[m.Hash], m.Name)
	}
	if len(byHash) <= 1 {
		return "", Remark{}
	}
	for _, names := range byHash {
		if len(byHash) == 2 && len(names) == 1 && len(r.Members) > 2 {
			return names[0], Remark{}
		}
	}
	return "", Remark{Text: "no single member differs from a majority that agrees", Detail: r.Hashes()}
}

// contradicts returns what speaks against the hashes, or "".
func (s *Situation) contradicts(name string) string {
	r, accused := s.Observed.Round(), false
	for _, a := range r.Alarms {
		i := slices.IndexFunc(r.Members, func(m state.Member) bool { return m.ID == a.MemberID })
		switch {
		case a.Kind != state.Corrupt:
		case i >= 0 && r.Members[i].Name != name:
			return "etcd accuses " + r.Members[i].Name
		case i >= 0 || a.MemberID == state.UnknownMember:
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

// MayDiverge tells what is known to let members of a release that runs come to hold different data, or "".
func (s *Situation) MayDiverge() string {
	for _, m := range s.Observed.Round().Members {
		if v, err := release.Parse(m.Version); err == nil && release.MayDiverge(v) != "" {
			return release.MayDiverge(v)
		}
	}
	return ""
}

// SameData reports whether all members were seen with the same data, each time.
func (s *Situation) SameData(looks []*state.Round) bool {
	for _, r := range looks {
		if odd, problem := oddOne(r); odd != "" || !problem.None() || !s.listProblem(r, "").None() {
			return false
		}
	}
	return true
}

// AccusedReplaced reports whether the members that the alarms accuse are gone: by the ID that they
// name, or where they name none, by the backup that the last repair began with.
func (s *Situation) AccusedReplaced() bool {
	for _, a := range s.Observed.Round().Alarms {
		listed := slices.ContainsFunc(s.Observed.Round().Members, func(m state.Member) bool { return m.ID == a.MemberID })
		mended := s.Observed.Record.Backup != nil && s.Observed.Record.Backup.For.IsRepair()
		if a.Kind == state.Corrupt && (listed || (a.MemberID == state.UnknownMember && !mended)) {
			return false
		}
	}
	return true
}
