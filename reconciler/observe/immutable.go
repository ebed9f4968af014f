package observe

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Immutable lists what the file asks for and what is there cannot take, but for volumes: those are compared by the
// planner, each by itself.
func Immutable(set *appsv1.StatefulSet, services map[string]*corev1.Service, c schema.EtcdCluster) []state.Change {
	return append(fromCerts(certs.TLSChanges(set.Spec.Template.Spec.Volumes, c)), familyChanges(services, c)...)
}

// fromCerts are the changes that the certificates stand against.
func fromCerts(found []certs.Change) []state.Change {
	var changes []state.Change
	for _, c := range found {
		changes = append(changes, state.Change(c))
	}
	return changes
}

// familyChanges lists a change of the first address family, which Kubernetes
// does not allow: it is that of the Service's address.
func familyChanges(services map[string]*corev1.Service, c schema.EtcdCluster) []state.Change {
	wanted := c.Spec.Network.IPFamilies
	for _, name := range []string{naming.ClientService(c.Metadata.Name), naming.HeadlessService(c.Metadata.Name)} {
		service := services[name]
		if len(wanted) == 0 || service == nil || len(service.Spec.IPFamilies) == 0 || service.Spec.IPFamilies[0] == wanted[0] {
			continue
		}
		return []state.Change{{Field: state.FieldFamily, Text: fmt.Sprintf("spec.network.ipFamilies[0] (%s to %s)", service.Spec.IPFamilies[0], wanted[0])}}
	}
	return nil
}
