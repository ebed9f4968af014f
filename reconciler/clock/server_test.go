package clock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/clock"
)

// 373: what the time of a question and the second of an answer explain is no skew.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		name            string
		server          time.Duration // as told, after noon
		asked, answered time.Duration
		want            time.Duration
	}{
		{"the same", 0, 0, 0, 0},
		{"later in its second", 0, 900 * time.Millisecond, 950 * time.Millisecond, 0},
		{"while it was asked", 5 * time.Second, 0, 10 * time.Second, 0},
		{"ahead", 0, 11 * time.Minute, 11*time.Minute + time.Second, 11*time.Minute - time.Second},
		{"behind", 10 * time.Minute, 0, time.Second, -(10*time.Minute - time.Second)},
	} {
		if got := clock.Skew(noon.Add(c.server), noon.Add(c.asked), noon.Add(c.answered)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// 373: a clock that is ahead cuts no wait short; what is within the tolerance, and a clock
// that is behind, count as they are.
func TestWhatWaitsCountFrom(t *testing.T) {
	for skew, want := range map[time.Duration]time.Duration{
		0: 0, clock.Tolerance: 0, clock.Tolerance + 1: -(clock.Tolerance + 1), time.Hour: -time.Hour, -time.Hour: 0,
	} {
		if got := clock.Counted(noon, skew).Sub(noon); got != want {
			t.Errorf("%s ahead: counted from %s, want %s", skew, got, want)
		}
	}
	// A step of the wall clock moves no monotonic reading, by which two times that have one are compared.
	if text := clock.Counted(time.Now(), time.Hour).String(); strings.Contains(text, "m=") {
		t.Errorf("counted from %s", text)
	}
	graceBegan := noon.Add(-time.Hour) // by the server, whose clock is an hour behind: it is now
	if left := clock.Left(5*time.Minute, graceBegan, clock.Counted(noon, time.Hour)); left != 5*time.Minute {
		t.Errorf("%s left of a grace that has just begun", left)
	}
}
