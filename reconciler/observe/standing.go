package observe

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/slim"
)

// Standing is what Kubernetes shows of a cluster, nil for what is not there.
type Standing struct {
	Record *corev1.ConfigMap
	Set    *appsv1.StatefulSet
}

// Standing reads the caches. The error is ErrUnread where they have nothing of the namespace.
func (o *Observer) Standing(c desired.Cluster) (Standing, error) {
	p, err := o.Cache.in(c.Metadata.Namespace)
	if err != nil {
		return Standing{}, err
	}
	records, err := listOf[*corev1.ConfigMap](p.records, c.Key())
	if err != nil {
		return Standing{}, err
	}
	sets, err := listOf[*appsv1.StatefulSet](p.sets, c.Key())
	if err != nil {
		return Standing{}, err
	}
	return Standing{named(records)[naming.Record(c.Metadata.Name)], named(sets)[c.Metadata.Name]}, nil
}

// Standings are those of all clusters, read from the API server itself.
type Standings struct {
	found map[string]Standing
	// refused are the namespaces that cannot be read, with the reason.
	refused map[string]error
}

// Of is that of one cluster, with the errors of Standing.
func (s Standings) Of(c desired.Cluster) (Standing, error) {
	return s.found[c.Key()], s.refused[c.Metadata.Namespace]
}

// Standings reads all clusters.
func (o *Observer) Standings(ctx context.Context) (Standings, error) {
	s := Standings{found: map[string]Standing{}, refused: map[string]error{}}
	for namespace := range o.Namespaces.All() {
		switch err := s.read(ctx, o.Kube, namespace); {
		case kube.Withheld(namespace, err):
			s.refused[namespace] = fmt.Errorf("%w: %w", ErrUnread, err)
		case err != nil:
			return s, err
		}
	}
	return s, nil
}

// read reads those of one namespace, or of all.
func (s Standings) read(ctx context.Context, client kubernetes.Interface, namespace string) error {
	labelled := metav1.ListOptions{LabelSelector: naming.LabelCluster}
	records, err := client.CoreV1().ConfigMaps(namespace).List(ctx, labelled)
	if err != nil {
		return err
	}
	sets, err := client.AppsV1().StatefulSets(namespace).List(ctx, labelled)
	if err != nil {
		return err
	}
	for i := range records.Items {
		if cm := &records.Items[i]; slim.IsRecord(cm) {
			s.found[cm.Namespace+"/"+cm.Labels[naming.LabelCluster]] = Standing{Record: cm}
		}
	}
	for i := range sets.Items {
		if name := sets.Items[i].Labels[naming.LabelCluster]; sets.Items[i].Name == name {
			key := sets.Items[i].Namespace + "/" + name
			s.found[key] = Standing{s.found[key].Record, &sets.Items[i]}
		}
	}
	return nil
}
