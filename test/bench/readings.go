package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// reading is one way to read a repository.
type reading struct {
	name string
	took time.Duration
	// memory is what was allocated, and peak the largest resident size, in bytes;
	// zero where it was not measured.
	memory, peak float64
}

// The benchmarks, and how often each way is measured.
const (
	fleetPage, fleetPageTimes       = "FleetPage", 20
	scrape, scrapeTimes             = "Scrape", 5
	noOpPass                        = "NoOpPass1000Clusters"
	yearOfStatus                    = "YearOfStatus"
	unchangedBranch, unchangedTimes = "UnchangedBranch", 21
	firstFetch, firstFetchTimes     = "FirstFetch", 21
	newCommit, newCommitTimes       = "NewCommit", 5
)

// measureReadings runs a benchmark that measures several ways. It takes the mean of each,
// or the median, where the benchmark tells it.
func measureReadings(ctx context.Context, benchmark string, times int) ([]reading, error) {
	results, err := runBenchmark(ctx, benchmark, times)
	if err != nil {
		return nil, err
	}
	list := make([]reading, len(results))
	for i, r := range results {
		list[i] = reading{r.name, time.Duration(cmp.Or(r.values["median-ns/op"], r.values["ns/op"])), r.values["B/op"], r.values["peak-B"]}
	}
	return list, nil
}

// readingsOf is measureReadings of one benchmark.
func readingsOf(benchmark string, times int) func(context.Context) ([]reading, error) {
	return func(ctx context.Context) ([]reading, error) { return measureReadings(ctx, benchmark, times) }
}

// printReadings prints how long each way takes.
func printReadings(out io.Writer, title string, list []reading) {
	fmt.Fprintln(out, title)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, l := range list {
		var memory []string
		if l.memory > 0 {
			memory = append(memory, fmt.Sprintf("%.0f KiB allocated", l.memory/1024))
		}
		if l.peak > 0 {
			memory = append(memory, fmt.Sprintf("%.0f MiB at most", l.peak/(1<<20)))
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", l.name, lab.Round(l.took), strings.Join(memory, ", "))
	}
	_ = w.Flush()
}
