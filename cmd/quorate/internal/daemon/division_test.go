package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/cmd/quorate/internal/shards"
	"github.com/quorate/quorate/reconciler/reconcilertest"
)

const parts = 12

// clusterIn is a cluster of each shard.
func clusterIn(shard int) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("shop/orders-%d", i); shards.Of(name, parts) == shard {
			return name
		}
	}
}

// divided are several daemons that divide the clusters of one API server.
type divided struct {
	*testing.T
	api  *reconcilertest.FakeAPI
	mu   sync.Mutex // of all, which judge reads
	all  []*tenant
	stop atomic.Bool
}

// tenant is one of them.
type tenant struct {
	*division
	name  string
	away  atomic.Bool
	blind atomic.Bool // may list no leases
	end   context.CancelFunc
	ended chan error
	// given are the shards that were taken, and not given up.
	mu      sync.Mutex
	given   map[int]int
	leads   atomic.Bool
	told    atomic.Bool
	woken   atomic.Int32
	running atomic.Bool
}

// Take implements tenants.
func (m *tenant) Take(of func(string) bool) { m.count(of, 1) }

// GiveUp implements tenants.
func (m *tenant) GiveUp(of func(string) bool) { m.count(of, -1) }

// Told implements tenants.
func (m *tenant) Told(string) bool { return m.told.Load() }

func (m *tenant) count(of func(string) bool, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for shard := range parts {
		if of(clusterIn(shard)) {
			m.given[shard] += by
		}
	}
}

// holds are the shards of which the daemon may change clusters now.
func (m *tenant) holds() (list []int) {
	for shard := range parts {
		if m.together.held() == nil && m.Held(clusterIn(shard)) == nil {
			list = append(list, shard)
		}
	}
	return list
}

// start starts a daemon with so many shards.
func (f *divided) start(name string, into int) *tenant {
	f.Helper()
	f.Setenv("POD_NAME", name)
	m := &tenant{name: name, ended: make(chan error, 1), given: map[int]int{}}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if m.away.Load() {
			return true, nil, errors.New("connection refused")
		}
		if m.blind.Load() && a.Matches("list", "leases") {
			return true, nil, errors.New("leases is forbidden")
		}
		o, err := f.api.Invokes(a, nil)
		return true, o, err
	})
	m.division = newDivision(Lease{Elect: true, Namespace: "quorate-system", Shards: into}, client, prometheus.NewRegistry(), quiet())
	ctx, end := context.WithCancel(f.Context())
	m.end = end
	during := func(is *atomic.Bool) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			is.Store(true)
			defer is.Store(false)
			<-ctx.Done()
			return nil
		}
	}
	go func() {
		commit := func() string { return "commit of " + name }
		m.ended <- m.run(ctx, m, commit, func() { m.woken.Add(1) }, during(&m.running), during(&m.leads))
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, m)
	return m
}

