package etcdtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// The releases that tests run.
const (
	V34 = "v3.4.34"
	V35 = "v3.5.35"
	V36 = "v3.6.16"
	V37 = "v3.7.3"
)

// Binary is a release of etcd: the one that the environment names (QUORATE_ETCD_34 and
// so on), else one that is built once and kept in the user's cache.
func Binary(version string) (string, error) {
	once, _ := binaries.LoadOrStore(version, sync.OnceValues(func() (string, error) { return build(version) }))
	return once.(func() (string, error))()
}

// binaries are what was asked for, by version.
var binaries sync.Map // each release is built once a process

func build(version string) (string, error) {
	if path := os.Getenv("QUORATE_ETCD_" + version[1:2] + version[3:4]); path != "" {
		return exec.LookPath(path)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "quorate", "bin")
	path := filepath.Join(bin, "etcd-"+version)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	main := "go.etcd.io/etcd/server/v3"
	if version == V34 {
		main = "go.etcd.io/etcd"
	}
	// What has the final name is whole.
	draft := fmt.Sprintf("%s.%d", path, os.Getpid())
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", draft, main)
	_, here, _, _ := runtime.Caller(0)
	build.Dir = filepath.Join(filepath.Dir(here), "..", "..", "..", "test", "sandbox", "etcd", version)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build etcd %s in %s: %w\n%s", version, build.Dir, err, out)
	}
	return path, os.Rename(draft, path)
}
