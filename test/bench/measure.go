package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what commands took, one after the other.
type usage struct {
	// wall is from the start of the first to the end of the last, cpu what they
	// computed, in user and kernel.
	wall, cpu time.Duration
	// memory is the most anonymous memory that one of them had, in bytes: what the
	// kernel cannot take back, unlike the pages of files.
	memory int64
}

// sampling is how often the memory of a process is sampled. Go returns memory
// slowly, so that no peak of a heap is between two samples.
const sampling = 5 * time.Millisecond

// measure runs commands one after the other.
func measure(ctx context.Context, commands ...*exec.Cmd) (usage, error) {
	var sum usage
	for _, cmd := range commands {
		one, err := measureOne(ctx, cmd)
		if err != nil {
			return usage{}, err
		}
		sum.wall += one.wall
		sum.cpu += one.cpu
		sum.memory = max(sum.memory, one.memory)
	}
	return sum, nil
}

func measureOne(ctx context.Context, cmd *exec.Cmd) (usage, error) {
	name := filepath.Base(cmd.Path)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return usage{}, fmt.Errorf("start %s: %w", name, err)
	}
	ended, peak := make(chan struct{}), make(chan int64)
	go func() { peak <- watchMemory(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	wall := time.Since(begin)
	close(ended)
	memory := <-peak
	if err != nil {
		return usage{}, fmt.Errorf("run %s: %w: %s", name, causeOf(ctx, err), bytes.TrimSpace(said.Bytes()))
	}
	return usage{wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), memory}, nil
}

// causeOf is why a command was ended, where that was the bench itself.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// watchMemory is the most anonymous memory that the process had until it ended.
func watchMemory(pid int, ended <-chan struct{}) (peak int64) {
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return peak
		case <-ticker.C:
			peak = max(peak, anonymousMemory(pid))
		}
	}
}

// anonymousMemory of a process, in bytes; 0 for one that has ended.
func anonymousMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	return parseAnonymous(string(text))
}

// parseAnonymous reads the line RssAnon of /proc/PID/status.
func parseAnonymous(status string) int64 {
	_, rest, _ := strings.Cut(status, "\nRssAnon:")
	fields := strings.Fields(rest)
	if len(fields) < 2 || fields[1] != "kB" {
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
