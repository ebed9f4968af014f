package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// A backup's process keeps its memory small, unless a person has said how large it may
// be.
func TestABackupBoundsItsMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for set, want := range map[int64]int64{math.MaxInt64: backupMemory, 1 << 30: 1 << 30} {
		debug.SetMemoryLimit(set)
		boundMemory()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("with a limit of %d it is %d, want %d", set, got, want)
		}
	}
}
