package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// writers is how long a writer waits for each write, while backups are taken and
// while not.
type writers struct {
	title string
	list  []*waits
}

// waits is what one writer saw.
type waits struct {
	name string
	// once runs while the writer writes, again and again.
	once func(context.Context) error
	took []time.Duration
}

const (
	// writing is how long a round lasts at least.
	writing = 5 * time.Second
	// writtenBytes is the size of a value, writtenKeys how many keys take turns.
	writtenBytes, writtenKeys = 1 << 10, 100
)

// measureWriters lets a writer write in a closed loop, with and without backups.
func (b *bench) measureWriters(ctx context.Context, m *member, size int64) (writers, error) {
	w := writers{"writes of 1 KiB in a closed loop during backups of " + sizeText(size) + " to a directory, again and again", m.disturbers()}
	rounds := roundsOf(size)
	for round := range rounds {
		b.Say("%s, round %d of %d", w.title, round+1, rounds)
		for i := range w.list {
			one := w.list[(i+round)%len(w.list)]
			took, err := m.writeDuring(ctx, one.once)
			if err != nil {
				return w, fmt.Errorf("writes with %s: %w", one.name, err)
			}
			one.took = append(one.took, took...)
		}
	}
	for _, one := range w.list {
		slices.Sort(one.took)
	}
	return w, nil
}

// disturbers are what runs next to the writer; the first is quorate's backup.
func (m *member) disturbers() []*waits {
	own, save := m.ownWay(m.directoryURL), m.path("snapshot.db")
	return []*waits{
		{name: "a backup by quorate", once: func(ctx context.Context) error {
			if _, err := own.do(ctx); err != nil {
				return err
			}
			return own.tidy()
		}},
		{name: "etcdctl snapshot save", once: func(ctx context.Context) error {
			if _, err := measure(ctx, m.save(ctx, save)); err != nil {
				return err
			}
			return removing(save)()
		}},
		{name: "no backup", once: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(writing):
				return nil
			}
		}},
	}
}

// writeDuring writes while something runs, and returns how long each write took.
func (m *member) writeDuring(ctx context.Context, once func(context.Context) error) ([]time.Duration, error) {
	writes, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	var took []time.Duration
	go func() {
		var err error
		took, err = writeLoop(writes, m.client)
		done <- err
	}()
	var err error
	for begin := time.Now(); err == nil && time.Since(begin) < writing; {
		err = once(ctx)
	}
	stop()
	if werr := <-done; err == nil {
		err = werr
	}
	return took, err
}

// writeLoop writes until ctx ends. The last write, which that cuts off, does not
// count.
func writeLoop(ctx context.Context, client *clientv3.Client) (took []time.Duration, err error) {
	value := strings.Repeat("x", writtenBytes)
	for i := 0; ; i++ {
		begin := time.Now()
		_, err := client.Put(ctx, fmt.Sprintf("written/%02d", i%writtenKeys), value)
		if ctx.Err() != nil {
			return took, nil
		}
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
	}
}
