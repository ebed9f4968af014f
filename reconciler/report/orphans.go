package report

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// topicOrphan is reported once, until a file names the cluster again.
const topicOrphan = "orphan"

// What is reported of an orphan, and what a person can do.
const (
	orphanMessage = "no readable file names this cluster any more; it is left running and no longer reconciled"
	orphanDo      = "bring its file back; to delete the cluster, write state: Deleted into it"
)

// Orphaned tells, once, of a cluster that no file names; its record may be nil.
func (r *Reporter) Orphaned(key string, cm *corev1.ConfigMap) {
	if !r.Said.Changed(key, topicOrphan, orphanMessage) {
		return
	}
	r.Log.Warn("cluster is not in Git any more", "cluster", key, "remedy", orphanDo)
	if cm != nil {
		r.Events.Event(cm, corev1.EventTypeWarning, "Orphaned", orphanMessage)
	}
}

// Adopted begins with a cluster that a file names, and ends what was reported of it
// while none did.
func (r *Reporter) Adopted(c desired.Cluster) {
	r.Said.Clear(c.Key(), topicOrphan)
	r.Metrics.looks.add(c.Key())
	r.Metrics.begin(c)
}

// Orphans replaces the clusters that no file names, as they stand now.
func (r *Reporter) Orphans(list []schema.Status) {
	r.Metrics.orphans.Set(float64(len(list)))
	schema.SortStatuses(list)
	r.Board.setOrphans(list)
}
