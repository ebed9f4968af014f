package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// mountsBelow returns what is mounted at a path or below it, the latest first.
func mountsBelow(path string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var points []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && (fields[4] == path || strings.HasPrefix(fields[4], path+"/")) {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	return points, nil
}

// unmountBelow unmounts everything at a path and below it. What is still in
// use is detached, and goes when its last user does.
func unmountBelow(path string) error {
	points, err := mountsBelow(path)
	if err != nil {
		return err
	}
	var problems []error
	for _, point := range points {
		err := syscall.Unmount(point, 0)
		if errors.Is(err, syscall.EBUSY) {
			err = syscall.Unmount(point, syscall.MNT_DETACH)
		}
		// Gone already is well: what was mounted above took it along.
		if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOENT) {
			problems = append(problems, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(problems...)
}
