package main

import (
	"testing"
	"time"

	"github.com/quorate/quorate/test/lab"
)

func TestStretchesOfARollAddUpToIt(t *testing.T) {
	begin := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	stretches := stretchesOf([]lab.Restart{
		{Pod: "orders-2", Deleted: at(5), Gone: at(8), Created: at(9), Prepared: at(11), Started: at(12), Ready: at(15)},
		{Pod: "orders-1", Deleted: at(16), Gone: at(18), Created: at(18), Started: at(20), Ready: at(21)}, // the end of its guard was not seen
	}, begin, at(23))
	var sum time.Duration
	for i, want := range []int{5, 5, 1, 2, 3, 4, 1, 2} {
		if got := stretches[i].took; got != time.Duration(want)*time.Second {
			t.Errorf("%s: %s, want %ds", stretches[i].name, got, want)
		}
		sum += stretches[i].took
	}
	if sum != 23*time.Second {
		t.Errorf("the stretches are %s of 23s", sum)
	}
}
