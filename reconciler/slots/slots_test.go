package slots

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
)

// A throttled stream ends with its context.
func TestALimitedBackupEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Throttle(ctx, bytes.NewReader([]byte("snapshot")), 1).Read(make([]byte, 8)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSlotsAreGivenBack(t *testing.T) {
	s := New(1, 0)
	place, ok := s.TryAcquire(false)
	if !ok || s.Taken() != s.Places() {
		t.Fatalf("%d of %d places taken", s.Taken(), s.Places())
	}
	if _, ok := s.TryAcquire(false); ok {
		t.Error("a second one has the only place")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Acquire(ended, false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	place.Release()
	if place, err := s.Acquire(t.Context(), false); err != nil {
		t.Error(err)
	} else {
		place.Release()
	}
}

// 173: a backup that does not move leaves its place to another, and the next one to the
// same store takes none that others wait for.
func TestABackupThatDoesNotMoveGivesWay(t *testing.T) {
	s := New(1, 0)
	first, _ := s.TryAcquire(false)
	first.GiveWay()
	first.GiveWay() // twice is once
	second, ok := s.TryAcquire(false)
	if !ok {
		t.Fatal("the place is kept")
	}
	second.GiveWay() // there is no more room among those that say nothing
	if _, ok := s.TryAcquire(false); ok {
		t.Error("there are more backups than twice the places")
	}
	if _, ok := s.TryAcquire(true); ok {
		t.Error("there are two among those that say nothing")
	}
	first.Release()
	first.GiveWay() // its place is another's now
	third, ok := s.TryAcquire(true)
	if !ok || s.Taken() != 1 {
		t.Fatalf("%d of %d places taken", s.Taken(), s.Places())
	}
	second.Release()
	third.Release()
	if s.Taken() != 0 {
		t.Errorf("%d places taken", s.Taken())
	}
}

// Jobs share what is left when as many run as may, and never get nothing.
func TestSharesOfTheBandwidth(t *testing.T) {
	for bandwidth, want := range map[int64]int64{0: 0, 1: 1, 10: 5} {
		if got := New(2, bandwidth).Share(); got != want {
			t.Errorf("of %d bytes a second each Job gets %d, want %d", bandwidth, got, want)
		}
	}
	if r := io.Reader(&bytes.Buffer{}); New(1, 0).Throttle(t.Context(), r) != r {
		t.Error("a stream without a limit is wrapped")
	}
}