// judge looks all the time whether two daemons hold the same.
func (f *divided) judge() {
	for !f.stop.Load() {
		holder, leads, modes := map[int]string{}, "", map[int]bool{}
		f.mu.Lock()
		all := slices.Clone(f.all)
		f.mu.Unlock()
		for _, m := range all {
			for _, shard := range m.holds() {
				if holder[shard] != "" {
					f.Errorf("%s and %s hold shard %d", holder[shard], m.name, shard)
				}
				holder[shard] = m.name
				modes[m.lease.Shards] = true
			}
			if m.together.held() == nil && m.lead.held() == nil {
				if leads != "" {
					f.Errorf("%s and %s lead", leads, m.name)
				}
				leads = m.name
				modes[m.lease.Shards] = true
			}
		}
		if len(modes) > 1 {
			f.Errorf("daemons with other numbers of shards act at once: %v", modes)
		}
		if f.Failed() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// await waits until a condition holds, and returns how long that took.
func (f *divided) await(what string, most time.Duration, holds func() bool) time.Duration {
	f.Helper()
	begun := time.Now()
	for !holds() {
		if time.Since(begun) > most {
			for _, m := range f.all {
				f.Logf("%s holds %v, leads %t, knows %v", m.name, m.holds(), m.leads.Load(), m.daemons())
			}
			f.Fatalf("%s: not within %s", what, most)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(begun)
}

// settled reports whether these daemons hold what is assigned to them, and one of them leads.
func settled(members ...*tenant) func() bool {
	return func() bool {
		var names []string
		leads := 0
		for _, m := range members {
			names = append(names, m.name)
			if m.leads.Load() {
				leads++
			}
		}
		assigned := shards.Assign(names, parts)
		for _, m := range members {
			var want []int
			for shard, name := range assigned {
				if name == m.name {
					want = append(want, shard)
				}
			}
			if !slices.Equal(m.holds(), want) {
				return false
			}
		}
		return leads == 1
	}
}

// inDivision has a test with daemons, and a judge.
func inDivision(t *testing.T, test func(f *divided)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &divided{T: t, api: reconcilertest.NewFakeAPI()}
		judged := make(chan struct{})
		start := func() {
			go func() {
				defer close(judged)
				f.judge()
			}()
		}
		for _, name := range []string{"quorate-a", "quorate-b", "quorate-c"} {
			f.start(name, parts)
		}
		start()
		defer f.endAll(judged)
		f.await("three daemons with their shards", time.Minute, settled(f.all...))
		test(f)
	})
}

// endAll ends all daemons, and looks what they have left.
func (f *divided) endAll(judged <-chan struct{}) {
	f.stop.Store(true)
	<-judged
	for _, m := range f.all {
		m.end()
		m.away.Store(false)
		<-m.ended
		m.mu.Lock()
		for shard, n := range m.given {
			if n != 0 {
				f.Errorf("%s has taken shard %d %d times more than given it up", m.name, shard, n)
			}
		}
		m.mu.Unlock()
	}
}

func TestThreeDaemonsDivideTheShards(t *testing.T) {
	inDivision(t, func(f *divided) {
		for _, m := range f.all {
			if n := len(m.holds()); n == 0 || n > shards.Bound(3, parts) || testutil.ToFloat64(m.held) != float64(n) || !m.running.Load() {
				t.Errorf("%s holds %d shards, and tells of %v", m.name, n, testutil.ToFloat64(m.held))
			}
		}
		before := f.all[0].holds()
		time.Sleep(2 * time.Minute)
		if n := testutil.ToFloat64(f.all[0].unheld); n != 0 {
			t.Errorf("%v shards are nobody's", n)
		}
		if after := f.all[0].holds(); !slices.Equal(before, after) {
			t.Errorf("at rest shards move: %v, %v", before, after)
		}
	})
}

// One that is asked to end gives its shards back, and the others have them in a moment.
func TestShardsOfADaemonThatEndsAreTaken(t *testing.T) {
	inDivision(t, func(f *divided) {
		gone := f.all[0]
		gone.end()
		if err := <-gone.ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		gone.ended <- nil
		if took := f.await("its shards by the others", time.Minute, settled(f.all[1:]...)); took > 8*leaseRetry {
			t.Errorf("it took %s", took)
		}
	})
}

// One that is cut off stops, and ends, before the others take its shards.
func TestShardsOfADaemonThatIsCutOffAreTaken(t *testing.T) {
	inDivision(t, func(f *divided) {
		gone := f.all[0]
		gone.away.Store(true)
		took := f.await("its shards by the others", time.Minute, settled(f.all[1:]...))
		if took < leaseDuration-leaseRetry || took > 3*leaseDuration {
			t.Errorf("it took %s", took)
		}
		if err := <-gone.ended; !errors.Is(err, errLeaseLost) {
			t.Errorf("it ended with %v", err)
		}
		gone.ended <- nil
	})
}

// One that is new gets its share, but of no shard before the passes under way have ended: no
// new ones begin meanwhile.
func TestANewDaemonWaitsForPassesUnderWay(t *testing.T) {
	inDivision(t, func(f *divided) {
		names := []string{"quorate-a", "quorate-b", "quorate-c", "quorate-d"}
		moves := slices.Index(shards.Assign(names, parts), "quorate-d")
		var from *tenant
		for _, m := range f.all {
			if slices.Contains(m.holds(), moves) {
				from = m
			}
		}
		cluster := clusterIn(moves)
		ctx, leave, mine := from.Enter(f.Context(), cluster)
		if !mine {
			t.Fatal("a cluster of its own is not its")
		}
		added := f.start("quorate-d", parts)
		f.await("the shard to be given up", time.Minute, func() bool { return !from.Mine(cluster) })
		if _, _, mine := from.Enter(f.Context(), cluster); mine || from.Held(cluster) != nil || ctx.Err() != nil {
			t.Errorf("while a pass ends, another may begin: %t; it may go on: %v, %v", mine, from.Held(cluster), ctx.Err())
		}
		time.Sleep(giveUpAfter / 2)
		if slices.Contains(added.holds(), moves) {
			t.Error("the new one acts beside a pass")
		}
		leave()
		f.await("its shards by the new one", time.Minute, settled(f.all...))
	})
}

func TestAPassThatTakesLongIsEnded(t *testing.T) {
	inDivision(t, func(f *divided) {
		var left sync.WaitGroup
		for _, m := range f.all {
			for _, shard := range m.holds() {
				ctx, leave, _ := m.Enter(f.Context(), clusterIn(shard))
				left.Go(func() {
					<-ctx.Done()
					leave()
				})
			}
		}
		f.start("quorate-d", parts)
		f.await("its shards by the new one", giveUpAfter+time.Minute, settled(f.all...))
		for _, m := range f.all {
			m.end()
			m.ended <- <-m.ended
		}
		left.Wait()
	})
}

// A daemon with another number of shards waits until all with this one have ended, and so does
// one without shards. Both act alone then.
func TestDaemonsWithOtherShardsWait(t *testing.T) {
	for _, into := range []int{2 * parts, 1} {
		inDivision(t, func(f *divided) {
			var running func() bool
			if into == 1 {
				t.Setenv("POD_NAME", "quorate-alone")
				c := newClaim(Lease{Elect: true, Namespace: "quorate-system"}, f.api, quiet())
				ctx, end := context.WithCancel(f.Context())
				defer end()
				go func() { _ = c.run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }) }()
				running = func() bool { return c.held() == nil }
			} else {
				running = f.start("quorate-other", into).running.Load
			}
			for _, m := range f.all[:3] {
				time.Sleep(leaseDuration)
				if running() {
					t.Fatal("it acts beside the others")
				}
				m.end()
				m.ended <- <-m.ended
			}
			if took := f.await("the other one to act", time.Minute, running); took < leaseDuration-2*leaseRetry {
				t.Errorf("it acts %s after the last of the others, which may not know yet", took)
			}
		})
	}
}

