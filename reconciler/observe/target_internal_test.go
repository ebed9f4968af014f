package observe

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/record/recordtest"
)

// Whatever comes or goes, the number of pods is what the last step left.
func TestEveryIntentIsMoving(t *testing.T) {
	if moving(recordtest.Formed()) {
		t.Error("a cluster at rest")
	}
	for name, change := range map[string]func(*record.Record){
		"a recovery":         func(r *record.Record) { r.Recovering = &record.Recovering{} },
		"one that comes":     func(r *record.Record) { r.Joining = &record.Joining{} },
		"one that goes":      func(r *record.Record) { r.Leaving = &record.Leaving{} },
		"one to be replaced": func(r *record.Record) { r.Replacing = "orders-1" },
		"a volume that is left": func(r *record.Record) {
			r.Retired = map[string]string{"orders-4": "a4"}
		},
		"hibernation": func(r *record.Record) { r.Hibernated = true },
		"a deletion":  func(r *record.Record) { r.Deleted = true },
	} {
		r := recordtest.Formed()
		change(&r)
		if !moving(r) {
			t.Errorf("%s leaves the number of pods to Git", name)
		}
	}
}

// No other may stop a member that the quorum needs, also of a cluster that has
// not formed yet, or that is about to lose a voter.
func TestDisruptionsKeepTheQuorum(t *testing.T) {
	five := func(edits ...func(*record.Record)) record.Record {
		r := recordtest.Formed()
		r.Members["orders-3"], r.Members["orders-4"] = "a3", "a4"
		for _, edit := range edits {
			edit(&r)
		}
		return r
	}
	alone := recordtest.Formed()
	alone.Members = map[string]string{"orders-0": "a0"}
	founded := record.New("t")
	founded.Founders = 5
	leaving := func(r *record.Record) { r.Leaving = &record.Leaving{Member: "orders-4"} }
	for name, c := range map[string]struct {
		rec  record.Record
		want int32
	}{
		"five":                       {five(), manifests.Disruptions(5)},
		"five, of which one goes":    {five(leaving), manifests.Disruptions(4)},
		"three":                      {recordtest.Formed(), manifests.Disruptions(3)},
		"one alone":                  {alone, manifests.Disruptions(1)},
		"three that are to form":     {record.New("t"), manifests.Disruptions(3)},
		"five that were to form":     {founded, manifests.Disruptions(5)},
		"one that did not form here": {five(func(r *record.Record) { r.Founders = 1 }), manifests.Disruptions(5)},
	} {
		if got := Disruptions(c.rec, clustertest.Orders()); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// How many pods there are follows what was done, and not what Git wants by now.
func TestReplicasFollowTheRecord(t *testing.T) {
	set := &appsv1.StatefulSet{}
	set.Spec.Replicas = new(int32(7))
	restoring, founded, highest, coming := record.New("t"), record.New("t"), recordtest.Formed(), recordtest.Formed()
	restoring.Recovering = &record.Recovering{}
	founded.Founders = 1
	highest.Members["orders-4"] = "a4"
	lost := recordtest.Formed()
	lost.Recovering = &record.Recovering{}
	coming.Joining = &record.Joining{Member: "orders-3"}
	for name, c := range map[string]struct {
		rec  record.Record
		set  *appsv1.StatefulSet
		want int32
	}{
		"a restore before there is a StatefulSet": {restoring, nil, 0},
		"a restore that goes on":                  {restoring, set, 7},
		"a new cluster":                           {record.New("t"), nil, 3},
		"a new cluster that was begun smaller":    {founded, set, 1},
		"a member that comes":                     {coming, set, 7},
		"a member that comes, without a set":      {coming, nil, 3},
		"a cluster at rest":                       {recordtest.Formed(), set, 3},
		"a gap among the members":                 {highest, set, 5},
		"a lost cluster without a StatefulSet":    {lost, nil, 3},
	} {
		if got := podCount(c.rec, clustertest.Orders(), c.set); got != c.want {
			t.Errorf("%s: %d pods, want %d", name, got, c.want)
		}
	}
}
