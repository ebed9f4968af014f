package observe

import (
	"cmp"
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
)

// liveCluster is what Kubernetes has of one cluster.
type liveCluster struct {
	record    *corev1.ConfigMap
	set       *appsv1.StatefulSet
	services  map[string]*corev1.Service
	budget    *policyv1.PodDisruptionBudget
	secrets   map[string]*corev1.Secret
	pods      []*corev1.Pod
	claims    []*corev1.PersistentVolumeClaim
	revisions map[string]*appsv1.ControllerRevision
}

// claim is the volume claim of a name, nil where there is none.
func (l liveCluster) claim(name string) *corev1.PersistentVolumeClaim {
	for _, claim := range l.claims {
		if claim.Name == name {
			return claim
		}
	}
	return nil
}

// byCluster indexes every cached object by the cluster that its label names.
const byCluster = "cluster"

// Cache holds quorate's objects, kept up to date by watches.
type Cache struct {
	Factory informers.SharedInformerFactory
	records, sets, services, budgets, secrets, pods,
	claims, revisions toolscache.SharedIndexInformer
}

// NewCache prepares watches for objects that carry quorate's label.
func NewCache(kube kubernetes.Interface) *Cache {
	f := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = naming.LabelCluster
	}))
	return &Cache{
		Factory: f,
		records: f.Core().V1().ConfigMaps().Informer(), sets: f.Apps().V1().StatefulSets().Informer(),
		services: f.Core().V1().Services().Informer(), budgets: f.Policy().V1().PodDisruptionBudgets().Informer(),
		secrets: f.Core().V1().Secrets().Informer(), pods: f.Core().V1().Pods().Informer(),
		claims: f.Core().V1().PersistentVolumeClaims().Informer(), revisions: f.Apps().V1().ControllerRevisions().Informer(),
	}
}

func (c *Cache) informers() []toolscache.SharedIndexInformer {
	return []toolscache.SharedIndexInformer{
		c.records, c.sets, c.services, c.budgets, c.secrets, c.pods, c.claims, c.revisions,
	}
}

// Start fills the caches and tells changed of every later change, by the key of
// the cluster that it belongs to.
func (c *Cache) Start(ctx context.Context, changed func(key string)) error {
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { notify(o, changed) },
		UpdateFunc: func(_, o any) { notify(o, changed) },
		DeleteFunc: func(o any) { notify(o, changed) },
	}
	for _, informer := range c.informers() {
		if err := informer.AddIndexers(toolscache.Indexers{byCluster: clusterKeys}); err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	c.Factory.Start(ctx.Done())
	for _, synced := range c.Factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.New("the watches ended before the first list was complete")
		}
	}
	return nil
}

// notify calls changed with the key of the object's cluster.
func notify(o any, changed func(string)) {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	keys, _ := clusterKeys(o)
	for _, key := range keys {
		changed(key)
	}
}

// clusterKeys is the index function: namespace/name of the object's cluster.
func clusterKeys(o any) ([]string, error) {
	object, ok := o.(metav1.Object)
	if !ok || object.GetLabels()[naming.LabelCluster] == "" {
		return nil, nil
	}
	return []string{object.GetNamespace() + "/" + object.GetLabels()[naming.LabelCluster]}, nil
}

// listOf returns the cached objects of one cluster.
func listOf[T any](informer toolscache.SharedIndexInformer, key string) ([]T, error) {
	objects, err := informer.GetIndexer().ByIndex(byCluster, key)
	if err != nil {
		return nil, err
	}
	list := make([]T, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(T); ok {
			list = append(list, t)
		}
	}
	return list, nil
}

// named returns the objects by name.
func named[T metav1.Object](list []T) map[string]T {
	m := make(map[string]T, len(list))
	for _, o := range list {
		m[o.GetName()] = o
	}
	return m
}

// read returns what the caches have of one cluster.
func (c *Cache) read(cluster desired.Cluster) (liveCluster, error) {
	key := cluster.Key()
	records, err1 := listOf[*corev1.ConfigMap](c.records, key)
	sets, err2 := listOf[*appsv1.StatefulSet](c.sets, key)
	services, err3 := listOf[*corev1.Service](c.services, key)
	budgets, err4 := listOf[*policyv1.PodDisruptionBudget](c.budgets, key)
	secrets, err5 := listOf[*corev1.Secret](c.secrets, key)
	pods, err6 := listOf[*corev1.Pod](c.pods, key)
	claims, err7 := listOf[*corev1.PersistentVolumeClaim](c.claims, key)
	revisions, err8 := listOf[*appsv1.ControllerRevision](c.revisions, key)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return liveCluster{}, err
	}
	name := cluster.Metadata.Name
	pods = memberPods(cluster, pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Compare(naming.Ordinal(a.Name), naming.Ordinal(b.Name))
	})
	return liveCluster{
		record: named(records)[naming.Record(cluster.Metadata.Name)], set: named(sets)[name], budget: named(budgets)[name],
		services: named(services), secrets: named(secrets), pods: pods, claims: claims, revisions: named(revisions),
	}, nil
}

// memberPods leaves out whatever has the labels of a member's pod and another name:
// kubectl debug and tools for backups copy labels.
func memberPods(c desired.Cluster, pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !naming.IsMember(c.Metadata.Name, p.Name) })
}

// Record is the record of a cluster, nil where there is none.
func (c *Cache) Record(key string) *corev1.ConfigMap {
	// The index is made before the first list: an error is a record not seen.
	records, _ := listOf[*corev1.ConfigMap](c.records, key)
	for _, cm := range records {
		if cm.Name == naming.Record(cm.Labels[naming.LabelCluster]) {
			return cm
		}
	}
	return nil
}

// Set is the StatefulSet of a cluster, nil where there is none.
func (c *Cache) Set(key string) *appsv1.StatefulSet {
	sets, _ := listOf[*appsv1.StatefulSet](c.sets, key) // as in Record
	for _, set := range sets {
		if set.Name == set.Labels[naming.LabelCluster] {
			return set
		}
	}
	return nil
}

// Records are the ConfigMaps of all clusters.
func (c *Cache) Records() []*corev1.ConfigMap {
	var all []*corev1.ConfigMap
	for _, o := range c.records.GetStore().List() {
		if cm, ok := o.(*corev1.ConfigMap); ok {
			all = append(all, cm)
		}
	}
	return all
}

// Subject is what an Event about a cluster is about: its StatefulSet, or its record
// while there is none; nil for nothing.
func (c *Cache) Subject(key string) runtime.Object {
	if sets, err := listOf[*appsv1.StatefulSet](c.sets, key); err == nil && len(sets) > 0 {
		return sets[0]
	}
	if cm := c.Record(key); cm != nil {
		return cm
	}
	return nil
}
