package observe

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// moving reports whether the record speaks of members or volumes that come or go:
// then the number of pods is what the last step left.
func moving(r record.Record) bool {
	return r.Recovering != nil || r.Joining != nil || r.Leaving != nil || r.Replacing != "" || len(r.Retired) > 0 || r.Hibernated || r.Deleted
}

// podCount is how many pods there should be now, by what was done so far: Git may
// want another number already, but the steps that lead there go through etcd.
func podCount(r record.Record, c schema.EtcdCluster, set *appsv1.StatefulSet) int32 {
	switch {
	case !r.Formed() && r.Recovering != nil && set == nil:
		return 0 // of a restore: no member starts before there is data to start on
	case !r.Formed() && r.Recovering == nil:
		return int32(r.FoundersOf(c))
	case set != nil && moving(r):
		return Replicas(set)
	}
	highest := int32(0)
	for name := range r.Members {
		highest = max(highest, naming.Ordinal(name))
	}
	return highest + 1
}

// Disruptions is how many pods others may stop at once. While a voter comes
// or goes there may be one more or one less than the record lists.
func Disruptions(r record.Record, c schema.EtcdCluster) int32 {
	voters := len(r.Members)
	if !r.Formed() {
		voters = r.FoundersOf(c)
	}
	allowed := manifests.Disruptions(voters)
	if r.Leaving != nil {
		allowed = min(allowed, manifests.Disruptions(voters-1))
	}
	return allowed
}
