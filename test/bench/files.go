package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// files is a check of many files by quorate validate.
type files struct {
	// took is the median wall time, and memory the largest resident size.
	took   time.Duration
	memory int64
}

// fileCount is how many files are checked, one of a hundred with a mistake.
const fileCount = 10000

// measureFiles builds quorate and lets it check files of the fleet example's
// size five times.
func measureFiles(ctx context.Context) (files, error) {
	dir, err := os.MkdirTemp("", "quorate-bench-*")
	if err != nil {
		return files{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := lab.Binary(ctx)
	if err != nil {
		return files{}, err
	}
	tree := filepath.Join(dir, "clusters")
	if err := writeFiles(tree); err != nil {
		return files{}, err
	}
	var f files
	var times []time.Duration
	for range 5 {
		took, memory, err := validateFiles(ctx, binary, tree)
		if err != nil {
			return files{}, err
		}
		times = append(times, took)
		f.memory = max(f.memory, memory)
	}
	slices.Sort(times)
	f.took = times[len(times)/2]
	return f, nil
}

// writeFiles writes the first cluster of the fleet example under many names.
func writeFiles(dir string) error {
	data, err := os.ReadFile("examples/fleet/production/payments/clusters.yaml")
	if err != nil {
		return err
	}
	text, _, _ := strings.Cut(string(data), "---\n")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for i := range fileCount {
		one := strings.Replace(text, "name: orders", fmt.Sprintf("name: orders-%05d", i), 1)
		if i%100 == 0 {
			one = strings.Replace(one, "replicas:", "replica:", 1)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.yaml", i)), []byte(one), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// validateFiles runs the check once, and makes sure that it found the mistakes.
func validateFiles(ctx context.Context, binary, dir string) (took time.Duration, memory int64, err error) {
	cmd := exec.CommandContext(ctx, binary, "validate", dir)
	begin := time.Now()
	out, err := cmd.Output()
	took = time.Since(begin)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), fmt.Sprintf("%d valid clusters, %d errors", fileCount-fileCount/100, fileCount/100)) {
		return 0, 0, fmt.Errorf("validate %d files: %w, %d bytes of output", fileCount, err, len(out))
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		memory = usage.Maxrss << 10
	}
	return took, memory, nil
}
