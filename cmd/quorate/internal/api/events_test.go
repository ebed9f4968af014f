package api

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/schema"
)

// client reads events, or does not while it is asleep.
type client struct {
	header http.Header
	asleep chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

func (c *client) Header() http.Header { return c.header }
func (c *client) WriteHeader(int)     {}
func (c *client) Flush()              {}

func (c *client) Write(p []byte) (int, error) {
	if c.asleep != nil {
		<-c.asleep
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

// read returns what has come since the last time, without comments.
func (c *client) read() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var events []string
	for _, event := range strings.Split(c.text.String(), "\n\n") {
		if strings.HasPrefix(event, "event: ") {
			events = append(events, strings.ReplaceAll(event, "\n", " "))
		}
	}
	c.text.Reset()
	return strings.Join(events, "; ")
}

// connect follows the events of a feed until the test's bubble ends it by stop.
func connect(t *testing.T, feed *Feed, asleep chan struct{}) (c *client, stop func()) {
	t.Helper()
	c = &client{header: http.Header{}, asleep: asleep}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Handler(feed).ServeHTTP(c, httptest.NewRequestWithContext(ctx, http.MethodGet, Prefix+"/events", nil))
	}()
	synctest.Wait()
	return c, func() {
		cancel()
		<-ended
	}
}

// 222: a client is told of each change, and of nothing else; a feed without clients does
// nothing.
func TestEventsTellOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.set(cmdtest.Ready("orders"), cmdtest.Ready("users"))
		feed, _ := serve(t, w)
		c, stop := connect(t, feed, nil)
		is := func(want string) {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if got := c.read(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if c.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("the content is %s", c.header.Get("Content-Type"))
		}
		is("")
		w.set(cmdtest.Cluster("orders", schema.PhaseStalled, "Unhealthy", "a secret reason"), cmdtest.Ready("users"))
		is(`event: status data: {"kind":"EtcdCluster","namespace":"shop","name":"orders","phase":"Stalled"}`)
		w.set(cmdtest.Ready("users"), cmdtest.Ready("carts"))
		is(`event: status data: {"kind":"EtcdCluster","namespace":"shop","name":"carts","phase":"Ready"}; event: status data: {"kind":"EtcdCluster","namespace":"shop","name":"orders","phase":""}`)
		w.mu.Lock()
		w.git.LastSuccess = time.Now()
		w.mu.Unlock()
		is("")
		w.mu.Lock()
		w.git.Held = "a commit"
		w.mu.Unlock()
		is("event: git data: {}")
		c.mu.Lock()
		c.text.Reset()
		c.mu.Unlock()
		time.Sleep(heartbeat)
		synctest.Wait()
		c.mu.Lock()
		if !strings.HasPrefix(c.text.String(), ": ") {
			t.Errorf("no heartbeat, but %q", c.text.String())
		}
		c.mu.Unlock()
		stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if feed.watched || len(feed.subscribers) != 0 {
			t.Errorf("the feed watches for %d clients", len(feed.subscribers))
		}
	})
}

// 222: a client that does not read is told that it has missed something; it costs no other
// one anything. More clients than there are places are sent away.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.set()
		feed, get := serve(t, w)
		asleep := make(chan struct{})
		slow, stopSlow := connect(t, feed, asleep)
		var stops []func()
		for range maxSubscribers - 1 {
			_, stop := connect(t, feed, nil)
			stops = append(stops, stop)
		}
		if code, header, body := get(Prefix + "/events"); code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(body, "too many clients") {
			t.Errorf("one more client gets %d %s", code, body)
		}
		w.set(fleet(2 * maxPending)...)
		time.Sleep(time.Minute)
		close(asleep)
		time.Sleep(time.Minute)
		synctest.Wait()
		got := slow.read()
		if n := strings.Count(got, "event: status"); n != maxPending || !strings.Contains(got, "event: reset data: {}") {
			t.Errorf("the slow client got %d changes: %.300s", n, got)
		}
		for _, stop := range append(stops, stopSlow) {
			stop()
		}
		time.Sleep(time.Minute)
	})
}

func TestAStreamOfEventsHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		feed, get := serve(t, w)
		begun := time.Now()
		get(Prefix + "/events")
		if lasted := time.Since(begun); lasted != maxStream {
			t.Errorf("it lasted %s", lasted)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if feed.watched {
			t.Error("the feed still watches")
		}
	})
}
