package rounds_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/rounds"
	"github.com/quorate/quorate/reconciler/starvation/starvationtest"
)

// silence is how long a member that does not answer is waited for.
const silence = 3 * time.Second

// Clusters that fall silent at once, many more than there are places, hold up another one for no
// longer than it takes to find out that they are late; from then on they do not hold it up at all,
// and no more of them are asked at a time than there are places.
func TestSilentClustersWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rounds.NewLanes(4)
		var asked, ended, top atomic.Int32
		silent := func(i int) {
			l.Ask(t.Context(), fmt.Sprint("shop/silent-", i), func() {
				top.Store(max(top.Load(), asked.Add(1)))
				time.Sleep(silence)
				asked.Add(-1)
				ended.Add(1)
			})
		}
		for i := range 40 {
			go silent(i)
		}
		synctest.Wait()
		if n := asked.Load(); n != 4 {
			t.Errorf("%d are asked at first, with 4 places", n)
		}
		l.Ask(t.Context(), "shop/orders", func() {
			if n := ended.Load(); n > 0 {
				t.Errorf("orders has waited until %d silent clusters were given up", n)
			}
		})
		time.Sleep(4 * silence)
		top.Store(0)
		for i := range 40 {
			go silent(i)
		}
		synctest.Wait()
		before := ended.Load()
		l.Ask(t.Context(), "shop/orders", func() {
			if n := asked.Load(); n != 32 || ended.Load() != before {
				t.Errorf("%d of those that are known to be late are asked beside orders, want 32", n)
			}
		})
		time.Sleep(2 * silence)
		if n := top.Load(); n != 32 {
			t.Errorf("%d were asked at once, want 32", n)
		}
	})
}

// A cluster whose members answer again is among the swift from the next time on.
func TestALateClusterIsSwiftAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rounds.NewLanes(1)
		late := func() { time.Sleep(silence) }
		l.Ask(t.Context(), "shop/orders", late)
		l.Ask(t.Context(), "shop/users", late)
		l.Ask(t.Context(), "shop/orders", func() {})
		for range 8 {
			go l.Ask(t.Context(), "shop/users", late)
		}
		synctest.Wait()
		begun := time.Now()
		l.Ask(t.Context(), "shop/orders", func() {})
		if time.Since(begun) > 0 {
			t.Error("orders waits for a cluster that is late")
		}
		l.Forget("shop/users")
		l.Ask(t.Context(), "shop/users", func() {})
		if time.Since(begun) > 0 {
			t.Error("users is late after it was forgotten")
		}
		time.Sleep(silence)
	})
}

// Where many clusters are late, each of them is looked at less often, within a bound, and one that answers as often as before.
func TestManyLateClustersAreLookedAtLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rounds.NewLanes(1000)
		fallSilent := func(from, to int) {
			for i := from; i < to; i++ {
				go l.Ask(t.Context(), fmt.Sprint("shop/silent-", i), func() { time.Sleep(silence) })
			}
			time.Sleep(2 * silence)
		}
		l.Ask(t.Context(), "shop/orders", func() {})
		for _, c := range []struct {
			silent int
			want   time.Duration
		}{{1, 2 * time.Second}, {50, 2 * time.Second}, {1000, 40 * time.Second}, {5000, time.Minute}} {
			fallSilent(0, c.silent)
			if wait := l.Spaced("shop/silent-0", 2*time.Second); wait != c.want {
				t.Errorf("one of %d that are late waits %s, want %s", c.silent, wait, c.want)
			}
			if wait := l.Spaced("shop/orders", 2*time.Second); wait != 2*time.Second {
				t.Errorf("with %d that are late, one that answers waits %s", c.silent, wait)
			}
		}
		if wait := l.Spaced("shop/silent-0", time.Hour); wait != time.Hour {
			t.Errorf("what may wait an hour waits %s", wait)
		}
		l.Ask(t.Context(), "shop/silent-0", func() {})
		if wait := l.Spaced("shop/silent-0", 2*time.Second); wait != 2*time.Second {
			t.Errorf("one that answers again waits %s", wait)
		}
	})
}

// Who waits for a place when its time ends is not kept waiting.
func TestAnEndIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rounds.NewLanes(1)
		l.Ask(t.Context(), "shop/users", func() { time.Sleep(silence) })
		for range 8 {
			go l.Ask(t.Context(), "shop/users", func() { time.Sleep(time.Hour) })
		}
		synctest.Wait()
		l.Ask(t.Context(), "shop/orders", func() { time.Sleep(silence) })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		asked := false
		if l.Ask(ctx, "shop/orders", func() { asked = true }); !asked {
			t.Error("it was not asked")
		}
		time.Sleep(time.Hour)
	})
}

// ordered asks each cluster for a moment, and notes which was begun.
type ordered struct {
	lanes *rounds.Lanes
	mu    sync.Mutex
	begun []string
}

func (o *ordered) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	o.mu.Lock()
	o.begun = append(o.begun, key)
	o.mu.Unlock()
	o.lanes.Ask(ctx, key, func() { time.Sleep(rounds.Patience / 2) })
	return 24 * time.Hour, true, nil
}

func (o *ordered) Failed(string, error) {}
func (o *ordered) Succeeded(string)     {}

