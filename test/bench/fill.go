package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// valueBytes is the size of a value: large, so that filling takes seconds. Values are
// random, since no store or disk may gain by squeezing them.
const valueBytes = 64 << 10

// fillers is how many requests fill at a time.
const fillers = 8

// fill puts that many bytes of values into etcd.
func fill(ctx context.Context, client *clientv3.Client, size int64) error {
	return fillWith(ctx, func(ctx context.Context, next *atomic.Int64) error {
		return fillSome(ctx, client, next, size/valueBytes)
	})
}

// fillWith has several fill at a time, which take what is next from one counter.
func fillWith(ctx context.Context, some func(ctx context.Context, next *atomic.Int64) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range fillers {
		group.Go(func() {
			if err := some(ctx, &next); err != nil {
				cancel(fmt.Errorf("fill etcd: %w", err))
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// fillSome takes the next number until all are taken.
func fillSome(ctx context.Context, client *clientv3.Client, next *atomic.Int64, count int64) error {
	value := make([]byte, valueBytes)
	for i := next.Add(1); i <= count; i = next.Add(1) {
		if _, err := rand.Read(value); err != nil {
			return err
		}
		if _, err := client.Put(ctx, fmt.Sprintf("orders/%08d", i), string(value)); err != nil {
			return err
		}
	}
	return nil
}
