package sources

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// unnoticed is a context whose deadline has passed, and whose timer has not fired yet.
type unnoticed struct{ context.Context }

func (unnoticed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// A connection that notices the deadline before its context does has no other reason to tell.
func TestADeadlineThatAConnectionNoticesFirstIsTheReason(t *testing.T) {
	err := explain(unnoticed{t.Context()}, "fetch", os.ErrDeadlineExceeded)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no complete answer in time") {
		t.Error(err)
	}
	if err := explain(t.Context(), "fetch", os.ErrDeadlineExceeded); errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
