package observe

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

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
