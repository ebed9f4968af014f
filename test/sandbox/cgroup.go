package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroupRoot is above all pods of the sandbox, in every hierarchy.
const cgroupRoot = "/quorate-sandbox"

// hierarchies returns where cgroups are mounted: one place on a machine with
// cgroup v2, one a controller with v1.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("list cgroup hierarchies: %w", err)
	}
	var all []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			all = append(all, fields[1])
		}
	}
	return all, nil
}

// makeCgroup makes a cgroup in every hierarchy.
func makeCgroup(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range all {
		dir := hierarchy
		for element := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
			if err := delegate(dir); err != nil {
				return err
			}
			dir = filepath.Join(dir, element)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("make cgroup: %w", err)
			}
		}
	}
	return nil
}

// delegate lets the cgroups below use every controller that this one has,
// which has to be asked for with cgroup v2.
func delegate(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list cgroup controllers: %w", err)
	}
	for _, controller := range strings.Fields(string(controllers)) {
		// Some refuse while a process uses them in another way; kubelet says
		// which of them it cannot do without.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
	return nil
}

// cgroupDirs returns the directories of a cgroup and those below it, the
// deepest first.
func cgroupDirs(name string) ([]string, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, hierarchy := range all {
		err := filepath.WalkDir(filepath.Join(hierarchy, name), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list cgroups: %w", err)
		}
	}
	slices.Reverse(dirs)
	return dirs, nil
}

// killCgroup kills every process in a cgroup and below, and removes the
// cgroups below it.
func killCgroup(name string) error {
	err := killAll(func() ([]int, error) {
		dirs, err := cgroupDirs(name)
		return processesIn(dirs), err
	})
	if err != nil {
		return fmt.Errorf("kill pods: %w", err)
	}
	dirs, err := cgroupDirs(name)
	if err != nil {
		return err
	}
	return removeCgroups(dirs)
}

func processesIn(cgroups []string) []int {
	var pids []int
	for _, dir := range cgroups {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func removeCgroups(dirs []string) error {
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}
