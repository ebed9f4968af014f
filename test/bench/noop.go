package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// noop is a pass over many clusters that are what Git says.
type noop struct {
	took             time.Duration
	allocs, requests float64
}

// measureNoop runs the benchmark of package reconciler, and reads its line:
//
//	BenchmarkNoOpPass1000Clusters-2  3  106000000 ns/op  0 api-requests/op  …  190002 allocs/op
func measureNoop(ctx context.Context) (noop, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "./reconciler", "-run", "^$", "-bench", "NoOpPass1000Clusters", "-benchtime", "5x")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return noop{}, fmt.Errorf("benchmark of a no-op pass: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "BenchmarkNoOp") {
			return parseNoop(line)
		}
	}
	return noop{}, fmt.Errorf("benchmark of a no-op pass: no result in %q", out)
}

// figures reads the pairs of a value and its unit, by unit.
func figures(line string) (map[string]float64, error) {
	values := map[string]float64{}
	fields := strings.Fields(line)
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return nil, err
		}
		values[fields[i+1]] = value
	}
	return values, nil
}

// parseNoop reads the figures of a pass.
func parseNoop(line string) (noop, error) {
	values, err := figures(line)
	if err != nil {
		return noop{}, fmt.Errorf("benchmark of a no-op pass: %q: %w", line, err)
	}
	requests, counted := values["api-requests/op"]
	if !counted || values["ns/op"] == 0 {
		return noop{}, fmt.Errorf("benchmark of a no-op pass: figures are missing in %q", line)
	}
	return noop{took: time.Duration(values["ns/op"]), allocs: values["allocs/op"], requests: requests}, nil
}
