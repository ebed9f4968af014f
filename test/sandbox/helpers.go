package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killAll kills the processes that list returns, until it returns none.
func killAll(list func() ([]int, error)) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		pids, err := list()
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", pids)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
	}
}

// killNamed kills the processes of programs whose names begin so and that are
// given a path in this directory. It is for those that no record exists of:
// what containerd has started and what outlives it, and what `up` had started
// when it was killed itself.
func killNamed(dir string, programs ...string) error {
	err := killAll(func() ([]int, error) {
		paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		var pids []int
		for _, path := range paths {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && isNamed(path, dir, programs) {
				pids = append(pids, pid)
			}
		}
		return pids, nil
	})
	if err != nil {
		return fmt.Errorf("kill %s: %w", strings.Join(programs, ", "), err)
	}
	return nil
}

func isNamed(commandLine, dir string, programs []string) bool {
	text, err := os.ReadFile(commandLine)
	if err != nil {
		return false // it has just ended
	}
	program, args, _ := strings.Cut(string(text), "\x00")
	return strings.Contains(args, dir+"/") && slices.ContainsFunc(programs, func(prefix string) bool {
		return strings.HasPrefix(filepath.Base(program), prefix)
	})
}
