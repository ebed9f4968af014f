package reconciler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/plan"
)

// watchOrphans looks for orphans now and then until ctx ends: their records come
// and go without any change in Git.
func (r *Reconciler) watchOrphans(ctx context.Context) {
	ticker := time.NewTicker(r.options.Resync)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.findOrphans()
		}
	}
}

// findOrphans counts the clusters that this quorate looks after and no file names
// any more, and tells of each once. They are left running: absence is never a wish
// to delete. Before Git was read there is nothing to compare with.
func (r *Reconciler) findOrphans() {
	if !r.asked.Load() || r.options.Owner.Nobody() {
		return
	}
	orphans := 0
	for _, o := range r.cache.records.GetStore().List() {
		cm, ok := o.(*corev1.ConfigMap)
		if !ok || cm.Name != recordNameOf(cm.Labels[LabelCluster]) {
			continue
		}
		key := cm.Namespace + "/" + cm.Labels[LabelCluster]
		if _, named := r.wish(key); named {
			continue
		}
		if owner := r.ownerIn(cm); owner != nil && owner.Is(r.options.Owner) {
			orphans++
			r.reportOrphan(key)
		}
	}
	r.metrics.orphans.Set(float64(orphans))
}

// ownerIn is who looks after the cluster of a record, nil when nobody can tell.
func (r *Reconciler) ownerIn(cm *corev1.ConfigMap) *plan.Owner {
	record, err := ReadRecord(cm)
	if err != nil {
		return nil
	}
	return ownerOf(record)
}

// topicOrphan is told once, until a file names the cluster again.
const topicOrphan = "orphan"

// reportOrphan tells of a cluster that no file names, unless it is another's.
func (r *Reconciler) reportOrphan(key string) {
	const message = "no file that can be read names this cluster any more; it is left running and no longer looked at"
	cm := r.recordOf(key)
	if cm != nil {
		if owner := r.ownerIn(cm); owner != nil && !r.options.Owner.Nobody() && !owner.Is(r.options.Owner) {
			return
		}
	}
	if !r.said.news(key, topicOrphan, message) {
		return
	}
	r.log.Warn("orphan", "cluster", key, "message", message, "do", "bring its file back; to delete the cluster, write state: Deleted into it")
	if cm != nil {
		r.events.Event(cm, corev1.EventTypeWarning, "Orphaned", message)
	}
}

// recordOf is the record of a cluster, nil where there is none.
func (r *Reconciler) recordOf(key string) *corev1.ConfigMap {
	// The index is made before the first list: an error is a record not seen.
	records, _ := listOf[*corev1.ConfigMap](r.cache.records, key)
	for _, cm := range records {
		if cm.Name == recordNameOf(cm.Labels[LabelCluster]) {
			return cm
		}
	}
	return nil
}
