package backup

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// leavePrivileges takes the right of root to write to any file from this test's goroutine, until the test ends.
func leavePrivileges(t *testing.T) {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread() // the user is that of a thread
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Error(err) // and the thread ends with the goroutine
			return
		}
		runtime.UnlockOSThread()
	})
}
