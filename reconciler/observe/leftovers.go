package observe

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// describeLeftovers lists the Secrets that quorate has made, where Git wants the
// cluster deleted: nothing else asks for them.
func (v *View) describeLeftovers(secrets map[string]*corev1.Secret) {
	if v.Cluster.Spec.State != schema.StateDeleted {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if naming.Owns(secrets[name], v.Cluster.EtcdCluster) {
			v.Observed.Leftovers = append(v.Observed.Leftovers, state.Object{Kind: "Secret", Name: name, State: state.ObjectInSync})
		}
	}
}

// ScaledBy is the field manager other than quorate that set the StatefulSet's number of
// replicas last, or "", and when; zero where Kubernetes does not tell.
func ScaledBy(set *appsv1.StatefulSet) (manager string, at time.Time) {
	replicas := fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas"))
	own, others, err := drift.SplitManagers(set.ManagedFields)
	if err != nil || own.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
		return "", time.Time{}
	}
	return drift.LastHolder(others, replicas)
}
