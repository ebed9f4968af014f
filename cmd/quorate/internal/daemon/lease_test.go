package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// holder is one daemon of several.
type holder struct {
	flags Lease
	// acts gets the daemon's held when it begins to act.
	acts chan func() error
	// ended gets how hold ended.
	ended chan error
	// lasts is how long its last action takes to end.
	lasts time.Duration
	stop  context.CancelFunc
}

// contend starts a daemon that wants the lease.
func contend(t *testing.T, kube *fake.Clientset, name string) *holder {
	t.Helper()
	return contendFor(t, kube, name, 0)
}

// contendFor starts one whose last action takes a while to end.
func contendFor(t *testing.T, kube *fake.Clientset, name string, lasts time.Duration) *holder {
	t.Helper()
	t.Setenv("POD_NAME", name)
	ctx, stop := context.WithCancel(t.Context())
	h := &holder{flags: Lease{Elect: true, Namespace: "quorate-system"}, acts: make(chan func() error, 1), ended: make(chan error, 1), lasts: lasts, stop: stop}
	c := newClaim(h.flags, kube, quiet())
	go func() {
		h.ended <- c.run(ctx, func(ctx context.Context) error {
			h.acts <- c.held
			<-ctx.Done()
			time.Sleep(h.lasts)
			return nil
		})
	}()
	// The name is read when the lock is made.
	synctest.Wait()
	return h
}

// Two daemons never act at once: the second waits, and takes over after the
// first has given the lease back.
func TestSecondDaemonTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		first := contend(t, kube, "quorate-a")
		held := <-first.acts
		second := contend(t, kube, "quorate-b")
		time.Sleep(10 * leaseDuration)
		synctest.Wait()
		if err := held(); err != nil || len(second.acts) > 0 {
			t.Fatalf("while the first acts: %v, %d more act", err, len(second.acts))
		}
		first.stop()
		if err := <-first.ended; err != nil {
			t.Errorf("the first ended with %v", err)
		}
		if err := held(); !errors.Is(err, errLeaseLost) {
			t.Errorf("after the end held says %v", err)
		}
		begun := time.Now()
		if err := (<-second.acts)(); err != nil {
			t.Errorf("the second: %v", err)
		}
		if waited := time.Since(begun); waited > leaseDuration {
			t.Errorf("the lease was released, and the second waited %s", waited)
		}
		second.stop()
		if err := <-second.ended; err != nil {
			t.Errorf("the second ended with %v", err)
		}
	})
}

// A daemon that cannot renew its lease stops acting before another may begin,
// and ends with an error, so that it is started again.
func TestDaemonThatLosesTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube, away := fake.NewClientset(), atomic.Bool{}
		kube.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("the API server is away")
		})
		h := contend(t, kube, "quorate-a")
		defer h.stop()
		held := <-h.acts
		away.Store(true)
		begun := time.Now()
		if err := <-h.ended; !errors.Is(err, errLeaseLost) {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(begun); took >= leaseDuration {
			t.Errorf("acted for %s after the last renewal; another may begin after %s", took, leaseDuration)
		}
		if err := held(); !errors.Is(err, errLeaseLost) {
			t.Errorf("held says %v", err)
		}
	})
}

// The lease is given back when the last action has ended, and not before: the successor would
// act beside it.
func TestLeaseIsGivenBackAfterTheLastAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		first := contendFor(t, kube, "quorate-a", 7*time.Second)
		held := <-first.acts
		second := contend(t, kube, "quorate-b")
		first.stop()
		synctest.Wait()
		if err := held(); !errors.Is(err, errLeaseLost) {
			t.Errorf("one that ends may change something: %v", err)
		}
		begun := time.Now()
		<-second.acts
		if waited := time.Since(begun); waited < 7*time.Second || waited > 7*time.Second+3*leaseRetry {
			t.Errorf("the successor acted after %s, the last action ended after 7s", waited)
		}
		if err := <-first.ended; err != nil {
			t.Errorf("the first ended with %v", err)
		}
		second.stop()
		<-second.ended
	})
}

