package restore

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/quorate/quorate/reconciler/state"
)

// ErrNoRoom says that the volume is too small for what is to be restored. Nothing is
// lost: it is tried again when the volume has grown.
var ErrNoRoom = errors.New("the volume has no room for it")

// noRoom marks an error of a full disk.
func noRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}

// checkRoom reports by ErrNoRoom that a volume has not the room that a restore needs.
func checkRoom(volume string, size int64) error {
	if size == 0 {
		return nil // it is of a quorate that did not say
	}
	free, err := freeSpace(volume)
	if err != nil {
		return fmt.Errorf("how much room the volume has: %w", &os.PathError{Op: "statfs", Path: volume, Err: err})
	}
	if need := state.RestoreRoom(size); free < need {
		return fmt.Errorf("%w: it needs %s, and %s are free", ErrNoRoom, state.SizeText(need), state.SizeText(free))
	}
	return nil
}
