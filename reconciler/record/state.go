package record

import (
	"github.com/quorate/quorate/reconciler/state"
)

// State is the record in the planner's words.
func (r Record) State() *state.Record {
	s := &state.Record{
		Backup: r.Backup.state(), RollBackup: r.RollBackup.state(),
		ClusterID: r.ClusterID, Members: r.Members, Owner: OwnerOf(r), Defragmented: r.Defragmented,
		BornOn: r.BornOn, Flushed: r.Flushed, Seen: r.seenTimes(), PeerURLs: r.PeerURLs, MovedAt: r.MovedAt,
	}
	r.Membership.addTo(s)
	r.Recovery.addTo(s)
	r.Restore.addTo(s)
	if c := r.Compacted; c != nil {
		s.Compacted = &state.Compacted{Revision: c.Revision, At: c.At}
	}
	if a := r.Applied; a != nil {
		s.Applied = &state.Applied{SpecHash: a.SpecHash, Settings: a.Settings, Version: a.Version, Commit: a.Commit}
	}
	if n := r.Nudged; n != nil {
		s.Forced = &state.ForcedSnapshot{Template: n.Template, Since: n.Since, Time: n.At, Before: n.Before}
	}
	if d := r.Downgrade; d != nil {
		s.Downgrade = &state.Downgrade{Minor: d.Line, Since: d.Since}
	}
	return s
}
