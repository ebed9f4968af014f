package reconciler

import (
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
)

// Statuses is what is known of every object that Git names and of the clusters that
// it names no more, in a fixed order. whole is false while some object that Git names
// was not reconciled yet: it is there, and its phase is unknown.
func (r *Reconciler) Statuses() (list []schema.Status, whole bool) {
	list, whole = r.Reporter.Board.All(r.named())
	report.WithScheduled(list)
	schema.SortStatuses(list)
	return list, whole
}

// named is what is shown of the objects that Git names before the first pass.
func (r *Reconciler) named() map[string]schema.Status {
	all := map[string]schema.Status{}
	for key, c := range r.Desired() {
		all[key] = report.UnseenCluster(c)
	}
	for key, q := range r.Scheduler.Backups() {
		all[key] = report.UnseenBackup(q)
	}
	return all
}

// noteCluster keeps what a pass knows of a cluster, and of the restore that makes it.
func (r *Reconciler) noteCluster(v *observe.View, p decision.Plan) {
	key := v.Cluster.Key()
	list := []schema.Status{report.ClusterStatus(v, p)}
	restore := v.Cluster.Restore
	if c, named := r.Get(key); named {
		restore = c.Restore // else that of a cluster which goes first is not seen
	}
	if restore != nil {
		list = append(list, report.RestoreStatus(v, p, *restore))
	}
	r.Reporter.Board.Note(key, list)
}
