package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// result is a line of a benchmark: its name below the benchmark's, and its figures by
// their units.
type result struct {
	name   string
	values map[string]float64
}

// benchmarks are those that are part of the table, each with its package.
func benchmarks() map[string]string {
	return map[string]string{
		noOpPass: "./reconciler", unchangedBranch: "./sources", firstFetch: "./sources", newCommit: "./sources", yearOfStatus: "./cmd/quorate/internal/publish",
		fleetPage: "./cmd/quorate/internal/page", scrape: "./reconciler/report",
	}
}

// runBenchmark runs a benchmark so often.
func runBenchmark(ctx context.Context, benchmark string, times int) ([]result, error) {
	cmd := exec.CommandContext(ctx, "go", "test", benchmarks()[benchmark], "-run", "^$", "-bench", "^Benchmark"+benchmark+"$", "-benchtime", fmt.Sprintf("%dx", times), "-timeout", "1h")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmark %s: %w", benchmark, err)
	}
	var list []result
	for line := range strings.Lines(string(out)) {
		if r, is, err := parseResult(benchmark, line); err != nil {
			return nil, fmt.Errorf("benchmark %s: %q: %w", benchmark, line, err)
		} else if is {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("benchmark %s: no result in %q", benchmark, out)
	}
	return list, nil
}

// parseResult reads a line such as
//
//	BenchmarkNewCommit/files=100-2  3  106000000 ns/op  190002 allocs/op
//
// and reports whether it is one of the benchmark's.
func parseResult(benchmark, line string) (r result, is bool, err error) {
	rest, is := strings.CutPrefix(line, "Benchmark"+benchmark)
	if !is {
		return result{}, false, nil
	}
	fields := strings.Fields(rest)
	if !strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "-") || len(fields) < 4 {
		return result{}, false, nil
	}
	r = result{name: strings.TrimPrefix(fields[0], "/"), values: map[string]float64{}}
	for i := 2; i+1 < len(fields); i += 2 {
		if r.values[fields[i+1]], err = strconv.ParseFloat(fields[i], 64); err != nil {
			return result{}, true, err
		}
	}
	if r.values["ns/op"] == 0 {
		return result{}, true, errors.New("it has no time")
	}
	return r, true, nil
}
