package observe

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
)

// Standing is what Kubernetes shows of a cluster, nil for what is not there.
type Standing struct {
	Record *corev1.ConfigMap
	Set    *appsv1.StatefulSet
}

// Standing reads the caches.
func (o *Observer) Standing(c desired.Cluster) (Standing, error) {
	records, err := listOf[*corev1.ConfigMap](o.Cache.records, c.Key())
	if err != nil {
		return Standing{}, err
	}
	sets, err := listOf[*appsv1.StatefulSet](o.Cache.sets, c.Key())
	if err != nil {
		return Standing{}, err
	}
	return Standing{named(records)[naming.Record(c.Metadata.Name)], named(sets)[c.Metadata.Name]}, nil
}

// Standings reads all clusters from the API server itself, by key.
func (o *Observer) Standings(ctx context.Context) (map[string]Standing, error) {
	all := metav1.ListOptions{LabelSelector: naming.LabelCluster}
	records, err := o.Kube.CoreV1().ConfigMaps("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	sets, err := o.Kube.AppsV1().StatefulSets("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	found := map[string]Standing{}
	for i := range records.Items {
		if name := records.Items[i].Labels[naming.LabelCluster]; records.Items[i].Name == naming.Record(name) {
			found[records.Items[i].Namespace+"/"+name] = Standing{Record: &records.Items[i]}
		}
	}
	for i := range sets.Items {
		if name := sets.Items[i].Labels[naming.LabelCluster]; sets.Items[i].Name == name {
			key := sets.Items[i].Namespace + "/" + name
			found[key] = Standing{found[key].Record, &sets.Items[i]}
		}
	}
	return found, nil
}
