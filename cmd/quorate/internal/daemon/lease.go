package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lease says who may act when several daemons run.
type Lease struct {
	// Elect says that this daemon acts only while it holds the lease.
	Elect bool
	// Namespace of the lease.
	Namespace string
	// Instance is the daemon's --instance. Each instance has a lease of its own:
	// which clusters are whose stands in their records.
	Instance string
}

// name of the lease.
func (f *Lease) name() string {
	if f.Instance == "" || f.Instance == DefaultInstance {
		return "quorate"
	}
	return "quorate-" + f.Instance
}

// DefaultInstance is the one quorate that follows a path, where there is only one.
const DefaultInstance = "default"

// The times of the lease: another daemon takes over that long after the last
// renewal, and this one has stopped acting before.
const (
	leaseDuration = 15 * time.Second
	leaseRenew    = 10 * time.Second
	leaseRetry    = 2 * time.Second
)

// errLeaseLost ends the daemon; its successor goes on from what it observes.
var errLeaseLost = errors.New("the lease is lost: another quorate may be acting; this one ends and waits for its turn when it is started again")

// hold calls act while this process holds the lease, and returns when act has
// returned. held tells act whether it still does. Without an error, it was ctx
// that ended.
func (f *Lease) hold(ctx context.Context, kube kubernetes.Interface, log *slog.Logger, act func(ctx context.Context, held func() error) error) error {
	if !f.Elect {
		return act(ctx, func() error { return nil })
	}
	leading, end := context.WithCancel(ctx)
	defer end()
	var acting atomic.Bool
	result := make(chan error, 1)
	started := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: f.lock(kube), ReleaseOnCancel: true, Name: "quorate",
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenew, RetryPeriod: leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				close(started)
				acting.Store(true)
				defer end()
				result <- act(ctx, func() error {
					if !acting.Load() || ctx.Err() != nil {
						return errLeaseLost
					}
					return nil
				})
			},
			OnStoppedLeading: func() { acting.Store(false) },
			OnNewLeader:      func(who string) { log.Info("lease", "holder", who) },
		},
	})
	if err != nil {
		return fmt.Errorf("prepare the lease: %w", err)
	}
	elector.Run(leading)
	select {
	case <-started:
		err = <-result
	default:
	}
	if err == nil && ctx.Err() == nil {
		return errLeaseLost
	}
	return err
}

// lock is the Lease object. The holder's name is the pod's, or one that no other
// process has.
func (f *Lease) lock(kube kubernetes.Interface) resourcelock.Interface {
	identity := os.Getenv("POD_NAME")
	if identity == "" {
		host, _ := os.Hostname()
		identity = host + "_" + string(uuid.NewUUID())
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: f.name(), Namespace: f.Namespace},
		Client:     kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}
