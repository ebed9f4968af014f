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

// Lease lets one of several daemons act.
type Lease struct {
	// Elect is false for a daemon that acts without a lease.
	Elect bool
	// Namespace of the lease.
	Namespace string
	// Instance is the value of --instance. Each instance has its own lease: the owner of
	// a cluster is in the cluster's record.
	Instance string
}

// name of the lease.
func (l *Lease) name() string {
	if l.Instance == "" || l.Instance == DefaultInstance {
		return "quorate"
	}
	return "quorate-" + l.Instance
}

// DefaultInstance is the instance where there is only one.
const DefaultInstance = "default"

// The times of the lease: another daemon takes over leaseDuration after the last renewal,
// and this one stops acting leaseRenew after it.
const (
	leaseDuration = 15 * time.Second
	leaseRenew    = 10 * time.Second
	leaseRetry    = 2 * time.Second
)

// errLeaseLost ends the daemon; its successor continues from what it observes.
var errLeaseLost = errors.New("the lease is lost: another quorate may be acting; this one exits, and waits for the lease when it is restarted")

// hold calls act once this process holds the lease, and returns when act has returned.
// held is an error if the lease is no longer held. hold returns nil only if ctx ended.
func (l *Lease) hold(ctx context.Context, kube kubernetes.Interface, log *slog.Logger, act func(ctx context.Context, held func() error) error) error {
	if !l.Elect {
		return act(ctx, func() error { return nil })
	}
	leading, end := context.WithCancel(ctx)
	defer end()
	var acting atomic.Bool
	result := make(chan error, 1)
	started := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock(kube), ReleaseOnCancel: true, Name: "quorate",
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
			OnNewLeader:      func(holder string) { log.Info("lease holder changed", "holder", holder) },
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

// lock returns the Lease object. Its holder is the name of the pod, or else a unique one.
func (l *Lease) lock(kube kubernetes.Interface) resourcelock.Interface {
	identity := os.Getenv("POD_NAME")
	if identity == "" {
		host, _ := os.Hostname()
		identity = host + "_" + string(uuid.NewUUID())
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: l.name(), Namespace: l.Namespace},
		Client:     kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}
