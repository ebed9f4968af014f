package reconciler

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/schema"
)

// topicOrphan is told once, until a file names the cluster again.
const topicOrphan = "orphan"

// What is told of an orphan, and what a person can do.
const (
	orphanMessage = "no file that can be read names this cluster any more; it is left running and no longer looked at"
	orphanDo      = "bring its file back; to delete the cluster, write state: Deleted into it"
)

// orphaned tells, once, of a cluster that no file names; its record may be nil.
func (r *Reporter) orphaned(key string, cm *corev1.ConfigMap) {
	if !r.said.news(key, topicOrphan, orphanMessage) {
		return
	}
	r.log.Warn("orphan", "cluster", key, "message", orphanMessage, "do", orphanDo)
	if cm != nil {
		r.events.Event(cm, corev1.EventTypeWarning, "Orphaned", orphanMessage)
	}
}

// adopted ends what was told of a cluster that a file names again.
func (r *Reporter) adopted(key string) { r.said.over(key, topicOrphan) }

// orphans replaces the clusters that no file names, as they stand now.
func (r *Reporter) orphans(list []schema.Status) {
	r.metrics.orphans.Set(float64(len(list)))
	schema.SortStatuses(list)
	r.statuses.lost(list)
}
