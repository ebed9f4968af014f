package queue_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/state"
)

// slow is a handler whose keys that begin with "slow" wait for an hour, aside.
type slow struct {
	mu           sync.Mutex
	made         map[string]int
	working, top int
}

func (s *slow) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	s.count(key, 1)
	defer s.count("", -1)
	if key[:4] == "slow" {
		s.count("", -1)
		for range 2 { // for two reasons, one after the other and one within the other
			back := queue.Aside(ctx)
			within := queue.Aside(ctx)
			time.Sleep(time.Hour)
			within()
			back()
			back() // twice is once
		}
		s.count("", 1)
	}
	time.Sleep(time.Second)
	return 24 * time.Hour, true, nil
}

func (s *slow) Failed(string, error) {}
func (s *slow) Succeeded(string)     {}

func (s *slow) count(key string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working += by
	s.top = max(s.top, s.working)
	if key != "" {
		s.made[key]++
	}
}

// 173: passes that wait leave their places to others, of which never more are at work
// than there are workers; and when they are back, there are as many workers as before.
func TestAPassThatWaitsLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := queue.New(state.MinRequeue), &slow{made: map[string]int{}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(t.Context(), 2, s)
		}()
		for i := range 6 {
			q.Add("slow" + strconv.Itoa(i))
		}
		time.Sleep(time.Second)
		for i := range 30 {
			q.Add("fast" + strconv.Itoa(i))
		}
		time.Sleep(30 * time.Second)
		s.mu.Lock()
		if len(s.made) != 36 || s.top > 2 {
			t.Errorf("%d keys had their pass, %d at once", len(s.made), s.top)
		}
		s.mu.Unlock()
		time.Sleep(3 * time.Hour)
		s.mu.Lock()
		s.top = 0
		s.mu.Unlock()
		for i := range 30 {
			q.Add("fast" + strconv.Itoa(i))
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		if s.made["fast29"] != 2 || s.top != 2 {
			t.Errorf("%d passes, %d at once", s.made["fast29"], s.top)
		}
		s.mu.Unlock()
		q.ShutDown()
		<-ended
	})
}

// Very many passes that come back at once go on as many at a time as there are workers, before those that
// have not begun. Those that are late have every second turn. Afterwards there are as many workers as there
// were.
func TestPassesComeBackInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		working, top := 0, 0
		q, letGo, ended := queue.New(state.MinRequeue), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(t.Context(), 2, handling(func(ctx context.Context, key string) time.Duration {
				if key != "new" {
					pause := queue.BeginPause(ctx)
					pause.Aside()
					within := queue.Aside(ctx)
					<-letGo
					within()
					pause.End(strings.HasPrefix(key, "late"))
				}
				mu.Lock()
				order = append(order, key)
				working++
				top = max(top, working)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				working--
				mu.Unlock()
				return 24 * time.Hour
			}))
		}()
		add := func(kind string, n int) {
			for i := range n {
				q.Add(kind + strconv.Itoa(i))
			}
		}
		wait := func() {
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		add("late", 30)
		add("swift", 10)
		wait()
		close(letGo)
		synctest.Wait()
		q.Add("new")
		wait()
		if len(order) != 41 || top != 2 {
			t.Errorf("%d of 41 passes have gone on, %d at once with 2 workers", len(order), top)
		}
		kinds := map[string]int{}
		for _, key := range order[:slices.Index(order, "new")] {
			kinds[strings.TrimRight(key, "0123456789")]++
		}
		if kinds["swift"] != 10 || kinds["late"] < 9 || kinds["late"] > 15 {
			t.Errorf("before a new pass have gone on %v, want 10 that are swift, and as many that are late", kinds)
		}
		order, top = nil, 0
		add("swift", 30)
		wait()
		if len(order) != 30 || top != 2 {
			t.Errorf("then %d of 30 have gone on, %d at once", len(order), top)
		}
		q.ShutDown()
		<-ended
	})
}

// handling is a handler that is only a function, which returns the time until the next pass.
type handling func(ctx context.Context, key string) time.Duration

func (h handling) Pass(ctx context.Context, key string) (time.Duration, bool, error) {
	return h(ctx, key), true, nil
}

func (handling) Failed(string, error) {}
func (handling) Succeeded(string)     {}

