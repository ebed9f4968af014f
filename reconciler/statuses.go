package reconciler

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
)

// Statuses is what is known of every object that Git names and of the clusters that
// it names no more, in a fixed order. whole is false until Git was read, and while some
// object that it names was not reconciled yet: it is there, and its phase is unknown.
func (r *Reconciler) Statuses() (list []schema.Status, whole bool) {
	list, others, whole := r.own()
	told, all := r.elsewhere(others)
	list, whole = append(list, told...), whole && all
	schema.SortStatuses(list)
	return list, whole && r.gitRead.Load()
}

// StatusRevision is another number after each change of Statuses, and of what the caches
// hold: a StatefulSet that they learn of late may still lack its labels.
func (r *Reconciler) StatusRevision() uint64 { return r.Reporter.Board.Revision() + r.seen.Load() }

// Measured is what the last pass has measured of a cluster.
func (r *Reconciler) Measured(namespace, name string) schema.Measured {
	return r.Reporter.Board.Measured(namespace + "/" + name)
}

// MarkedSet is the StatefulSet of a cluster, nil for none and for a foreign one. tell
// reports whether its phase may be written on it: not where it is only observed, and may
// be another quorate's that writes on it.
func (r *Reconciler) MarkedSet(namespace, name string) (set *appsv1.StatefulSet, tell bool) {
	key := namespace + "/" + name
	c, named := r.Get(key)
	if !named {
		c.Metadata = schema.Metadata{Namespace: namespace, Name: name}
	}
	set = r.cache.Set(key)
	if set == nil || set.DeletionTimestamp != nil || !naming.Owns(set, c.EtcdCluster) {
		return nil, false
	}
	if c.Spec.Mode != schema.ModeObserve {
		return set, true
	}
	if cm := r.cache.Record(key); cm == nil || !r.isOurs(cm) {
		return nil, false
	}
	return set, false
}

// isOurs reports whether the cluster of a record belongs to this quorate, as far as the
// record can be read.
func (r *Reconciler) isOurs(cm *corev1.ConfigMap) bool {
	rec, err := record.Read(cm)
	owner := record.OwnerOf(rec)
	return err == nil && (r.Options.Owner.Nobody() || owner != nil && owner.Is(r.Options.Owner))
}

// newStatusWriter writes statuses for people, as this quorate.
func (r *Reconciler) newStatusWriter() *statuses.Writer {
	return &statuses.Writer{Kube: r.Options.Notes, Namespaces: r.Options.Namespaces, By: statuses.ByOf(r.Options.Owner), Lease: r.Options.Lease, Enter: r.Options.enter, Now: r.now, Log: r.Reporter.Log}
}

// planned tells what the plan of a cluster says.
func (r *Reconciler) planned(v *observe.View, p decision.Plan) {
	restore := v.Cluster.Restore
	if c, named := r.Get(v.Cluster.Key()); named {
		restore = c.Restore // else that of a cluster which goes first is not seen
	}
	r.Reporter.Planned(v, p, restore)
}
