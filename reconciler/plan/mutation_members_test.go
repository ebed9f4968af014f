package plan

import (
	"slices"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

// membersSpoilt are the mutants of what changes the members, their volumes and
// their files.
func membersSpoilt() []mutant {
	return slices.Concat(quorumSpoilt(), identitySpoilt(), learnersSpoilt(), spaceSpoilt(), oncesSpoilt())
}

// quorumSpoilt are about who may go.
func quorumSpoilt() []mutant {
	return []mutant{
		{name: "a removal does not ask who would be left", breaks: "I1", table: blind("membership", allWell), from: shrinking},
		{name: "the StatefulSet gets one pod less than there are members", breaks: "I1", hand: changed(func(_ *world, a *action.ResizeSet) { a.To = max(0, a.To-1) })},
		{name: "a member that is down counts as lost", breaks: "I17", table: blind("repair", func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				if p := &s.Observed.Pods[i]; !p.Ready {
					p.Damage, p.Ready = state.DamageEmpty, false
				}
			}
		})},
		{name: "a removal continues although Git wants the member again", breaks: "I17", table: blind("membership", func(s *situation.Situation) {
			if l := s.Observed.Record.Leaving; l != nil {
				s.Desired.Spec.Replicas = naming.Ordinal(l.Member)
			}
		}), from: shrinking},
		{name: "a lost quorum is recovered automatically", breaks: "I18", table: blind("recovery", func(s *situation.Situation) {
			s.Desired.Spec.Recovery.ClusterID, s.Desired.Spec.Recovery.ObjectURL = s.Observed.Record.ClusterID, "s3://backups/last.db"
		})},
		{name: "the leader is removed as it leads", breaks: "I20", hand: hand{alter: func(w *world, a action.Action) action.Action {
			if l := w.record.leaving; l.there && actionIs[action.MoveLeader](a) {
				return action.RemoveMember{Member: podNames[l.i], ID: memberIDs[l.id]}
			}
			return a
		}}, from: shrinking},
	}
}

// identitySpoilt are about who a member is, and what is on its volume.
func identitySpoilt() []mutant {
	return []mutant{
		{name: "the guard lets every etcd start", breaks: "I5", from: func(d dice) world {
			w := startOf(d)
			w.unguarded = true
			return w
		}},
		{name: "nobody notes how far the members have written", breaks: "I5", from: func(d dice) world {
			w := startOf(d)
			w.unnoted = true
			return w
		}},
		{name: "a member joins on whatever is on the volume", breaks: "I5", table: blind("repair grow", func(s *situation.Situation) {
			s.Observed.Volumes, s.Observed.Record.Retired = nil, nil
		}), from: repairing},
		{name: "a volume goes before its member", breaks: "I6", hand: hand{careless: true, alter: func(w *world, a action.Action) action.Action {
			if it, ok := a.(action.RemoveMember); ok {
				return action.DeleteVolume{Member: it.Member, Claim: naming.Claim("", it.Member), UID: podUID(w.claims[ordinal8(it.Member)].uid)}
			}
			return a
		}}, from: shrinking},
		{name: "volumes of removed members go although Git keeps them", breaks: "I6", table: blind("remove", func(s *situation.Situation) {
			s.Desired.Spec.Storage.RemovedVolumes = "Delete"
		}), from: shrinking},
		{name: "volumes on which no member was seen go, too", breaks: "I7", hand: hand{careless: true}, table: blind("repair grow remove deletion", func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Damage = ""
			}
			for i := range s.Observed.Volumes {
				s.Observed.Volumes[i].Holds = memberIDs[9]
			}
		}), from: func(d dice) world {
			w := swapped(d)
			w.ask.state, w.ask.wipe = askDeleted, true
			return w
		}},
		{name: "foreign data counts as what the member had left", breaks: "I7", hand: hand{careless: true}, table: blind("holdings membership repair deletion", func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				if p := &s.Observed.Pods[i]; p.Damage == state.DamageForeign {
					p.Damage = state.DamageOutdated
				}
			}
		}), from: swapped},
		{name: "a member is recorded as gone before etcd says so", breaks: "I24", table: blind("membership", everyRound(func(s *situation.Situation, r *state.Round) {
			if l := s.Observed.Record.Leaving; l != nil {
				r.Members = slices.DeleteFunc(slices.Clone(r.Members), func(m state.Member) bool { return m.ID == l.ID })
			}
		})), from: shrinking},
		{name: "a member is removed before that was recorded", breaks: "I24", hand: hand{alter: func(_ *world, a action.Action) action.Action {
			if it, ok := a.(action.BeginLeave); ok {
				return action.RemoveMember{Member: it.Member, ID: it.ID}
			}
			return a
		}}, from: shrinking},
		{name: "a member is added whose place is taken", breaks: "I24", hand: changed(func(_ *world, a *action.BeginJoin) { a.Member = podNames[0] }), from: growing},
	}
}

