package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// sandbox is the one sandbox of this machine.
type sandbox struct {
	dir    string // all state; removed by down
	cache  string // what was built; kept
	source string // where this program's source is; empty outside of a checkout, where nothing can be built
	// kubernetes is the release that is asked for, one of kubernetesVersions.
	kubernetes string
	out        io.Writer
	progress   *progress
}

// maxDir keeps the paths of sockets below dir within the 108 bytes that Linux
// gives them.
const maxDir = 60

func newSandbox(out, progressOut io.Writer) (*sandbox, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find the build cache: %w", err)
	}
	kubernetes, err := kubernetesVersion(os.Getenv("QUORATE_KUBERNETES"))
	if err != nil {
		return nil, err
	}
	s := &sandbox{
		dir:        cmp.Or(os.Getenv("QUORATE_SANDBOX_DIR"), "/var/tmp/quorate-sandbox"),
		cache:      filepath.Join(cmp.Or(os.Getenv("QUORATE_CACHE"), filepath.Join(home, ".cache", "quorate")), "sandbox"),
		source:     sourceDir(),
		kubernetes: kubernetes,
		out:        out,
		progress:   newProgress(progressOut),
	}
	if !filepath.IsAbs(s.dir) || len(s.dir) > maxDir {
		return nil, fmt.Errorf("QUORATE_SANDBOX_DIR=%s: want an absolute path of at most %d bytes", s.dir, maxDir)
	}
	return s, nil
}

// sourceDir finds the source upwards from the working directory. The binary does not know where it was built: the
// path of a checkout in it would make each checkout compile everything again.
func sourceDir() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		source := filepath.Join(dir, "test", "sandbox")
		if _, err := os.Stat(filepath.Join(source, "go.mod")); err == nil {
			return source
		}
	}
	return ""
}

// path joins elements to the state directory.
func (s *sandbox) path(elements ...string) string {
	return filepath.Join(append([]string{s.dir}, elements...)...)
}

// marker is the file that shows a directory to be the sandbox's, so that down
// never deletes any other.
const marker = "this-is-a-quorate-sandbox"

// makeDir makes the state directory.
func (s *sandbox) makeDir() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look at the state directory: %w", err)
	}
	if _, err := os.Stat(s.path(marker)); err != nil && len(entries) > 0 {
		return fmt.Errorf("QUORATE_SANDBOX_DIR=%s holds something else; name an empty directory", s.dir)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	return errors.Join(writeFile(s.path(marker), ""), writeFile(s.path("kubernetes"), s.kubernetes))
}

// release is that of the Kubernetes of the sandbox that is up; "" when none is.
func (s *sandbox) release() string {
	text, _ := os.ReadFile(s.path("kubernetes"))
	return string(text)
}

// mustBeOfRelease says what to do when the sandbox that is up is of another Kubernetes
// than is asked for: the programs of two releases must not be mixed.
func (s *sandbox) mustBeOfRelease() error {
	if up := s.release(); up != "" && up != s.kubernetes {
		return fmt.Errorf("the sandbox at %s is of Kubernetes %s, not %s; run `sandbox down` first, or set QUORATE_KUBERNETES=%s", s.dir, up, s.kubernetes, up)
	}
	return nil
}

// mustExist says what to do when there is no sandbox.
func (s *sandbox) mustExist() error {
	if _, err := os.Stat(s.path(marker)); err != nil {
		return fmt.Errorf("there is no sandbox at %s; run `sandbox up` first", s.dir)
	}
	return s.mustBeOfRelease()
}

// lock waits until no other sandbox command starts or ends processes. The file
// lies in the cache, because down removes the state.
func (s *sandbox) lock() (unlock func(), err error) {
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock: %w", err), file.Close())
	}
	return func() { file.Close() }, nil
}

// writeFile writes a file, whole or not at all, and the directories above it.
// It leaves a file that
// is as it should be untouched, because kube-proxy ends when its own is written.
func writeFile(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	draft := path + ".new"
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
