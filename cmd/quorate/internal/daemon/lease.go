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

var (
	// errLeaseLost ends the daemon; its successor continues from what it observes.
	errLeaseLost = errors.New("the lease is lost: another quorate may be acting; this one exits, and waits for the lease when it is restarted")
	// errLeaseOld stops each change until the lease is renewed, or lost.
	errLeaseOld = fmt.Errorf("the lease was not renewed for %s: another quorate may be acting, and this one changes nothing until it has renewed it", leaseRenew)
)

// claim is one daemon's claim to a lease.
type claim struct {
	lease   Lease
	lock    *timedLock
	log     *slog.Logger
	phase   atomic.Int32
	stopped atomic.Bool
}

// The phases of a claim. One that ends before it acts never does.
const (
	waiting int32 = iota
	acting
	ended
)

func newClaim(lease Lease, kube kubernetes.Interface, log *slog.Logger) *claim {
	return &claim{lease: lease, lock: &timedLock{Interface: lease.lock(kube)}, log: log}
}

// held returns an error unless this daemon may change something now. By the lease it may
// while it acts and its last renewal was sent less than leaseRenew ago: that holds as well
// for a process that was paused, and does not know yet that another has taken over.
func (c *claim) held() error {
	switch {
	case !c.lease.Elect:
		return nil
	case c.phase.Load() != acting || c.stopped.Load():
		return errLeaseLost
	case c.lock.age() >= leaseRenew:
		return errLeaseOld
	}
	return nil
}

// run calls act once this process holds the lease, and returns when act has returned. The
// lease is given back only then, so that no successor begins beside an action that still
// ends. run returns nil only if ctx ended.
func (c *claim) run(ctx context.Context, act func(ctx context.Context) error) error {
	if !c.lease.Elect {
		return act(ctx)
	}
	electing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	c.lock.taken = func() {
		c.stopped.Store(true)
		end()
	}
	defer context.AfterFunc(ctx, func() {
		if c.phase.CompareAndSwap(waiting, ended) {
			end()
		}
	})()
	result := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.lock, ReleaseOnCancel: true, Name: "quorate",
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenew, RetryPeriod: leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				if !c.phase.CompareAndSwap(waiting, acting) {
					return
				}
				defer end()
				result <- c.act(ctx, leading, act)
			},
			OnStoppedLeading: func() { c.stopped.Store(true) },
			OnNewLeader:      func(holder string) { c.log.Info("lease holder changed", "holder", holder) },
		},
	})
	if err != nil {
		return fmt.Errorf("prepare the lease: %w", err)
	}
	elector.Run(electing)
	if c.phase.Swap(ended) == acting {
		err = <-result
	}
	if err == nil && ctx.Err() == nil {
		return errLeaseLost
	}
	return err
}

// act calls act until ctx ends or the lease is lost.
func (c *claim) act(ctx, leading context.Context, act func(ctx context.Context) error) error {
	leading, stop := context.WithCancel(leading)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	defer context.AfterFunc(leading, func() { c.stopped.Store(true) })()
	return act(leading)
}

// timedLock is a lock that knows when it was renewed.
type timedLock struct {
	resourcelock.Interface
	renewed atomic.Pointer[time.Time]
	// taken is called where another has the lock that was held.
	taken func()
}

// Get implements resourcelock.Interface. By itself the elector would try for leaseRenew to get
// back what another has.
func (l *timedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil && l.renewed.Load() != nil && r.HolderIdentity != "" && r.HolderIdentity != l.Identity() {
		l.taken()
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (l *timedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.note(func() error { return l.Interface.Create(ctx, r) })
}

// Update implements resourcelock.Interface.
func (l *timedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.note(func() error { return l.Interface.Update(ctx, r) })
}

// note counts from before the request was sent: the others count from when they saw it,
// which may be long before its answer arrives here.
func (l *timedLock) note(write func() error) error {
	sent := time.Now()
	err := write()
	if err == nil {
		l.renewed.Store(&sent)
	}
	return err
}

// age is how long ago the lock was last renewed, by the clock that is further ahead: the
// monotonic one stands still while a machine is suspended.
func (l *timedLock) age() time.Duration {
	renewed := l.renewed.Load()
	if renewed == nil {
		return leaseDuration
	}
	now := time.Now()
	return max(now.Sub(*renewed), now.Round(0).Sub(renewed.Round(0)))
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
