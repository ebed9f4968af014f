package reconciler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
)

// watchOrphans searches for orphans now and then until ctx ends: their records come
// and go without any change in Git.
func (r *Reconciler) watchOrphans(ctx context.Context) {
	ticker := time.NewTicker(r.Options.Resync)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := contain.Run(func() error { r.findOrphans(); return nil }); err != nil {
				r.Reporter.Log.Error("search for orphans failed", "error", err.Error())
			}
		}
	}
}

// findOrphans counts the clusters that this quorate owns and no file names
// any more, and reports each once. They are left running: absence is never a request
// to delete. Before Git was read there is nothing to compare with.
func (r *Reconciler) findOrphans() {
	if !r.gitRead.Load() || r.Options.Owner.Nobody() {
		return
	}
	var orphans []schema.Status
	named := r.Desired()
	for _, cm := range r.cache.Records() {
		if cm.Name != naming.Record(cm.Labels[naming.LabelCluster]) {
			continue
		}
		key := cm.Namespace + "/" + cm.Labels[naming.LabelCluster]
		if named[key] != nil || !r.Options.Shards.Mine(key) {
			continue
		}
		if r.isOrphan(cm) {
			orphans = append(orphans, report.OrphanStatus(cm.Namespace, cm.Labels[naming.LabelCluster]))
			r.Reporter.Orphaned(key, cm)
		}
	}
	r.Reporter.Orphans(orphans)
}

// isOrphan reports whether this quorate owns the cluster of a record, and Git
// has not deleted it by a word. An unreadable record has no known owner.
func (r *Reconciler) isOrphan(cm *corev1.ConfigMap) bool {
	rec, err := record.Read(cm)
	return err == nil && !rec.Deleted && rec.Owner != nil && record.OwnerOf(rec).Is(r.Options.Owner)
}

// isMissed reports whether a file that has just gone ought to name the cluster of a
// record: not one that has another owner, nor one that was deleted by a
// word in Git.
func (r *Reconciler) isMissed(cm *corev1.ConfigMap) bool {
	rec, err := record.Read(cm)
	if err != nil {
		return true
	}
	owner := record.OwnerOf(rec)
	return !rec.Deleted && (owner == nil || r.Options.Owner.Nobody() || owner.Is(r.Options.Owner))
}

// reportOrphan tells of a cluster that has just lost its file.
func (r *Reconciler) reportOrphan(key string) {
	if cm := r.cache.Record(key); cm == nil || r.isMissed(cm) {
		r.Reporter.Orphaned(key, cm)
	}
}