// All daemons together have one turn to begin to disrupt a cluster.
func TestOneDaemonAtATimeBeginsToDisrupt(t *testing.T) {
	inDivision(t, func(f *divided) {
		var inTurn, turns atomic.Int32
		var waiting sync.WaitGroup
		for _, m := range f.all {
			waiting.Go(func() {
				for range 5 {
					turn, err := m.Begin(f.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if n := inTurn.Add(1); n != 1 || turn.Held() != nil {
						t.Errorf("%d begin at once, %v", n, turn.Held())
					}
					time.Sleep(time.Second)
					turns.Add(1)
					inTurn.Add(-1)
					turn.End()
					if turn.Held() == nil {
						t.Error("a turn that has ended lasts")
					}
				}
			})
		}
		waiting.Wait()
		if turns.Load() != 15 {
			t.Errorf("%d turns", turns.Load())
		}
		// A daemon that cannot renew it loses its turn, and no other waits without end.
		turn, err := f.all[0].Begin(f.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.all[0].away.Store(true)
		time.Sleep(leaseRenew)
		if turn.Held() == nil {
			t.Error("a turn lasts that could not be renewed")
		}
		next, err := f.all[1].Begin(f.Context())
		if err != nil || turn.Held() == nil {
			t.Fatal(err)
		}
		next.End()
		turn.End()
		ctx, cancel := context.WithTimeout(f.Context(), time.Second)
		defer cancel()
		held, err := f.all[1].Begin(f.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.all[2].Begin(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one that waits no longer: %v", err)
		}
		held.End()
		f.all[0].ended <- <-f.all[0].ended
	})
}

// What one daemon tells of another's clusters: who holds them, and whether their statuses were written
// with the commit in force. And the others look for a commit that the one that leads has.
func TestDaemonsKnowOfEachOther(t *testing.T) {
	inDivision(t, func(f *divided) {
		for _, m := range f.all {
			m.told.Store(m.name == "quorate-b")
		}
		time.Sleep(5 * leaseRetry)
		for shard, name := range shards.Assign([]string{"quorate-a", "quorate-b", "quorate-c"}, parts) {
			want := ""
			if name == "quorate-b" {
				want = "commit of quorate-b"
			}
			for _, m := range f.all {
				if holder, commit := m.Whose(clusterIn(shard)); holder != name || commit != want {
					t.Errorf("%s says that shard %d is %s's, whose statuses are of %q; want %s and %q", m.name, shard, holder, commit, name, want)
				}
			}
		}
		for _, m := range f.all {
			if woken := m.woken.Load(); m.leads.Load() != (woken == 0) {
				t.Errorf("%s looked %d times for a commit, and leads: %t", m.name, woken, m.leads.Load())
			}
			m.end()
			m.ended <- <-m.ended
		}
		last := f.all[0].division
		if err := last.look(f.Context()); err != nil { // a shard may have been taken just before the end
			t.Error(err)
		}
		time.Sleep(leaseDuration)
		if err := last.look(f.Context()); err != nil || testutil.ToFloat64(last.unheld) != parts {
			t.Errorf("after the end: %v, %v shards are nobody's", err, testutil.ToFloat64(last.unheld))
		}
		if holder, _ := last.Whose(clusterIn(0)); holder != "" {
			t.Errorf("after the end shard 0 is %s's", holder)
		}
	})
}

// One that cannot see the leases does not take those of the others for theirs no more.
func TestADaemonThatSeesNoLeasesTellsOfNoneThatIsGone(t *testing.T) {
	inDivision(t, func(f *divided) {
		blind := f.all[0]
		time.Sleep(2 * leaseRetry) // it has seen all of them
		blind.blind.Store(true)
		time.Sleep(3 * leaseDuration)
		for shard, name := range shards.Assign([]string{"quorate-a", "quorate-b", "quorate-c"}, parts) {
			if holder, _ := blind.Whose(clusterIn(shard)); holder != name {
				t.Errorf("it says that shard %d is %q's, and it is %s's", shard, holder, name)
			}
		}
		gone := f.all[1]
		gone.end()
		gone.ended <- <-gone.ended
		blind.blind.Store(false)
		f.await("its shards by the others", time.Minute, settled(f.all[0], f.all[2]))
	})
}

// The leases of two instances are apart, and those of quorate without shards stay as they are.
func TestLeasesOfADivision(t *testing.T) {
	inDivision(t, func(f *divided) {
		list, err := f.api.CoordinationV1().Leases("quorate-system").List(f.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, l := range list.Items {
			switch {
			case l.Name == "quorate" && *l.Spec.HolderIdentity == "shards-12":
				count["quorate"]++
			case len(l.Name) > len("quorate.") && l.Name[:len("quorate.")] == "quorate.":
				count["quorate."]++
			default:
				t.Errorf("lease %s of %s", l.Name, *l.Spec.HolderIdentity)
			}
		}
		if count["quorate"] != 1 || count["quorate."] != 1+3+parts {
			t.Errorf("%v", count)
		}
	})
}
