//go:build unix

// Package starvationtest has the process of a test stand still, as one whose CPU limit is used up.
package starvationtest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/starvation"
)

// Watch has a standstill be measured until the test ends, or end is called.
func Watch(t testing.TB) (end func()) {
	var watching sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	watching.Go(func() { starvation.Watch(ctx, slog.New(slog.DiscardHandler)) })
	end = func() {
		cancel()
		watching.Wait()
	}
	t.Cleanup(end)
	time.Sleep(100 * time.Millisecond) // it has begun
	return end
}

// StandStill stops this process, and has another one let it go on after d. Tests that run in parallel must
// not run beside it.
func StandStill(t testing.TB, d time.Duration) {
	goOn := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("sleep %.3f; kill -CONT %d", d.Seconds(), os.Getpid()))
	if err := goOn.Start(); err != nil {
		t.Fatalf("start what lets the process go on: %v", err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		t.Errorf("stop the process: %v", err)
	}
	if err := goOn.Wait(); err != nil {
		t.Errorf("let the process go on: %v", err)
	}
}
