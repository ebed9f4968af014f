package observe

import (
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/state"
)

// Observer looks at clusters.
type Observer struct {
	Kube    kubernetes.Interface
	Cache   *Cache
	Jobs    jobs.Client
	Members etcd.Members
	Fights  *drift.Fights
	Options Options
	Now     func() time.Time

	drifts drift.Cache
	// rendered holds the last rendering by cluster.
	rendered sync.Map
	// checked holds the last finding about certificates by cluster.
	checked sync.Map
}

// Options are what the daemon adds to each cluster's file.
type Options struct {
	Render    manifests.Options
	BackupURL string
	Owner     state.Owner
}

// Forget drops what is kept to save work.
func (o *Observer) Forget(key string) {
	o.Members.Forget(key)
	o.drifts.Forget(key)
	o.Fights.Forget(key)
	o.rendered.Delete(key)
	o.checked.Delete(key)
}
