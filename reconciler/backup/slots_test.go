package backup

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
	s := NewSlots(1, 0)
	release, ok := s.TryAcquire()
	if !ok || s.Taken() != s.Places() {
		t.Fatalf("%d of %d places taken", s.Taken(), s.Places())
	}
	if _, ok := s.TryAcquire(); ok {
		t.Error("a second one has the only place")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Acquire(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	if release, err := s.Acquire(t.Context()); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

// Jobs share what is left when as many run as may, and never get nothing.
func TestSharesOfTheBandwidth(t *testing.T) {
	for bandwidth, want := range map[int64]int64{0: 0, 1: 1, 10: 5} {
		if got := NewSlots(2, bandwidth).Share(); got != want {
			t.Errorf("of %d bytes a second each Job gets %d, want %d", bandwidth, got, want)
		}
	}
	if r := io.Reader(&bytes.Buffer{}); NewSlots(1, 0).Throttle(t.Context(), r) != r {
		t.Error("a stream without a limit is wrapped")
	}
}
