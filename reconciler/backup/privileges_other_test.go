//go:build !linux

package backup

import (
	"os"
	"testing"
)

// leavePrivileges skips the test for root, which may write to any file.
func leavePrivileges(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
}
