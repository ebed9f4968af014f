package follow

import (
	"testing"
	"time"
)

func TestPauseBacksOffAndSpreads(t *testing.T) {
	for _, tc := range []struct {
		interval time.Duration
		failed   int
		asked    time.Duration
		random   float64
		want     time.Duration
	}{
		{30 * time.Second, 0, 0, 0.5, 30 * time.Second},
		{30 * time.Second, 0, 0, 0, 27 * time.Second},
		{30 * time.Second, 0, 0, 1, 33 * time.Second},
		{30 * time.Second, 1, 0, 0.5, 30 * time.Second},
		{30 * time.Second, 2, 0, 0.5, time.Minute},
		{30 * time.Second, 4, 0, 0.5, 4 * time.Minute},
		{30 * time.Second, 5, 0, 0.5, 5 * time.Minute},
		{30 * time.Second, 1000, 0, 0.5, 5 * time.Minute},
		{time.Second, 1000, 0, 0.5, 10 * time.Second},
		{time.Hour, 1000, 0, 0.5, time.Hour},
		{1000 * time.Hour, 5, 0, 0.5, 1000 * time.Hour},
		{30 * time.Second, 1, 2 * time.Minute, 0.5, 2 * time.Minute},
		{30 * time.Second, 1, time.Hour, 0.5, 5 * time.Minute},
	} {
		if got := Pause(tc.interval, tc.failed, tc.asked, tc.random); got != tc.want {
			t.Errorf("%s, %d failures, asked for %s: %s, want %s", tc.interval, tc.failed, tc.asked, got, tc.want)
		}
	}
}
