package reconciler

import (
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// RestoreWish is an EtcdRestore: the backup that a cluster is to begin with.
type RestoreWish struct {
	// Name of the EtcdRestore, and SpecHash of its whole spec.
	Name, SpecHash string
	// Source is the backup.
	Source schema.RestoreSource
	// From says where the backups are that Source means; nil for an object URL.
	From *RestoreFrom
	// Former is the cluster of the same name that Git declares as deleted, in whose
	// place the restore comes; nil for none.
	Former *schema.EtcdCluster
}

// describe tells the planner.
func (w *RestoreWish) describe() *plan.RestoreWish {
	if w == nil {
		return nil
	}
	return &plan.RestoreWish{
		Name: w.Name, SpecHash: w.SpecHash, SourceHash: schema.SourceHash(w.Source), Source: sourceText(w.Source), InPlace: w.Former != nil,
	}
}

// sourceText is the backup in words. The query of a URL is nobody's business.
func sourceText(s schema.RestoreSource) string {
	text := ""
	switch {
	case s.ObjectURL != "":
		return withoutQuery(s.ObjectURL)
	case s.Schedule != "":
		text = "the newest backup of schedule " + s.Schedule
	default:
		text = "the newest backup of cluster " + s.ClusterName
	}
	if s.Before != nil {
		text += " before " + s.Before.UTC().Format("2006-01-02T15:04:05Z")
	}
	return text
}

// deletedFirst is the cluster that is looked at now: where a restore comes in the
// place of a cluster that Git declares as deleted, that one until the deletion is
// over.
func (c Cluster) deletedFirst(live *liveCluster) Cluster {
	if c.Restore == nil || c.Restore.Former == nil || live.record == nil {
		return c
	}
	record, err := ReadRecord(live.record)
	gone := live.set == nil && len(live.pods) == 0 && len(live.services) == 0 && live.budget == nil
	gone = gone && c.Restore.Former.Spec.Deletion.Volumes != schema.VolumesDelete // else the record goes, too
	if err != nil || (record.Restored != nil && record.Restored.Name == c.Restore.Name) || (record.Deleted && gone) {
		return c
	}
	former := Cluster{EtcdCluster: *c.Restore.Former, Commit: c.Commit, Problems: c.Problems}
	return former.identified()
}
