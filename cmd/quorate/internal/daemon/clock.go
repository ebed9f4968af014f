package daemon

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/reconciler/clock"
)

// ServerClock compares the clock of this machine with the API server's, by the time that each
// of its answers has. The zero value knows of no difference.
type ServerClock struct{ ahead atomic.Int64 }

// Listen lets it hear the answers to requests.
func (c *ServerClock) Listen(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		asked := time.Now()
		answer, err := next.RoundTrip(r)
		if err != nil {
			return answer, err
		}
		if server, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			c.ahead.Store(int64(clock.Skew(server, asked.Round(0), time.Now().Round(0))))
		}
		return answer, nil
	})
}

// Ahead is how far this machine is ahead, negative where it is behind.
func (c *ServerClock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Now is the time that waits count from.
func (c *ServerClock) Now() time.Time { return clock.Counted(time.Now(), c.Ahead()) }

// ServerNow is the time of the API server.
func (c *ServerClock) ServerNow() time.Time { return time.Now().Add(-c.Ahead()) }

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
