package execute

import (
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/slots"
	"github.com/quorate/quorate/reconciler/stores"
)

// Executor executes actions.
type Executor struct {
	Kube    kubernetes.Interface
	Records record.Store
	Stores  stores.Stores
	Slots   *slots.Slots
	Jobs    jobs.Client
	Members Members
	// Fights is told what the API server makes of what is applied.
	Fights *drift.Fights
	// Lease returns an error unless something of the cluster, by namespace/name, may be changed.
	Lease func(cluster string) error
	Now   func() time.Time
	// ServerNow is the clock of the API server, for what is compared with the times that it notes.
	ServerNow func() time.Time
	Options   Options
}

// Options are the daemon's settings.
type Options struct {
	GuardImage, ClusterDomain, BackupURL string
}
