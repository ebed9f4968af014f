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
	place, ok := s.TryAcquire(For{})
	if !ok || s.Taken(Asked) != s.Places() {
		t.Fatalf("%d of %d places taken", s.Taken(Asked), s.Places())
	}
	if _, ok := s.TryAcquire(For{}); ok {
		t.Error("a second one has the only place")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Acquire(ended, For{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	place.Release()
	if place, err := s.Acquire(t.Context(), For{}); err != nil {
		t.Error(err)
	} else {
		place.Release()
	}
}

// 173: a backup that does not move leaves its place to another, and the next one to a store
// where it got stuck takes none that others wait for.
func TestABackupThatDoesNotMoveGivesWay(t *testing.T) {
	s := New(1, 0)
	first, _ := s.TryAcquire(For{})
	first.Release()
	second, ok := s.TryAcquire(For{})
	if !ok {
		t.Fatal("the place is kept")
	}
	first.Release() // at its end: its place is another's now
	if _, ok := s.TryAcquire(For{}); ok || s.Taken(Asked) != 1 {
		t.Fatalf("%d of %d places taken", s.Taken(Asked), s.Places())
	}
	third, ok := s.TryAcquire(For{Stuck: true})
	if _, more := s.TryAcquire(For{Stuck: true}); !ok || more {
		t.Errorf("the first one tries a stuck store: %t, another one: %t", ok, more)
	}
	second.Release()
	third.Release()
	if s.Taken(Asked) != 0 || s.Full(For{Stuck: true}) {
		t.Errorf("%d places taken", s.Taken(Asked))
	}
}

// 372: no backup of one kind waits for those of another, nor one to a store for those that are
// stuck at another.
func TestEachKindAndStoreHasItsPlaces(t *testing.T) {
	s := New(1, 0)
	for _, kind := range []Kind{Asked, Step, Repair} {
		for _, store := range []string{"a", "b"} {
			place, ok := s.TryAcquire(For{Kind: kind, Store: store})
			if !ok {
				t.Fatalf("kind %d, store %s: no place", kind, store)
			}
			place.Release()
			if _, ok := s.TryAcquire(For{Kind: kind, Store: store, Stuck: true}); !ok {
				t.Errorf("kind %d, store %s: none may try it", kind, store)
			}
		}
		if s.Full(For{Kind: kind}) || !s.Full(For{Kind: kind, Store: "a", Stuck: true}) {
			t.Errorf("kind %d: those that do not move keep a place", kind)
		}
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