// Who waits for a place among the swift keeps its worker: the others wait in the queue, where namespaces
// take turns, and none of a crowd gets before who came later from another namespace.
func TestTheQueueKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, o := queue.New(time.Second), &ordered{lanes: rounds.NewLanes(2)}
		for i := range 100 {
			q.Add(fmt.Sprint("crowd/", i))
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(t.Context(), 1, o)
		}()
		synctest.Wait()
		o.mu.Lock()
		if len(o.begun) != 3 {
			t.Errorf("with 2 places and a worker, %d passes have begun", len(o.begun))
		}
		o.mu.Unlock()
		q.Add("shop/orders")
		time.Sleep(rounds.Patience)
		o.mu.Lock()
		if at := slices.Index(o.begun, "shop/orders"); at < 0 || at > 4 {
			t.Errorf("orders came at %d of %q", at, o.begun)
		}
		o.mu.Unlock()
		q.ShutDown()
		<-ended
	})
}

// A pass that waits to ask keeps no other from going on: with one worker and one place, passes take no
// longer than their questions.
func TestAPassThatWaitsToAskKeepsNoneFromGoingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, o := queue.New(time.Second), &ordered{lanes: rounds.NewLanes(1)}
		for i := range 20 {
			q.Add(fmt.Sprint("crowd/", i))
		}
		begun, ended := time.Now(), make(chan time.Duration, 1)
		go func() {
			q.Run(t.Context(), 1, o)
			ended <- time.Since(begun)
		}()
		synctest.Wait()
		q.ShutDown()
		if took := <-ended; len(o.begun) != 20 || took > 20*rounds.Patience/2 {
			t.Errorf("%d passes whose questions take %s took %s", len(o.begun), rounds.Patience/2, took)
		}
	})
}

// counter counts what is under way.
type counter struct{ now, top, all atomic.Int32 }

func (c *counter) begin() { c.all.Add(1); c.top.Store(max(c.top.Load(), c.now.Add(1))) }
func (c *counter) end()   { c.now.Add(-1) }

// planning asks each cluster, and then plans for a while.
type planning struct {
	lanes *rounds.Lanes
	// answer is how long the answers of the crowd take.
	answer time.Duration
	// open are the questions that are not planned for, and plans what is planned.
	open, plans counter
	mu          sync.Mutex
	planned     []string
}

func (p *planning) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	if strings.HasPrefix(key, "crowd/") {
		p.lanes.Ask(ctx, key, func() {
			p.open.begin()
			time.Sleep(p.answer)
		})
		p.open.end()
	} else {
		p.lanes.Ask(ctx, key, func() {})
	}
	p.plans.begin()
	p.mu.Lock()
	p.planned = append(p.planned, key)
	p.mu.Unlock()
	time.Sleep(rounds.Patience)
	p.plans.end()
	return 24 * time.Hour, true, nil
}

func (p *planning) Failed(string, error) {}
func (p *planning) Succeeded(string)     {}

// However many members answer at the same time, no more clusters are planned for at a time than there are
// workers: those that are asked meanwhile need the processor, too. No more are asked than can be planned for
// before their answers are old, and one that answers in time does not wait behind all that are late.
func TestAnswersArePlannedForInTurn(t *testing.T) {
	const workers = 2
	for _, c := range []struct {
		name          string
		answer        time.Duration
		places, asked int
		before        int
	}{
		{name: "they answer in time", answer: rounds.Patience / 2, places: 8, asked: 8, before: 100},
		{name: "they are late", answer: rounds.Patience, places: 1, asked: 8, before: 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, p := queue.New(time.Second), &planning{lanes: rounds.NewLanes(c.places), answer: c.answer}
				var known sync.WaitGroup
				for i := range 100 {
					key := fmt.Sprint("crowd/", i)
					known.Go(func() { p.lanes.Ask(t.Context(), key, func() { time.Sleep(c.answer) }) })
					q.Add(key)
				}
				known.Wait()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					q.Run(t.Context(), workers, p)
				}()
				time.Sleep(2 * rounds.Patience)
				q.Add("shop/orders")
				synctest.Wait()
				q.ShutDown()
				<-ended
				if n, top := p.plans.all.Load(), p.plans.top.Load(); n != 101 || top != workers {
					t.Errorf("%d of 101 clusters are planned for, %d at a time with %d workers", n, top, workers)
				}
				// A pass of each worker may have left its place, and is still counted.
				if top := int(p.open.top.Load()); top < c.asked || top > c.asked+workers {
					t.Errorf("%d questions are open at a time, want %d", top, c.asked)
				}
				if at := slices.Index(p.planned, "shop/orders"); at > c.before {
					t.Errorf("one that answers in time is planned for after %d of 100 others", at)
				}
			})
		})
	}
}

// A cluster whose answer is late because quorate itself stood still does not count as late, and its place
// is not given to another: to ask more members at a time would make all of them later.
func TestAStandstillOfQuorateMakesNoClusterLate(t *testing.T) {
	starvationtest.Watch(t)
	l := rounds.NewLanes(1)
	var other atomic.Bool
	var others sync.WaitGroup
	l.Ask(t.Context(), "shop/orders", func() {
		others.Go(func() { l.Ask(t.Context(), "shop/users", func() { other.Store(true) }) })
		starvationtest.StandStill(t, 3*rounds.Patience)
		time.Sleep(rounds.Patience / 5)
		if other.Load() {
			t.Error("its place was given to another")
		}
	})
	others.Wait()
	for _, cluster := range []string{"shop/orders", "shop/users"} {
		if wait := l.Spaced(cluster, 0); wait > 0 {
			t.Errorf("%s counts as late", cluster)
		}
	}
}
