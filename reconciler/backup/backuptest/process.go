package backuptest

import (
	"bytes"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/quorate/quorate/test/freeport"
)

// Process is a server that ends with the test.
type Process struct {
	cmd *exec.Cmd
}

// Start runs a server and waits until it listens at the address.
func Start(t *testing.T, address string, env []string, name string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(name, args...)}
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
func (p *Process) Stop() {
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
