package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a process that the sandbox has started, recorded in a file so
// that a later command can find it. A process ID alone would not do: once the
// process has ended another may get it.
type process struct {
	Name  string   `json:"name"`
	PID   int      `json:"pid"`
	Start string   `json:"start"` // clock ticks from boot to its start
	Boot  string   `json:"boot"`  // which boot of the machine
	Args  []string `json:"args"`
}

func (s *sandbox) recordPath(name string) string { return s.path("processes", name+".json") }
func (s *sandbox) logPath(name string) string    { return s.path("logs", name+".log") }

// start starts a process in the background, unless it runs. It outlives this
// program: it has its own session, and writes to a file.
func (s *sandbox) start(name string, args ...string) error {
	if s.running(name) {
		return nil
	}
	if err := os.MkdirAll(s.path("logs"), 0o755); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	log, err := os.OpenFile(s.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	command := exec.Command(args[0], args[1:]...)
	command.Dir, command.Stdout, command.Stderr = "/", log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if err := s.record(name, command.Process.Pid, args); err != nil {
		return errors.Join(err, command.Process.Kill())
	}
	// Wait in the background, so that a process that ends early is seen to
	// have ended, rather than lingering as a zombie.
	go command.Wait() //nolint:errcheck // running and the log tell how it ended
	return nil
}

func (s *sandbox) record(name string, pid int, args []string) error {
	start, err := startTime(pid)
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	boot, err := bootID()
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	text, err := json.Marshal(process{Name: name, PID: pid, Start: start, Boot: boot, Args: args})
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	return writeFile(s.recordPath(name), string(text))
}

// recorded returns the names of the recorded processes, whether they run or
// not.
func (s *sandbox) recorded() ([]string, error) {
	paths, err := filepath.Glob(s.recordPath("*"))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".json"))
	}
	return names, nil
}

func readProcess(path string) (process, error) {
	var p process
	text, err := os.ReadFile(path)
	if err != nil {
		return p, fmt.Errorf("read process record: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read process record %s: %w", path, err)
	}
	return p, nil
}

func (s *sandbox) running(name string) bool {
	p, err := readProcess(s.recordPath(name))
	return err == nil && p.alive()
}

// alive reports whether this very process still runs.
func (p process) alive() bool {
	start, err := startTime(p.PID)
	if err != nil || start != p.Start {
		return false
	}
	boot, err := bootID()
	return err == nil && boot == p.Boot
}

// kill ends a process at once. Nothing of the sandbox needs a gentler end: what
// it leaves is either kept on purpose, as after a power cut, or removed.
func (p process) kill() error {
	err := killAll(func() ([]int, error) {
		if p.alive() {
			return []int{p.PID}, nil
		}
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("end %s: %w", p.Name, err)
	}
	return nil
}

// endProcess ends a recorded process and forgets it. A record that a crash of
// the machine has spoilt is of a process that ended with the machine.
func (s *sandbox) endProcess(name string) error {
	if p, err := readProcess(s.recordPath(name)); err == nil {
		if err := p.kill(); err != nil {
			return err
		}
	}
	if err := os.Remove(s.recordPath(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	return nil
}

// awaitProcess awaits a condition that the named processes must bring about,
// and shows the end of a log when one of them has ended instead.
func (s *sandbox) awaitProcess(ctx context.Context, what string, limit time.Duration, condition func() error, names ...string) error {
	alive := func() error {
		for _, name := range names {
			if !s.running(name) {
				return fmt.Errorf("%s has ended; the last lines of %s:\n%s", name, s.logPath(name), tail(s.logPath(name)))
			}
		}
		return nil
	}
	if err := await(ctx, limit, alive, condition); err != nil {
		hint := ""
		if alive() == nil && len(names) > 0 {
			hint = fmt.Sprintf("\nthe last lines of %s:\n%s", s.logPath(names[0]), tail(s.logPath(names[0])))
		}
		return fmt.Errorf("await %s: %w%s", what, err, hint)
	}
	return nil
}

// tail returns the last lines of a file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "    " + strings.Join(lines[max(0, len(lines)-15):], "\n    ")
}

// startTime returns when a process was started, in clock ticks from boot. A
// process that has ended but was not waited for counts as gone.
func startTime(pid int) (string, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", fmt.Errorf("look at process %d: %w", pid, err)
	}
	// The second field is the program's name in brackets and may hold anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[19], nil
}

func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot ID: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
