package reconciler

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/manifests"
)

// Whatever comes or goes, the number of pods is what the last step left.
func TestEveryIntentIsMoving(t *testing.T) {
	if moving(formedRecord()) {
		t.Error("a cluster at rest")
	}
	for name, change := range map[string]func(*Record){
		"a recovery":         func(r *Record) { r.Recovering = &RecoveringRecord{} },
		"one that comes":     func(r *Record) { r.Joining = &JoiningRecord{} },
		"one that goes":      func(r *Record) { r.Leaving = &LeavingRecord{} },
		"one to be replaced": func(r *Record) { r.Replacing = "orders-1" },
		"a volume that is left": func(r *Record) {
			r.Retired = map[string]string{"orders-4": "a4"}
		},
		"hibernation": func(r *Record) { r.Hibernated = true },
		"a deletion":  func(r *Record) { r.Deleted = true },
	} {
		r := formedRecord()
		change(&r)
		if !moving(r) {
			t.Errorf("%s leaves the number of pods to Git", name)
		}
	}
}

// Nobody else may stop a member that the quorum needs, also of a cluster that has
// not formed yet, or that is about to lose a voter.
func TestDisruptionsKeepTheQuorum(t *testing.T) {
	five := func(edits ...func(*Record)) Record {
		r := formedRecord()
		r.Members["orders-3"], r.Members["orders-4"] = "a3", "a4"
		for _, edit := range edits {
			edit(&r)
		}
		return r
	}
	alone := formedRecord()
	alone.Members = map[string]string{"orders-0": "a0"}
	founded := NewRecord("t")
	founded.Founders = 5
	leaving := func(r *Record) { r.Leaving = &LeavingRecord{Member: "orders-4"} }
	for name, c := range map[string]struct {
		record Record
		want   int32
	}{
		"five":                       {five(), manifests.Disruptions(5)},
		"five, of which one goes":    {five(leaving), manifests.Disruptions(4)},
		"three":                      {formedRecord(), manifests.Disruptions(3)},
		"one alone":                  {alone, manifests.Disruptions(1)},
		"three that are to form":     {NewRecord("t"), manifests.Disruptions(3)},
		"five that were to form":     {founded, manifests.Disruptions(5)},
		"one that did not form here": {five(func(r *Record) { r.Founders = 1 }), manifests.Disruptions(5)},
	} {
		if got := disruptions(c.record, clustertest.Orders()); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// How many pods there are follows what was done, and not what Git wants by now.
func TestReplicasFollowTheRecord(t *testing.T) {
	set := &appsv1.StatefulSet{}
	set.Spec.Replicas = new(int32(7))
	restoring, founded, highest, coming := NewRecord("t"), NewRecord("t"), formedRecord(), formedRecord()
	restoring.Recovering = &RecoveringRecord{}
	founded.Founders = 1
	highest.Members["orders-4"] = "a4"
	lost := formedRecord()
	lost.Recovering = &RecoveringRecord{}
	coming.Joining = &JoiningRecord{Member: "orders-3"}
	for name, c := range map[string]struct {
		record Record
		set    *appsv1.StatefulSet
		want   int32
	}{
		"a restore before there is a StatefulSet": {restoring, nil, 0},
		"a restore that goes on":                  {restoring, set, 7},
		"a new cluster":                           {NewRecord("t"), nil, 3},
		"a new cluster that was begun smaller":    {founded, set, 1},
		"a member that comes":                     {coming, set, 7},
		"a member that comes, without a set":      {coming, nil, 3},
		"a cluster at rest":                       {formedRecord(), set, 3},
		"a gap among the members":                 {highest, set, 5},
		"a lost cluster without a StatefulSet":    {lost, nil, 3},
	} {
		if got := podCount(c.record, clustertest.Orders(), c.set); got != c.want {
			t.Errorf("%s: %d pods, want %d", name, got, c.want)
		}
	}
}
