package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// year is a year of statuses on their branch.
type year struct {
	name string
	// change is how long one took, with its commit and push.
	change time.Duration
	// written and kept are the repository's size in bytes, before Git's own upkeep and
	// after it.
	written, kept float64
}

// measureYear runs the benchmark of the daemon.
func measureYear(ctx context.Context) ([]year, error) {
	results, err := runBenchmark(ctx, yearOfStatus, 1)
	if err != nil {
		return nil, err
	}
	list := make([]year, len(results))
	for i, r := range results {
		list[i] = year{r.name, time.Duration(r.values["ns/change"]), r.values["written-B"], r.values["kept-B"]}
	}
	return list, nil
}

func printYear(out io.Writer, list []year) {
	fmt.Fprintln(out, "a year of statuses, 2,000 changes of 50 clusters:")
	for _, y := range list {
		fmt.Fprintf(out, "  %s   %s a change; the repository has %.1f MiB, %.1f MiB after git gc\n", y.name, lab.Round(y.change), y.written/(1<<20), y.kept/(1<<20))
	}
}