// A pass that is aside for something else while it waits for its turn gives the place that it gets to
// another, and has one in the end.
func TestAPassMayGoAsideWhileItWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var working, top, made atomic.Int32
		work := func() {
			top.Store(max(top.Load(), working.Add(1)))
			time.Sleep(time.Second)
			working.Add(-1)
			made.Add(1)
		}
		q, taken, ended := queue.New(state.MinRequeue), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(t.Context(), 1, handling(func(ctx context.Context, key string) time.Duration {
				switch key {
				case "taker":
					close(taken)
					time.Sleep(time.Second)
				case "twice":
					pause := queue.BeginPause(ctx)
					pause.Aside()
					<-taken
					var back sync.WaitGroup
					back.Go(func() { pause.End(false) }) // has the place when the taker ends
					time.Sleep(time.Millisecond)
					other := queue.Aside(ctx)
					time.Sleep(time.Minute)
					back.Wait()
					other()
					work()
				default:
					work()
				}
				return 24 * time.Hour
			}))
		}()
		for _, key := range []string{"twice", "taker", "a", "b", "c"} {
			q.Add(key)
		}
		time.Sleep(30 * time.Second)
		if n := made.Load(); n != 3 {
			t.Errorf("%d of 3 others had their pass while it was aside", n)
		}
		time.Sleep(time.Hour)
		for i := range 10 {
			q.Add(strconv.Itoa(i))
		}
		time.Sleep(time.Minute)
		if made.Load() != 14 || top.Load() != 1 {
			t.Errorf("%d of 14 passes were made, %d at once with one worker", made.Load(), top.Load())
		}
		q.ShutDown()
		<-ended
	})
}

// Outside of a pool there is nobody to leave a place to.
func TestAsideOutsideOfAPool(t *testing.T) {
	queue.Aside(t.Context())()
}

// answering is an http.RoundTripper that is only a function.
type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// apiClient is a client whose passes leave their places while it waits for an answer.
type apiClient struct{ http.Client }

func asking(api answering) *apiClient {
	return &apiClient{http.Client{Transport: queue.Requesting(api)}}
}

// ask asks for something within a pass, whose ctx it is.
func (c *apiClient) ask(ctx context.Context, t *testing.T, what string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/"+what, http.NoBody)
	if err == nil {
		var response *http.Response
		if response, err = c.Do(request); err == nil {
			err = response.Body.Close()
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// A pass that waits for the API server leaves the processor to others, of which four times as many
// as may compute are under way. One that waits without end is seen.
func TestAPassThatWaitsForTheAPIServerLeavesTheProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, under = 2, 8
		asked, answer := make(chan string, 100), make(chan struct{})
		client := asking(func(r *http.Request) (*http.Response, error) {
			asked <- r.URL.Path
			<-answer
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		q, made, ended := queue.New(state.MinRequeue), make(chan string, 100), make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(t.Context(), workers, handling(func(ctx context.Context, key string) time.Duration {
				if strings.HasPrefix(key, "ask") {
					client.ask(ctx, t, key)
				}
				made <- key
				return 24 * time.Hour
			}))
		}()
		for i := range under - 1 {
			q.Add("ask" + strconv.Itoa(i))
		}
		for range under - 1 {
			<-asked
		}
		for i := range 10 {
			q.Add("quick" + strconv.Itoa(i))
		}
		for range 10 {
			if key := <-made; !strings.HasPrefix(key, "quick") {
				t.Errorf("%s has an answer", key)
			}
		}
		if q.Motionless(time.Now().Add(time.Hour)) < time.Hour-time.Minute {
			t.Error("passes that wait for an answer without end are not seen")
		}
		for i := range 10 {
			q.Add("askmore" + strconv.Itoa(i))
		}
		<-asked
		synctest.Wait()
		if len(asked) > 0 {
			t.Errorf("more than %d passes are under way", under)
		}
		close(answer)
		for range under - 1 + 10 {
			<-made
		}
		q.ShutDown()
		<-ended
	})
}

// Very many late passes that come back at once, and wait for the API server one after the other, keep no key waiting
// until all of them are through.
func TestLatePassesKeepNoKeyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		client := asking(func(*http.Request) (*http.Response, error) {
			const tick = 100 * time.Millisecond // all lists are answered at once
			time.Sleep(tick - time.Since(begin)%tick)
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		var late, swift atomic.Int64
		q, ended := queue.New(state.MinRequeue), make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(t.Context(), 4, handling(func(ctx context.Context, key string) time.Duration {
				isLate := strings.HasPrefix(key, "late")
				pause := queue.BeginPause(ctx)
				if isLate {
					pause.Aside()
					time.Sleep(3 * time.Second)
				} else {
					time.Sleep(10 * time.Millisecond)
				}
				pause.End(isLate)
				if !isLate {
					swift.Add(1)
					return 24 * time.Hour
				}
				client.ask(ctx, t, "nodes")
				late.Add(1)
				return 24 * time.Hour
			}))
		}()
		for i := range 200 {
			q.Add("late" + strconv.Itoa(i))
		}
		time.Sleep(3*time.Second + 50*time.Millisecond)
		for i := range 40 {
			q.Add("swift" + strconv.Itoa(i))
		}
		time.Sleep(300 * time.Millisecond)
		if late.Load() > 100 || swift.Load() < 40 {
			t.Errorf("after three ticks %d of 40 keys had their pass, and %d of 200 that are late have gone on", swift.Load(), late.Load())
		}
		time.Sleep(time.Minute)
		if late.Load() != 200 {
			t.Errorf("%d of 200 late passes have ended", late.Load())
		}
		q.ShutDown()
		<-ended
	})
}
