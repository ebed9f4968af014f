package main

import (
	"context"
	"errors"
	"time"
)

// noop is a pass over many clusters that are what Git says.
type noop struct {
	took             time.Duration
	allocs, requests float64
}

// measureNoop runs the benchmark of package reconciler.
func measureNoop(ctx context.Context) (noop, error) {
	list, err := runBenchmark(ctx, noOpPass, 5)
	if err != nil {
		return noop{}, err
	}
	return noopOf(list[0])
}

func noopOf(r result) (noop, error) {
	requests, counted := r.values["api-requests/op"]
	if !counted {
		return noop{}, errors.New("benchmark of a no-op pass: it does not count API requests")
	}
	return noop{took: time.Duration(r.values["ns/op"]), allocs: r.values["allocs/op"], requests: requests}, nil
}
