package statuses

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Mirror has what other processes of this quorate have written of their objects, for the one
// that tells of all. It decides nothing.
type Mirror struct {
	Kube kubernetes.Interface
	// Namespaces are those that may be read; none for all.
	Namespaces kube.Namespaces
	// By is which quorate writes, as ByOf makes it.
	By string

	mu    sync.Mutex
	known map[string]told
	// read reports whether all that was written when Run began is known.
	read bool
}

// told is a status, and when it was written.
type told struct {
	status schema.Status
	at     time.Time
}

// Run watches the ConfigMaps until ctx ends, and then forgets them.
func (m *Mirror) Run(ctx context.Context) error {
	m.begin(map[string]told{})
	defer m.begin(nil)
	var synced []toolscache.InformerSynced
	selected := func(o *metav1.ListOptions) {
		o.LabelSelector = naming.LabelStatus + "," + naming.LabelStatusBy + "=" + m.By
	}
	for namespace := range m.Namespaces.All() {
		f := informers.NewSharedInformerFactoryWithOptions(m.Kube, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(selected))
		handler, err := f.Core().V1().ConfigMaps().Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    m.put,
			UpdateFunc: func(_, o any) { m.put(o) },
			DeleteFunc: m.remove,
		})
		if err != nil {
			return fmt.Errorf("watch the statuses that others write: %w", err)
		}
		f.Start(ctx.Done())
		defer f.Shutdown()
		synced = append(synced, handler.HasSynced)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		m.mu.Lock()
		m.read = true
		m.mu.Unlock()
	}
	<-ctx.Done()
	return nil
}

func (m *Mirror) begin(known map[string]told) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.read = known, false
}

// Read reports whether what Get does not know is not written.
func (m *Mirror) Read() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read
}

// put notes what a ConfigMap says. Of one that cannot be read nothing is known.
func (m *Mirror) put(o any) {
	cm, is := o.(*corev1.ConfigMap)
	if !is {
		return
	}
	s, at, err := Read(cm)
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.known, cm.Namespace+"/"+cm.Name); err == nil && m.known != nil {
		m.known[cm.Namespace+"/"+cm.Name] = told{s, at}
	}
}

func (m *Mirror) remove(o any) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}

// Get returns what is written of the object of a status, and when it was written; told is
// false where nothing is, and s is the given one.
func (m *Mirror) Get(unseen schema.Status) (s schema.Status, at time.Time, told bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, told := m.known[unseen.Metadata.Namespace+"/"+naming.Status(unseen.Kind, unseen.Metadata.Name)]
	if !told {
		return unseen, time.Time{}, false
	}
	return plain(w.status), w.at, true
}
