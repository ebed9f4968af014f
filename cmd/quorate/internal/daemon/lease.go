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
	// Shards is how many parts several daemons divide the clusters into; one daemon acts with
	// 1 or 0.
	Shards int
}

// divided reports whether several daemons divide the clusters.
func (l *Lease) divided() bool { return l.Elect && l.Shards > 1 }

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
	// errNotGivenBack keeps client-go from giving a lease back.
	errNotGivenBack = errors.New("the lease is left to expire: it is another's, or something is still done by it")
	// errLeaseOld stops each change until the lease is renewed, or lost.
	errLeaseOld = fmt.Errorf("the lease was not renewed for %s: another quorate may be acting, and this one changes nothing until it has renewed it", leaseRenew)
)

// claim is one daemon's claim to a lease.
type claim struct {
	lock *timedLock
	log  *slog.Logger
	// always is a claim without a lease.
	always bool
	// retry is the time between two tries to get the lease, and two renewals.
	retry   time.Duration
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
	c := claimTo(lease.lock(kube), log)
	c.always = !lease.Elect
	return c
}

// claimTo returns a claim to the lease of a lock.
func claimTo(lock resourcelock.Interface, log *slog.Logger) *claim {
	return &claim{lock: &timedLock{Interface: lock}, log: log, retry: leaseRetry}
}

// held returns an error unless this daemon may change something now. By the lease it may
// while it acts and its last renewal was sent less than leaseRenew ago: that holds as well
// for a process that was paused, and does not know yet that another has taken over.
func (c *claim) held() error {
	switch {
	case c.always:
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
	if c.always {
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
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenew, RetryPeriod: c.retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				if !c.phase.CompareAndSwap(waiting, acting) {
					c.lock.idle.Store(true)
					return
				}
				err := c.act(ctx, leading, act)
				c.lock.idle.Store(true)
				result <- err
				end()
			},
			OnStoppedLeading: func() { c.stopped.Store(true) },
			OnNewLeader: func(holder string) {
				c.log.Info("lease holder changed", "lease", c.lock.Describe(), "holder", holder)
			},
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

// timedLock is a lock that knows when it was renewed, and is given back only by the one that
// holds it, with nothing under way.
type timedLock struct {
	resourcelock.Interface
	renewed atomic.Pointer[time.Time]
	// taken is called where another has the lock that was held.
	taken func()
	// kept is a lock that several hold together, and that is never given back.
	kept bool
	// idle reports that nothing is done by the lease any more.
	idle atomic.Bool
	// holder is who held it when it was last read or written.
	holder string
}

// Get implements resourcelock.Interface. By itself the elector would try for leaseRenew to get
// back what another has.
func (l *timedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = r.HolderIdentity
	}
	if err == nil && l.renewed.Load() != nil && r.HolderIdentity != "" && r.HolderIdentity != l.Identity() {
		l.taken()
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (l *timedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.note(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update implements resourcelock.Interface. client-go gives a lease back that it could not
// renew in time, even where another holds it by then, and whatever is still done by it.
func (l *timedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" && (l.kept || !l.idle.Load() || l.holder != l.Identity()) {
		return errNotGivenBack
	}
	if l.kept && l.holder == l.Identity() {
		// Others with the same name have renewed it since.
		if is, _, err := l.Get(ctx); err != nil || is.HolderIdentity != l.Identity() {
			return errors.Join(errLeaseLost, err)
		}
	}
	return l.note(r, func() error { return l.Interface.Update(ctx, r) })
}

// note counts from before the request was sent: the others count from when they saw it,
// which may be long before its answer arrives here.
func (l *timedLock) note(r resourcelock.LeaderElectionRecord, write func() error) error {
	sent := time.Now()
	err := write()
	if err == nil {
		l.holder = r.HolderIdentity
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
	return l.lockOf(kube, l.name(), ownIdentity())
}

// lockOf returns another Lease object beside it, for a holder.
func (l *Lease) lockOf(kube kubernetes.Interface, name, holder string) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: name, Namespace: l.Namespace},
		Client:     kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: holder},
	}
}

// ownIdentity is the name of the pod, or else a unique one.
func ownIdentity() string {
	if pod := os.Getenv("POD_NAME"); pod != "" {
		return pod
	}
	host, _ := os.Hostname()
	return host + "_" + string(uuid.NewUUID())
}
