package lab

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// process is a child in its own process group. It is ended by its id.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// err is how it ended; read it after ended is closed.
	err error
}

// startProcess starts cmd with its output on out; options change how.
func startProcess(cmd *exec.Cmd, out io.Writer, options ...func(*syscall.SysProcAttr)) (*process, error) {
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = ownGroup()
	for _, option := range options {
		option(cmd.SysProcAttr)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// running reports whether the child has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the child at once, as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop asks the child to end, and kills it when it has not after grace. The
// error reports how it ended, when that was not on its own with exit code 0.
func (p *process) stop(grace time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return p.err
	case <-time.After(grace):
		p.kill()
		return fmt.Errorf("it did not end within %s of being asked to", grace)
	}
}
