package backuptest

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/test/freeport"
)

// installed is the path of a program from a Go module, "path@version", that is built
// once and kept in the user's cache.
func installed(module string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "quorate", "bin")
	pkg, version, _ := strings.Cut(module, "@")
	path := filepath.Join(bin, filepath.Base(pkg))
	if out, err := exec.Command("go", "version", "-m", path).Output(); err == nil && bytes.Contains(out, []byte("\t"+version)) {
		return path, nil
	}
	build := exec.Command("go", "install", module)
	build.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
	build.Dir = os.TempDir()
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New("go install " + module + ": " + string(out))
	}
	return path, nil
}

// process is a server that ends with the test.
type process struct {
	cmd *exec.Cmd
}

// start runs a server and waits until it listens at the address.
func start(t *testing.T, address string, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...)}
	p.cmd.Env, p.cmd.Dir = env, t.TempDir()
	var log bytes.Buffer
	p.cmd.Stdout, p.cmd.Stderr = &log, &log
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(p.Stop)
	for range 600 {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return p
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.Stop()
	t.Fatalf("%s does not listen:\n%s", name, log.String())
	return nil
}

// Stop ends the server as a crash would.
func (p *process) Stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// FreeAddress is a loopback address for a server.
func FreeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.At("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return address
}
