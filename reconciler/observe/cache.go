package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/slim"
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

// Cache holds quorate's objects, kept up to date by watches, of each namespace for itself
// where quorate works in some only.
type Cache struct {
	// parts by namespace; one by "" for all of them.
	parts map[string]*part
	// sharing is of the objects of all parts.
	sharing slim.Sharing
}

// part is what is watched in one namespace.
type part struct {
	namespace string
	factory   informers.SharedInformerFactory
	records, sets, services, budgets, secrets, pods,
	claims, revisions toolscache.SharedIndexInformer
	// failure is why the last list or watch has failed, nil for none.
	failure atomic.Pointer[error]
}

// NewCache prepares watches for objects that carry quorate's label.
func NewCache(client kubernetes.Interface, namespaces kube.Namespaces) *Cache {
	c := &Cache{parts: map[string]*part{}}
	for namespace := range namespaces.All() {
		c.parts[namespace] = newPart(client, namespace)
	}
	return c
}

func newPart(client kubernetes.Interface, namespace string) *part {
	labelled := func(o *metav1.ListOptions) { o.LabelSelector = naming.LabelCluster }
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(labelled))
	return &part{
		namespace: namespace, factory: f,
		records: f.Core().V1().ConfigMaps().Informer(), sets: f.Apps().V1().StatefulSets().Informer(),
		services: f.Core().V1().Services().Informer(), budgets: f.Policy().V1().PodDisruptionBudgets().Informer(),
		secrets: f.Core().V1().Secrets().Informer(), pods: f.Core().V1().Pods().Informer(),
		claims: f.Core().V1().PersistentVolumeClaims().Informer(), revisions: f.Apps().V1().ControllerRevisions().Informer(),
	}
}

func (p *part) informers() []toolscache.SharedIndexInformer {
	return []toolscache.SharedIndexInformer{
		p.records, p.sets, p.services, p.budgets, p.secrets, p.pods, p.claims, p.revisions,
	}
}

// Start fills the caches and tells changed of every later change, by the key of
// the cluster that it belongs to. A single namespace that cannot be read is not waited for:
// its clusters are unknown until it can.
func (c *Cache) Start(ctx context.Context, changed func(key string)) error {
	for _, p := range c.parts {
		if err := p.start(ctx, changed, &c.sharing); err != nil {
			return err
		}
	}
	return kube.AwaitFilled(ctx, c.settled)
}

// settled reports whether each part is filled, or is known to be refused.
func (c *Cache) settled() bool {
	for _, p := range c.parts {
		if !p.filled() && (p.namespace == metav1.NamespaceAll || p.failure.Load() == nil) {
			return false
		}
	}
	return true
}

func (p *part) start(ctx context.Context, changed func(key string), sharing *slim.Sharing) error {
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { notify(o, changed) },
		UpdateFunc: func(_, o any) { notify(o, changed) },
		DeleteFunc: func(o any) { notify(o, changed) },
	}
	transforms := map[toolscache.SharedIndexInformer]toolscache.TransformFunc{
		p.records: slim.Record, p.secrets: slim.Secret, p.pods: slim.Pod, p.claims: slim.Claim, p.revisions: slim.Revision,
	}
	for _, informer := range p.informers() {
		if err := informer.SetTransform(sharing.After(transforms[informer])); err != nil {
			return err
		}
		if err := informer.AddIndexers(toolscache.Indexers{byCluster: clusterKeys}); err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
		if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
			p.failure.Store(&err)
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		}); err != nil {
			return err
		}
	}
	p.factory.Start(ctx.Done())
	return nil
}

// filled reports whether the first list of everything is complete.
func (p *part) filled() bool {
	return !slices.ContainsFunc(p.informers(), func(i toolscache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// Shutdown waits for the watches to end, whose context has.
func (c *Cache) Shutdown() {
	for _, p := range c.parts {
		p.factory.Shutdown()
	}
}

// ErrUnread says that nothing is known of the objects of a namespace.
var ErrUnread = errors.New("its namespace has not been read")

// in is the part with a namespace. The error is ErrUnread while it is not filled.
func (c *Cache) in(namespace string) (*part, error) {
	p := c.parts[metav1.NamespaceAll]
	if p == nil {
		p = c.parts[namespace]
	}
	switch {
	case p == nil:
		return nil, fmt.Errorf("%w: --namespaces does not name %s", ErrUnread, namespace)
	case p.filled():
		return p, nil
	}
	err := errors.New("the first list is not complete")
	if failure := p.failure.Load(); failure != nil {
		err = *failure
	}
	return nil, fmt.Errorf("%w: %w; quorate needs its role in namespace %s, by a RoleBinding", ErrUnread, err, namespace)
}

// Read reports whether the objects of a namespace are known; the error is ErrUnread.
func (c *Cache) Read(namespace string) error {
	_, err := c.in(namespace)
	return err
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
	p, err := c.in(cluster.Metadata.Namespace)
	if err != nil {
		return liveCluster{}, err
	}
	key := cluster.Key()
	records, err1 := listOf[*corev1.ConfigMap](p.records, key)
	sets, err2 := listOf[*appsv1.StatefulSet](p.sets, key)
	services, err3 := listOf[*corev1.Service](p.services, key)
	budgets, err4 := listOf[*policyv1.PodDisruptionBudget](p.budgets, key)
	secrets, err5 := listOf[*corev1.Secret](p.secrets, key)
	pods, err6 := listOf[*corev1.Pod](p.pods, key)
	claims, err7 := listOf[*corev1.PersistentVolumeClaim](p.claims, key)
	revisions, err8 := listOf[*appsv1.ControllerRevision](p.revisions, key)
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

// cachedOf are the cached objects of a cluster as far as they are known.
func cachedOf[T any](c *Cache, key string, of func(*part) toolscache.SharedIndexInformer) []T {
	namespace, _, _ := strings.Cut(key, "/")
	p, err := c.in(namespace)
	if err != nil {
		return nil
	}
	list, _ := listOf[T](of(p), key) // the index is made before the first list
	return list
}

// Record is the record of a cluster, nil where there is none.
func (c *Cache) Record(key string) *corev1.ConfigMap {
	for _, cm := range cachedOf[*corev1.ConfigMap](c, key, func(p *part) toolscache.SharedIndexInformer { return p.records }) {
		if slim.IsRecord(cm) {
			return cm
		}
	}
	return nil
}

// Set is the StatefulSet of a cluster, nil where there is none.
func (c *Cache) Set(key string) *appsv1.StatefulSet {
	for _, set := range cachedOf[*appsv1.StatefulSet](c, key, func(p *part) toolscache.SharedIndexInformer { return p.sets }) {
		if set.Name == set.Labels[naming.LabelCluster] {
			return set
		}
	}
	return nil
}

// Records are the records of all clusters.
func (c *Cache) Records() []*corev1.ConfigMap {
	var all []*corev1.ConfigMap
	for _, p := range c.parts {
		for _, o := range p.records.GetStore().List() {
			if cm, ok := o.(*corev1.ConfigMap); ok && slim.IsRecord(cm) {
				all = append(all, cm)
			}
		}
	}
	return all
}

// Subject is what an Event about a cluster is about: its StatefulSet, or its record
// while there is none; nil for nothing.
func (c *Cache) Subject(key string) runtime.Object {
	if set := c.Set(key); set != nil {
		return set
	}
	if cm := c.Record(key); cm != nil {
		return cm
	}
	return nil
}
