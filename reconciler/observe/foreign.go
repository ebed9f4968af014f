package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
)

// findForeign asks the API server for objects of the cluster's names: what
// others made is not in the caches, and must not be taken over.
func (o *Observer) findForeign(ctx context.Context, c desired.Cluster) (foreign []state.Object, err error) {
	ns, name := c.Metadata.Namespace, c.Metadata.Name
	type lookup struct {
		kind, name string
		get        func() (metav1.Object, error)
	}
	get := metav1.GetOptions{}
	lookups := []lookup{
		{"StatefulSet", name, func() (metav1.Object, error) { return o.Kube.AppsV1().StatefulSets(ns).Get(ctx, name, get) }},
		{"ConfigMap", naming.Record(name), func() (metav1.Object, error) {
			return o.Kube.CoreV1().ConfigMaps(ns).Get(ctx, naming.Record(c.Metadata.Name), get)
		}},
		{"PodDisruptionBudget", name, func() (metav1.Object, error) {
			return o.Kube.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, name, get)
		}},
	}
	for _, service := range []string{naming.HeadlessService(c.Metadata.Name), naming.ClientService(c.Metadata.Name)} {
		lookups = append(lookups, lookup{"Service", service, func() (metav1.Object, error) { return o.Kube.CoreV1().Services(ns).Get(ctx, service, get) }})
	}
	for i := range int(c.Spec.Replicas) {
		claim := naming.Claim("", naming.Member(c.Metadata.Name, int32(i)))
		lookups = append(lookups, lookup{"PersistentVolumeClaim", claim, func() (metav1.Object, error) {
			return o.Kube.CoreV1().PersistentVolumeClaims(ns).Get(ctx, claim, get)
		}})
	}
	for _, l := range lookups {
		found, err := l.get()
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("list %s %s: %w", l.kind, l.name, err)
		case !naming.Owns(found, c.EtcdCluster):
			foreign = append(foreign, state.Object{Kind: l.kind, Name: l.name, State: state.ObjectForeign, Detail: "it carries none of quorate's labels for this cluster"})
		}
	}
	return foreign, nil
}
