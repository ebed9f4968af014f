package plan

import (
	"time"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
)

func (e *engine) lookAtRecord(w *world) *state.Record {
	if !w.record.there || w.record.lost {
		return nil
	}
	r := &state.Record{Founders: int32(w.record.founders), Hibernated: w.record.hibernated, Deleted: w.record.deleted}
	if w.record.owner.who != 0 {
		owner := w.record.owner.owner()
		r.Owner = &owner
	}
	if w.record.formed {
		r.ClusterID, r.Members, r.Retired = "c1", e.roster(w.record.members), e.roster(w.record.retired)
		w.lookAtChanges(r)
		e.lookAtLogs(w, r)
		w.lookAtSpace(r)
	}
	r.Backup, r.RollBackup = w.record.backup.recorded(), w.record.rollBackup.recorded()
	if w.record.wasApplied {
		a := w.record.applied
		r.Applied = &state.Applied{SpecHash: e.hash(a), Settings: word(w.record.settings), Version: variants[a.variant].version}
		if w.record.release != 0 {
			r.Applied.Version = word(w.record.release)
		}
		if w.record.vague {
			r.Applied.SpecHash = ""
		}
	}
	return r
}

// recorded is a backup as the record has it.
func (b fakeBackup) recorded() *state.Backup {
	if !b.there {
		return nil
	}
	r := &state.Backup{ClusterID: "c1", For: state.Purpose(word(b.purpose)), Time: noonPlus(b.at)}
	if b.foreign {
		r.ClusterID = "c0"
	}
	return r
}

// lookAtChanges are the changes of the members that the record speaks of.
func (w *world) lookAtChanges(r *state.Record) {
	if j := &w.record.joining; j.there {
		r.Joining = &state.Joining{Member: podNames[j.i], ID: memberIDs[j.id], Since: noonPlus(j.since), Promoting: j.promoting, Replace: j.replace}
	}
	if l := &w.record.leaving; l.there {
		r.Leaving = &state.Leaving{Member: podNames[l.i], ID: memberIDs[l.id], Why: "it is to leave", Since: noonPlus(l.since), Replace: l.replace, Serving: l.serving, Asked: l.asked}
	}
	if n := w.record.downgrade; n > 0 {
		r.Downgrade = &state.Downgrade{Minor: lineText[n], Since: noonPlus(w.record.downgradeSince)}
	}
	if n := w.record.replacing; n > 0 {
		r.Replacing = podNames[n-1]
	}
	if f := &w.record.failed; f.there {
		r.FailedJoin = &state.FailedJoin{Member: podNames[f.i], At: noonPlus(f.at), Times: int(f.times)}
	}
}

// lookAtLogs is what the record says of the members' logs.
func (e *engine) lookAtLogs(w *world, r *state.Record) {
	r.BornOn, r.Flushed = lineText[w.record.bornOn], e.roster(w.record.flushed)
	n := &w.record.nudged
	if !n.there {
		return
	}
	r.Forced = &state.ForcedSnapshot{Template: templates[n.template], Since: noonPlus(n.since), Time: noonPlus(n.last), Before: map[string]int64{}}
	for i, id := range w.record.members {
		if id != 0 {
			r.Forced.Before[podNames[i]] = int64(n.before[i])
		}
	}
}

// lookAtSpace is what the record says of compactions.
func (w *world) lookAtSpace(r *state.Record) {
	if w.record.compacted == 0 {
		return
	}
	r.Compacted = &state.Compacted{Revision: int64(w.record.compacted), At: noonPlus(w.record.compactedAt)}
	for i, trimmed := range w.record.trimmed {
		if trimmed && r.Defragmented == nil {
			r.Defragmented = map[string]time.Time{}
		}
		if trimmed {
			r.Defragmented[podNames[i]] = r.Compacted.At.Add(time.Second)
		}
	}
}

// noteSettings lets a record say what the members were made with, as one that
// quorate has written does.
func (e *engine) noteSettings(w *world) {
	if !w.record.wasApplied {
		return
	}
	number, known := e.settings[w.record.applied]
	if !known {
		then := *w
		then.ask = w.record.applied
		number = wordOf(situation.Of(then.desired(), state.Observed{}, noon).Settings())
		e.settings[w.record.applied] = number
	}
	w.record.settings = number
}

// roster is a record's member list.
func (e *engine) roster(ids [most]int8) map[string]string {
	members, known := e.rosters[ids]
	if !known {
		members = map[string]string{}
		for i, id := range ids {
			if id != 0 {
				members[podNames[i]] = memberIDs[id]
			}
		}
		e.rosters[ids] = members
	}
	return members
}

// seen are the times ahead of the clock that the record speaks of: all up to the furthest.
func (w *world) seen(o *state.Observed, now time.Time) {
	if w.record.seenAt == 0 || o.Record == nil {
		return
	}
	_, ahead := clock.Settle(*o, now)
	for _, s := range ahead {
		if !s.At.After(noonPlus(w.record.seenTo)) {
			o.Record.Seen = append(o.Record.Seen, state.Seen{What: s.What, Stamp: s.At, At: noonPlus(w.record.seenAt)})
		}
	}
}

// noteTimes is what the executor does: the world keeps the furthest of the times.
func (w *world) noteTimes(a action.NoteTimes) {
	w.record.seenAt, w.record.seenTo = w.clock, w.clock
	for _, s := range a.Seen {
		w.record.seenTo = max(w.record.seenTo, int32(s.Stamp.Sub(noon)/time.Second))
	}
}
