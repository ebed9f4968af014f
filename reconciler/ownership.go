package reconciler

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan"
)

// askForForeign asks the API server for objects of the cluster's names: what
// somebody else made is not in the caches, and must not be taken over.
func (r *Reconciler) askForForeign(ctx context.Context, c Cluster, live *liveCluster) error {
	ns, name := c.Metadata.Namespace, c.Metadata.Name
	type lookup struct {
		kind, name string
		get        func() (metav1.Object, error)
	}
	get := metav1.GetOptions{}
	lookups := []lookup{
		{"StatefulSet", name, func() (metav1.Object, error) { return r.kube.AppsV1().StatefulSets(ns).Get(ctx, name, get) }},
		{"ConfigMap", name + "-record", func() (metav1.Object, error) {
			return r.kube.CoreV1().ConfigMaps(ns).Get(ctx, RecordName(c.EtcdCluster), get)
		}},
		{"PodDisruptionBudget", name, func() (metav1.Object, error) {
			return r.kube.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, name, get)
		}},
	}
	for _, service := range []string{HeadlessServiceName(c.EtcdCluster), ClientServiceName(c.EtcdCluster)} {
		lookups = append(lookups, lookup{"Service", service, func() (metav1.Object, error) { return r.kube.CoreV1().Services(ns).Get(ctx, service, get) }})
	}
	for i := range int(c.Spec.Replicas) {
		claim := defaultClaimPrefix + "-" + MemberName(c.EtcdCluster, i)
		lookups = append(lookups, lookup{"PersistentVolumeClaim", claim, func() (metav1.Object, error) {
			return r.kube.CoreV1().PersistentVolumeClaims(ns).Get(ctx, claim, get)
		}})
	}
	for _, l := range lookups {
		found, err := l.get()
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("look for %s %s: %w", l.kind, l.name, err)
		case !ownedBy(found, name):
			live.foreign = append(live.foreign, plan.Object{Kind: l.kind, Name: l.name, State: plan.ObjectForeign, Detail: "it carries none of quorate's labels for this cluster"})
		}
	}
	return nil
}

// ownedBy says whether an object carries quorate's labels for the cluster.
func ownedBy(o metav1.Object, cluster string) bool {
	labels := o.GetLabels()
	return labels["app.kubernetes.io/managed-by"] == "quorate" && labels[LabelCluster] == cluster
}
