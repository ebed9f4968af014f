//go:build unix

// Package starvationtest has the process of a test stand still, as one whose CPU limit is used up.
package starvationtest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

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