// learnersSpoilt are about members on their way in.
func learnersSpoilt() []mutant {
	return []mutant{
		{name: "a learner is promoted before it has caught up", breaks: "I19", table: blind("membership", everyMember(func(m *state.Member) { m.AppliedIndex = m.CommitIndex })), from: growing},
		{name: "a learner is recorded as a member", breaks: "I19", table: blind("membership", everyMember(func(m *state.Member) { m.Learner = false })), from: growing},
		{name: "a second member begins to join", breaks: "I2", table: func(rules []rule) []rule {
			return blind("grow", func(s *situation.Situation) { s.Observed.Record.Joining = nil })(lacking("membership")(rules))
		}, from: growing},
	}
}

// spaceSpoilt are about full databases.
func spaceSpoilt() []mutant {
	return []mutant{
		{name: "the alarm ends while a database is full", breaks: "I23", table: blind("alarms", everyMember(func(m *state.Member) { m.DBSize = m.DBInUse })), from: crowdedWorld},
		{name: "the leader is defragmented", breaks: "I23", hand: changed(func(w *world, a *action.Defragment) {
			if w.leader >= 0 {
				a.Member, a.ID = podNames[w.leader], memberIDs[w.seats[w.leader].id]
			}
		}), from: crowdedWorld},
		{name: "a member is defragmented while another is down", breaks: "I23", table: blind("member alarms", allWell), from: crowdedWorld},
		{name: "a release is defragmented that may lose data in that", breaks: "I23", table: blind("alarms", func(s *situation.Situation) {
			everyMember(func(m *state.Member) { m.Version = "3.6.16" })(s)
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Version = "3.6.16"
			}
		}), from: crowdedWorld},
	}
}

// oncesSpoilt are about what happens once.
func oncesSpoilt() []mutant {
	return []mutant{
		{name: "what was applied is recorded again and again", breaks: "I13", table: blind("applied", func(s *situation.Situation) { s.Observed.Record.Applied = nil })},
		{name: "the same backup is taken again and again", breaks: "I13", table: blind("backup", func(s *situation.Situation) { s.Observed.Record.Backup = nil })},
	}
}

// allWell lets every member and every pod say that it is well.
func allWell(s *situation.Situation) {
	for i := range s.Observed.Pods {
		s.Observed.Pods[i].Ready, s.Observed.Pods[i].Terminating, s.Observed.Pods[i].Trouble = true, false, ""
	}
	wellSpoken(s)
}

// shrinking is where histories start of clusters that get smaller.
func shrinking(d dice) world {
	w := runningWorld([]int8{3, 5}[d.roll(2)], v35)
	w.ask.replicas = []int8{1, 3}[d.roll(2)]
	return w
}

// growing is where histories start of clusters that get larger.
func growing(d dice) world {
	w := runningWorld([]int8{1, 3}[d.roll(2)], v35)
	w.ask.replicas = []int8{3, 5}[d.roll(2)]
	return w
}

// repairing is where histories start that have lost the data of a member.
func repairing(d dice) world {
	w := runningWorld(3, v35)
	_ = w.apply(move{volumeIsSpoilt, int8(d.roll(3))})
	return w
}

// swapped is where histories start in which a claim is bound to somebody else's
// volume.
func swapped(d dice) world {
	w := runningWorld(3, v35)
	_ = w.apply(move{volumeIsSwapped, int8(d.roll(3))})
	return w
}

// crowdedWorld is where histories start of clusters that take no writes.
func crowdedWorld(d dice) world {
	w := runningWorld(3, []int8{v35, v34}[d.roll(2)])
	w.leader = int8(d.roll(3))
	w.fill(&d)
	return w
}

// actionIs reports whether an action is of a kind.
func actionIs[A action.Action](a action.Action) bool {
	_, ok := a.(A)
	return ok
}
