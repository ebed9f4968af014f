package observe

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/schema"
)

// 128: the cluster that Git deletes is looked at until nothing of it runs, and only
// then the one that is restored in its place.
func TestTheDeletedClusterComesFirst(t *testing.T) {
	type looked struct {
		wish *desired.Restore
		live *liveCluster
	}
	// gone is a cluster that was deleted, of which nothing is left but its volumes.
	gone := func(changes ...func(*looked, *record.Record)) looked {
		former := clustertest.Orders(func(c *schema.EtcdCluster) { c.Spec.State = schema.StateDeleted })
		l := looked{wish: &desired.Restore{Name: "back", Former: &former}, live: &liveCluster{}}
		rec := recordtest.Formed()
		rec.Deleted = true
		for _, change := range changes {
			change(&l, &rec)
		}
		l.live.record = recordtest.Stored(rec)
		return l
	}
	left := func(change func(*liveCluster)) looked {
		return gone(func(l *looked, _ *record.Record) { change(l.live) })
	}
	noRecord, damaged := gone(), gone(func(_ *looked, r *record.Record) { r.Deleted = false })
	noRecord.live.record = nil
	damaged.live.record.Data[naming.KeyRecord] = "{"
	for name, c := range map[string]struct {
		looked
		former bool
	}{
		"no restore":                  {gone(func(l *looked, _ *record.Record) { l.wish = nil }), false},
		"a restore in nobody's place": {gone(func(l *looked, r *record.Record) { l.wish.Former, r.Deleted = nil, false }), false},
		"no record":                   {noRecord, false},
		"a record that is damaged":    {damaged, false},
		"gone":                        {gone(), false},
		"gone, and nobody said so":    {gone(func(_ *looked, r *record.Record) { r.Deleted = false }), true},
		"its StatefulSet is left":     {left(func(l *liveCluster) { l.set = &appsv1.StatefulSet{} }), true},
		"a pod is left":               {left(func(l *liveCluster) { l.pods = []*corev1.Pod{{}} }), true},
		"a Service is left":           {left(func(l *liveCluster) { l.services = map[string]*corev1.Service{"orders-client": {}} }), true},
		"its budget is left":          {left(func(l *liveCluster) { l.budget = &policyv1.PodDisruptionBudget{} }), true},
		"its volumes are to go, too":  {gone(func(l *looked, _ *record.Record) { l.wish.Former.Spec.Deletion.Volumes = schema.VolumesDelete }), true},
		"restored": {gone(func(_ *looked, r *record.Record) {
			r.Deleted, r.Restored = false, &record.Restored{Name: "back"}
		}), false},
		"restored by another one before": {gone(func(_ *looked, r *record.Record) {
			r.Deleted, r.Restored = false, &record.Restored{Name: "older"}
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := deletedFirst(desired.Cluster{EtcdCluster: clustertest.Orders(), Restore: c.wish}, *c.live)
			if former := seen.Spec.State == schema.StateDeleted; former != c.former {
				t.Errorf("looked at the former one: %t", former)
			}
		})
	}
}
