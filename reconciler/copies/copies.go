// Package copies knows the Secrets with certificates of applications that quorate keeps in other
// namespaces than those of their clusters: by watches of their label, so that nothing is asked at rest.
package copies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/slim"
	"github.com/quorate/quorate/schema"
)

// byCluster indexes the copies by the cluster that their labels name.
const byCluster = "cluster"

// Cache holds the copies, of each namespace for itself where quorate works in some only. A nil Cache
// knows of none.
type Cache struct {
	// parts by namespace; one by "" for all of them.
	parts map[string]*part
}

// part is what is watched in one namespace.
type part struct {
	factory informers.SharedInformerFactory
	secrets toolscache.SharedIndexInformer
	// failure is why the last list or watch has failed, nil for none.
	failure atomic.Pointer[error]
}

// New prepares watches for Secrets that carry the label of copies.
func New(client kubernetes.Interface, namespaces kube.Namespaces) *Cache {
	c := &Cache{parts: map[string]*part{}}
	for namespace := range namespaces.All() {
		f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = naming.LabelClientOf }))
		c.parts[namespace] = &part{factory: f, secrets: f.Core().V1().Secrets().Informer()}
	}
	return c
}

// Start fills the caches and tells changed of every later change, by the key of the cluster whose
// copy it is. A single namespace that cannot be read is not waited for.
func (c *Cache) Start(ctx context.Context, changed func(key string)) error {
	for _, p := range c.parts {
		if err := p.start(ctx, changed); err != nil {
			return err
		}
	}
	return kube.AwaitFilled(ctx, c.settled)
}

// settled reports whether each part is filled, or is known to be refused.
func (c *Cache) settled() bool {
	for namespace, p := range c.parts {
		if !p.secrets.HasSynced() && (namespace == metav1.NamespaceAll || p.failure.Load() == nil) {
			return false
		}
	}
	return true
}

func (p *part) start(ctx context.Context, changed func(key string)) error {
	told := func(o any) {
		if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = tombstone.Obj
		}
		keys, _ := clusterKeys(o)
		for _, key := range keys {
			changed(key)
		}
	}
	_, err := p.secrets.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: told, UpdateFunc: func(_, o any) { told(o) }, DeleteFunc: told})
	err = errors.Join(err, p.secrets.SetTransform(slim.Copy), p.secrets.AddIndexers(toolscache.Indexers{byCluster: clusterKeys}),
		p.secrets.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
			p.failure.Store(&err)
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		}))
	if err == nil {
		p.factory.Start(ctx.Done())
	}
	return err
}

// clusterKeys is the index function: namespace/name of the cluster whose copy it is.
func clusterKeys(o any) ([]string, error) {
	s, ok := o.(*corev1.Secret)
	if !ok || s.Labels[naming.LabelClientOf] == "" {
		return nil, nil
	}
	return []string{s.Labels[naming.LabelClientIn] + "/" + s.Labels[naming.LabelClientOf]}, nil
}

// Of are the copies that quorate has made for a cluster, as far as they are known.
func (c *Cache) Of(cluster schema.EtcdCluster) (live []*corev1.Secret) {
	if c == nil {
		return nil
	}
	for _, p := range c.parts {
		objects, _ := p.secrets.GetIndexer().ByIndex(byCluster, cluster.Metadata.Namespace+"/"+cluster.Metadata.Name) // the index is made before the first list
		for _, o := range objects {
			if s, ok := o.(*corev1.Secret); ok && certs.IsCopy(cluster, s) {
				live = append(live, s)
			}
		}
	}
	slices.SortFunc(live, func(a, b *corev1.Secret) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return live
}

// Closed is why quorate does not work in a namespace, "" where it does.
func (c *Cache) Closed(namespace string) string {
	if c == nil {
		return ""
	}
	p := c.parts[metav1.NamespaceAll]
	if p == nil {
		p = c.parts[namespace]
	}
	switch {
	case p == nil:
		return "quorate does not work in that namespace: --namespaces does not name it"
	case p.secrets.HasSynced():
		return ""
	}
	if failure := p.failure.Load(); failure != nil {
		return fmt.Sprintf("that namespace cannot be read: %v", *failure)
	}
	return "that namespace has not been read yet"
}

// Shutdown waits for the watches to end, whose context has.
func (c *Cache) Shutdown() {
	for _, p := range c.parts {
		p.factory.Shutdown()
	}
}
