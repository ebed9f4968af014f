package restore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/test/needs"
)

// 205: a restore needs 1.2 times the database on the volume, and the two files of 64 MiB
// that etcd's log begins with. A file system that has no more is the judge.
func TestARestoreNeedsRoomForOneCopy(t *testing.T) {
	if onTmpfs(t) {
		dir, size := os.Getenv(tmpfsEnv), int64(0)
		if _, err := fmt.Sscan(os.Getenv(argumentEnv), &size); err != nil {
			t.Fatal(err)
		}
		r := request(filepath.Join(dir, "volume"))
		if err := os.Mkdir(r.Volume, 0o700); err != nil {
			t.Fatal(err)
		}
		r.Former, r.Size = "", size
		r.Fetch = func(path string) error { return copyDatabase(os.Getenv(sourceEnv), path) }
		if err := Run(r, zap.NewNop()); err != nil {
			t.Fatal(err)
		}
		last, _, err := revisions(filepath.Join(r.Volume, "data", "member", "snap", "db"))
		if err != nil || last < state.RevisionBump {
			t.Errorf("the new database is at %d: %v", last, err)
		}
		return
	}
	source := filepath.Join(t.TempDir(), "sent.db")
	size := largeDatabase(t, source, 160)
	seal(t, source)
	runOnTmpfs(t, size*12/10+128<<20, source, fmt.Sprint(size))
}

// 206: where there is no room, nothing is fetched, and it is the volume's fault and not the
// backup's. It works as soon as there is room.
func TestARestoreWithoutRoomFetchesNothing(t *testing.T) {
	if onTmpfs(t) {
		r := request(os.Getenv(tmpfsEnv))
		fetched := false
		r.Former, r.Size = "", 64<<20
		r.Fetch = func(path string) error {
			fetched = true
			return copyDatabase(os.Getenv(sourceEnv), path)
		}
		err := Run(r, zap.NewNop())
		if !errors.Is(err, ErrNoRoom) || errors.Is(err, ErrUnfit) || fetched || !strings.Contains(err.Error(), "it needs 214.4Mi, and 160Mi are free") {
			t.Fatalf("%v, fetched %t", err, fetched)
		}
		// What the arithmetic does not see is seen by the disk, and called the same.
		r.Size = 0
		if err := os.WriteFile(filepath.Join(r.Volume, "somebody's"), make([]byte, 150<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Run(r, zap.NewNop()); !errors.Is(err, ErrNoRoom) || errors.Is(err, ErrUnfit) || !fetched {
			t.Fatalf("%v, fetched %t", err, fetched)
		}
		if err := os.Remove(filepath.Join(r.Volume, "somebody's")); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("", r.Volume, "", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", 300<<20)); err != nil {
			t.Fatal(err)
		}
		r.Size = 64 << 20
		if err := Run(r, zap.NewNop()); err != nil {
			t.Error(err)
		}
		return
	}
	source := filepath.Join(t.TempDir(), "sent.db")
	largeDatabase(t, source, 10)
	seal(t, source)
	runOnTmpfs(t, 160<<20, source, "")
}

// How a test runs again on a file system of its own.
const (
	tmpfsEnv    = "QUORATE_TEST_TMPFS"
	sourceEnv   = "QUORATE_TEST_SOURCE"
	argumentEnv = "QUORATE_TEST_ARGUMENT"
)

// noMount begins what a test prints that could not mount its file system.
const noMount = "mount of a tmpfs:"

// onTmpfs reports whether the test runs there, and mounts it.
func onTmpfs(t *testing.T) bool {
	t.Helper()
	dir, options, inside := strings.Cut(os.Getenv(tmpfsEnv), ":")
	if !inside {
		return false
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(noMount, err)
	}
	t.Setenv(tmpfsEnv, dir)
	return true
}

// runOnTmpfs runs the test again in a process with a file system of that many bytes, which
// nobody else sees, and which is gone with it.
func runOnTmpfs(t *testing.T, size int64, source, argument string) {
	t.Helper()
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), fmt.Sprintf("%s=%s:size=%d", tmpfsEnv, t.TempDir(), size), sourceEnv+"="+source, argumentEnv+"="+argument)
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // which makes its mounts private
	if id := os.Geteuid(); id != 0 {
		again.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	out, err := again.CombinedOutput()
	if strings.Contains(string(out), noMount) || errors.Is(err, syscall.EPERM) {
		needs.Skip(t, "needs to mount a tmpfs, as root or in a user namespace: %v", err)
	}
	if text := string(out); err != nil || !strings.Contains(text, "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, text)
	}
}
