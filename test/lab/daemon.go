package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/freeport"
)

// stopGrace is how long a daemon may take to exit.
const stopGrace = 30 * time.Second

// DaemonOptions are how quorate runs as a process of this machine. Zero values
// leave a flag out, unless they say otherwise.
type DaemonOptions struct {
	// Binary is quorate's path. Default: Binary().
	Binary string
	// Earlier says that Binary is older than the flags --insecure-git and --insecure-stores,
	// which GitServer and S3Server need, for they have no TLS, and than --namespaces.
	Earlier bool
	// Repo is the repository's URL; required.
	Repo string
	// Branch is the branch to follow, default Branch. Path is where in the
	// repository the files are, default "clusters".
	Branch, Path string
	// Interval between two polls of Git. Default 1s.
	Interval time.Duration
	// Kubeconfig of the cluster; required.
	Kubeconfig string
	// Listen is where metrics are served. Default: a free port on loopback.
	Listen string
	// BackupURL is the template of --backup-url.
	BackupURL string
	// EtcdRepository is where etcd images come from.
	EtcdRepository string
	// GuardImage is quorate's image for the members' pods. Default Image.
	GuardImage string
	// Env is added to this process's environment.
	Env map[string]string
	// Namespaces are the only ones that quorate works in; none for all. The first of them counts
	// as its own.
	Namespaces []string
	// Args are added at the end.
	Args []string
	// LogFile gets the unchanged log. Default: a new file in the temporary
	// directory; Daemon.LogFile names it.
	LogFile string
	// Each is given every log line as it comes; it must return soon.
	Each func(LogLine)
}

// Daemon is quorate run in its own process group, with its log.
type Daemon struct {
	// Log collects the lines over all restarts.
	Log *Log
	// LogFile is where the unchanged log is kept.
	LogFile string

	options DaemonOptions
	process *process
	pumped  sync.WaitGroup
}

// StartDaemon starts quorate. It does not wait for it to be ready.
func StartDaemon(ctx context.Context, o DaemonOptions) (*Daemon, error) {
	if err := o.fill(ctx); err != nil {
		return nil, fmt.Errorf("start quorate: %w", err)
	}
	d := &Daemon{Log: NewLog(o.Each), LogFile: o.LogFile, options: o}
	return d, d.Start()
}

func (o *DaemonOptions) fill(ctx context.Context) (err error) {
	if o.Repo == "" || o.Kubeconfig == "" {
		return errors.New("DaemonOptions need Repo and Kubeconfig")
	}
	if o.Binary == "" {
		if o.Binary, err = Binary(ctx); err != nil {
			return err
		}
	}
	if o.Listen == "" {
		if o.Listen, err = freeport.At("127.0.0.1"); err != nil {
			return err
		}
	}
	if o.LogFile == "" {
		o.LogFile = filepath.Join(os.TempDir(), fmt.Sprintf("quorate-%d-%d.log", os.Getpid(), time.Now().UnixNano()))
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	for field, value := range map[*string]string{&o.Branch: Branch, &o.Path: "clusters", &o.GuardImage: Image} {
		if *field == "" {
			*field = value
		}
	}
	return nil
}

func (o *DaemonOptions) args() []string {
	args := []string{
		"run", "--repo=" + o.Repo, "--branch=" + o.Branch, "--path=" + o.Path, "--interval=" + o.Interval.String(),
		"--kubeconfig=" + o.Kubeconfig, "--listen=" + o.Listen, "--guard-image=" + o.GuardImage,
		"--leader-elect=false", "--lease-namespace=" + slices.Concat(o.Namespaces, []string{"default"})[0], "--log-format=json",
	}
	if !o.Earlier {
		args = append(args, "--insecure-git", "--insecure-stores")
		if len(o.Namespaces) > 0 {
			args = append(args, "--namespaces="+strings.Join(o.Namespaces, ","))
		}
	}
	if o.BackupURL != "" {
		args = append(args, "--backup-url="+o.BackupURL)
	}
	if o.EtcdRepository != "" {
		args = append(args, "--etcd-repository="+o.EtcdRepository)
	}
	return append(args, o.Args...)
}

// Start starts quorate again after Kill or Stop, with the same options.
func (d *Daemon) Start() error {
	if d.Running() {
		return nil
	}
	file, err := os.OpenFile(d.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start quorate: %w", err)
	}
	reader, writer := io.Pipe()
	d.pumped.Go(func() {
		defer func() { _ = file.Close() }()
		_, _ = d.Log.ReadFrom(io.TeeReader(reader, file))
		_, _ = io.Copy(file, reader) // behind a line too long to be read
	})
	cmd := exec.Command(d.options.Binary, d.options.args()...)
	cmd.Env = os.Environ()
	for name, value := range d.options.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if d.process, err = startProcess(cmd, writer); err != nil {
		_ = writer.Close()
		return fmt.Errorf("start quorate: %w", err)
	}
	go func(p *process) {
		<-p.ended
		_ = writer.Close()
	}(d.process)
	return nil
}

// Running reports whether the process has not ended.
func (d *Daemon) Running() bool { return d.process != nil && d.process.running() }

// PID is the process's id.
func (d *Daemon) PID() int { return d.process.cmd.Process.Pid }

// Kill ends quorate with SIGKILL, and returns when its log is read to the end.
func (d *Daemon) Kill() {
	if d.Running() {
		d.process.kill()
	}
	d.pumped.Wait()
}

// Stop ends quorate with SIGTERM, and returns when its log is read to the end.
// An exit code other than 0 is an error.
func (d *Daemon) Stop() error {
	if !d.Running() {
		return nil
	}
	err := d.process.stop(stopGrace)
	d.pumped.Wait()
	if err != nil {
		return fmt.Errorf("stop quorate (log in %s): %w", d.LogFile, err)
	}
	return nil
}

// Pause stops the process as it is, as a machine that is suspended does, until Resume.
func (d *Daemon) Pause() error { return d.process.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (d *Daemon) Resume() error { return d.process.cmd.Process.Signal(syscall.SIGCONT) }

// Exited waits until quorate has exited by itself, and returns how, nil for exit code 0.
func (d *Daemon) Exited(ctx context.Context) error {
	select {
	case <-d.process.ended:
		d.pumped.Wait()
		return d.process.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Restart kills quorate and starts it again.
func (d *Daemon) Restart() error {
	d.Kill()
	return d.Start()
}

// endedError reports how the process ended; nil is exit code 0.
func (d *Daemon) endedError(p *process) error {
	if p.err == nil {
		return fmt.Errorf("quorate exited unexpectedly, see %s", d.LogFile)
	}
	return fmt.Errorf("quorate has ended, see %s: %w", d.LogFile, p.err)
}

// URL is where the daemon serves, as in URL() + "/metrics".
func (d *Daemon) URL() string { return "http://" + d.options.Listen }

// WaitFor is Log.WaitFor, and fails at once when quorate has exited.
func (d *Daemon) WaitFor(ctx context.Context, from int, limit time.Duration, match func(LogLine) bool) (LogLine, int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := d.process
	go func() {
		select {
		case <-p.ended:
			d.pumped.Wait()
			cancel(d.endedError(p))
		case <-ctx.Done():
		}
	}()
	return d.Log.WaitFor(ctx, from, limit, match)
}