// What counts is when a renewal was sent. The API server may have taken it then, and answer
// late: the others count from then.
func TestLeaseIsNotHeldByALateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube, slow, away := fake.NewClientset(), atomic.Bool{}, atomic.Bool{}
		kube.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if slow.Swap(false) {
				away.Store(true)
				time.Sleep(leaseRenew - 2*leaseRetry)
				return false, nil, nil
			}
			return away.Load(), nil, errors.New("the API server is away")
		})
		h := contend(t, kube, "quorate-a")
		defer h.stop()
		held := <-h.acts
		slow.Store(true)
		begun := time.Now()
		for held() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		if err := held(); !errors.Is(err, errLeaseOld) {
			t.Errorf("held says %v", err)
		}
		if took := time.Since(begun); took < leaseRenew || took >= leaseDuration {
			t.Errorf("acted for %s after the last renewal was sent; another may begin %s after it", took, leaseDuration)
		}
		<-h.ended
	})
}

// One that was away for longer than the lease lasts, and finds another's name on it, ends at
// once: it does not try to get it back.
func TestDaemonThatFindsAnotherHolderEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube, away := fake.NewClientset(), atomic.Bool{}
		kube.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("the API server is away")
		})
		h := contend(t, kube, "quorate-a")
		defer h.stop()
		held := <-h.acts
		away.Store(true)
		leases := kube.CoordinationV1().Leases("quorate-system")
		lease, err := leases.Get(t.Context(), "quorate", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lease.Spec.HolderIdentity = new("quorate-b")
		if err := kube.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease, lease.Namespace); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := <-h.ended; !errors.Is(err, errLeaseLost) || time.Since(begun) > 2*leaseRetry {
			t.Errorf("ended after %s with %v", time.Since(begun), err)
		}
		if err := held(); !errors.Is(err, errLeaseLost) {
			t.Errorf("held says %v", err)
		}
	})
}

func TestDaemonThatWaitsForItsTurnEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		first := contend(t, kube, "quorate-a")
		<-first.acts
		second := contend(t, kube, "quorate-b")
		begun := time.Now()
		second.stop()
		if err := <-second.ended; err != nil || time.Since(begun) > leaseRetry {
			t.Errorf("ended with %v after %s", err, time.Since(begun))
		}
		first.stop()
		<-first.ended
	})
}

func TestErrorOfTheDaemonIsItsEnd(t *testing.T) {
	broken := errors.New("fill the caches: no")
	for _, elect := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := Lease{Elect: elect, Namespace: "quorate-system"}
			err := newClaim(f, fake.NewClientset(), quiet()).run(t.Context(), func(context.Context) error { return broken })
			if !errors.Is(err, broken) {
				t.Errorf("with election %t: %v", elect, err)
			}
		})
	}
}

func TestWithoutElectionTheLeaseIsAlwaysHeld(t *testing.T) {
	kube := fake.NewClientset()
	f := Lease{}
	c := newClaim(f, kube, quiet())
	err := c.run(t.Context(), func(context.Context) error { return c.held() })
	if err != nil || len(kube.Actions()) > 0 {
		t.Errorf("%v, %v", err, kube.Actions())
	}
}

func TestIdentityIsThePodsOrUnique(t *testing.T) {
	f := Lease{Namespace: "quorate-system"}
	t.Setenv("POD_NAME", "quorate-0")
	if id := f.lock(fake.NewClientset()).Identity(); id != "quorate-0" {
		t.Errorf("in a pod: %q", id)
	}
	t.Setenv("POD_NAME", "")
	a, b := f.lock(fake.NewClientset()).Identity(), f.lock(fake.NewClientset()).Identity()
	if a == b || a == "" {
		t.Errorf("outside: %q and %q", a, b)
	}
}

// 142: instances do not wait for each other; two daemons of one instance do.
func TestEachInstanceHasItsLease(t *testing.T) {
	for instance, want := range map[string]string{"": "quorate", "default": "quorate", "eu": "quorate-eu"} {
		f := Lease{Namespace: "quorate-system", Instance: instance}
		if got := f.lock(fake.NewClientset()).Describe(); got != "quorate-system/"+want {
			t.Errorf("%q: got %s, want %s", instance, got, want)
		}
	}
}
