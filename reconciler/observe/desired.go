package observe

import (
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// restoreRequest is what the planner is told of a restore, and of the backup that was
// chosen for it.
func restoreRequest(w *desired.Restore, chosen state.Chosen) *state.RestoreFrom {
	if w == nil {
		return nil
	}
	return &state.RestoreFrom{
		Name: w.Name, SpecHash: w.SpecHash, SourceHash: schema.SourceHash(w.Source), Source: desired.SourceText(w.Source), InPlace: w.Former != nil,
		Newest: w.Source.ObjectURL == "", Chosen: chosen,
	}
}

// deletedFirst is the cluster to reconcile now: where a restore comes in the
// place of a cluster that Git declares as deleted, that one until the deletion is
// over.
func deletedFirst(c desired.Cluster, live liveCluster) desired.Cluster {
	if c.Restore == nil || c.Restore.Former == nil || live.record == nil {
		return c
	}
	rec, err := record.Read(live.record)
	gone := live.set == nil && len(live.pods) == 0 && len(live.services) == 0 && live.budget == nil
	gone = gone && c.Restore.Former.Spec.Deletion.Volumes != schema.VolumesDelete // else the record goes, too
	if err != nil || (rec.Restored != nil && rec.Restored.Name == c.Restore.Name) || (rec.Deleted && gone) {
		return c
	}
	former := desired.Cluster{EtcdCluster: *c.Restore.Former, Commit: c.Commit, Problems: c.Problems}
	return former.Identified()
}
