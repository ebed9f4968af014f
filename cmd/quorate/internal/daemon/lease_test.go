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

// outage has requests of a verb about leases fail while it is true.
func outage(kube *fake.Clientset, verb string) *atomic.Bool {
	away := &atomic.Bool{}
	kube.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, errors.New("the API server is away")
	})
	return away
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
		kube := fake.NewClientset()
		away := outage(kube, "*")
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
		kube := fake.NewClientset()
		away := outage(kube, "update")
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

// through returns a client whose requests are answered by api, once fail lets them pass: a
// process that is cut off, or paused, while the others are not.
func through(api *fake.Clientset, fail func(a clienttesting.Action) error) *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if err := fail(a); err != nil {
			return true, nil, err
		}
		o, err := api.Invokes(a, nil)
		return true, o, err
	})
	return client
}

// holderOf returns who holds the lease.
func holderOf(t *testing.T, api *fake.Clientset) string {
	t.Helper()
	lease, err := api.CoordinationV1().Leases("quorate-system").Get(t.Context(), "quorate", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

// A daemon that was paused in the midst of a renewal until another has taken over leaves the
// lease alone that is another's now: client-go would give it back, and a third one would act
// beside the second.
func TestLeaseOfAnotherIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, paused, late := fake.NewClientset(), atomic.Bool{}, 0
		first := contend(t, through(api, func(a clienttesting.Action) error {
			switch {
			case a.GetVerb() == "update" && paused.Swap(false):
				time.Sleep(2 * leaseDuration)
				late = 1
				return context.DeadlineExceeded
			case late > 0: // what was to be read next is late as well
				late--
				return context.DeadlineExceeded
			}
			return nil
		}), "quorate-a")
		<-first.acts
		second := contend(t, api, "quorate-b")
		paused.Store(true)
		held := <-second.acts
		third := contend(t, api, "quorate-c")
		if err := <-first.ended; !errors.Is(err, errLeaseLost) {
			t.Errorf("the first ended with %v", err)
		}
		if holder := holderOf(t, api); holder != "quorate-b" {
			t.Errorf("the second acts, and the lease is that of %q", holder)
		}
		time.Sleep(2 * leaseDuration)
		if err := held(); err != nil || len(third.acts) > 0 {
			t.Errorf("the second: %v; the third acts: %d", err, len(third.acts))
		}
		second.stop()
		<-second.ended
		<-third.acts
		third.stop()
		<-third.ended
	})
}

// Nor is its own, while an action still ends by it: the others wait until it expires.
func TestLostLeaseIsNotGivenBackBesideAnAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, away := fake.NewClientset(), atomic.Bool{}
		first := contendFor(t, through(api, func(a clienttesting.Action) error {
			// At the moment at which the lease is given up, the API server is back.
			update, is := a.(clienttesting.UpdateAction)
			if is && away.Load() && *update.GetObject().(*coordinationv1.Lease).Spec.HolderIdentity != "" {
				return errors.New("the API server is away")
			}
			return nil
		}), "quorate-a", leaseDuration)
		held := <-first.acts
		away.Store(true)
		for !errors.Is(held(), errLeaseLost) {
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if holder := holderOf(t, api); holder != "quorate-a" || len(first.ended) > 0 {
			t.Errorf("while the last action ends, the lease is that of %q", holder)
		}
		<-first.ended
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
