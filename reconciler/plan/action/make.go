package action

import (
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// NewBeginDeletion is the action that records what the members were, as far as
// that is known: only as that may they ever come back.
func NewBeginDeletion(s *situation.Situation) BeginDeletion {
	if s.Observed.Set == nil {
		return BeginDeletion{}
	}
	a := BeginDeletion{Version: s.Observed.Set.CurrentVersion}
	switch was := s.Observed.Record.Applied; {
	case s.RollOpen() || (!s.Formed() && !s.OneTemplate()):
	case s.Started() && !s.Observed.Record.Hibernated:
		a.Settings = s.Settings()
	case was != nil:
		a.Settings = was.Settings
	}
	return a
}

// NewRecordAsleep is the action that records that a sleeping cluster is as Git wants it. What its
// members are stays what it was: what Git says of that meanwhile is not applied.
func NewRecordAsleep(s *situation.Situation) RecordApplied {
	a := NewRecordApplied(s, s.Observed.Set.Version)
	a.Settings = ""
	if s.Observed.Record.Applied != nil {
		a.Settings = s.Observed.Record.Applied.Settings
	}
	return a
}

// NewDropLearner is the action that takes a join back. The claim that its pod has was made
// for it: an unknown claim lets no join begin. But where the guard found
// data on it, that is never deleted.
//
// On what the learner has written no other one starts: its volume goes first. Where that
// keeps what a recovery has put aside, a person is asked before, and so it is retired only
// where the learner has come as far as to write. If that was not seen, the guard tells of it
// when the next one starts.
func NewDropLearner(s *situation.Situation, j state.Joining, failed bool) DropLearner {
	p, v := s.Observed.Pod(j.Member), s.Observed.Volume(j.Member)
	foreign := p != nil && p.Damage == state.DamageForeign
	a := DropLearner{
		Member: j.Member, ID: j.ID, Failed: failed, Replace: j.Replace && s.WantsMember(j.Member),
		Retire: j.ID != "" && !foreign,
	}
	if lost := situation.MayKeep(s, v); a.Retire && lost != "" {
		a.Retire = situation.MayHaveWritten(j.ID, v, p)
		if a.Retire && v.Keeps == "" {
			a.Keeps = lost
		}
	}
	return a
}

// NewStartRoll is the action that puts the partition above every pod.
func NewStartRoll(s *situation.Situation) StartRoll {
	return StartRoll{
		SetUID: s.Observed.Set.UID, Template: s.Desired.Template, Partition: s.Observed.Set.Replicas,
		From: s.FromVersion(), To: s.Desired.Spec.Version,
	}
}

// NewRecordApplied is the action that records that the spec is applied, by
// members of that version.
func NewRecordApplied(s *situation.Situation, version string) RecordApplied {
	return RecordApplied{SpecHash: s.Desired.SpecHash, Settings: s.Settings(), Version: version, Commit: s.Desired.Commit}
}
