package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/lab"
)

// onlyLarge measures the rolls of a large cluster alone.
const onlyLarge = "large"

// A cluster with many small keys, of which a member takes seconds to read all: quorate
// compares them in a roll, and etcd itself in each member that starts.
const (
	largeName    = "large"
	largeKey     = namespace + "/" + largeName
	largeFile    = "clusters/large.yaml"
	largeVersion = "3.6.16"
	// largeRolls are the rolls of each kind.
	largeRolls = 3
	// largeValue makes 2 million keys 1 GiB; largeTxn is how many are written at once.
	largeValue, largeTxn = 460, 100
	largeLimit           = 15 * time.Minute
)

// largeManifest is the cluster with a setting that a roll brings.
func largeManifest(roll int) string {
	return manifestOf(largeName, largeVersion, "8Gi") + fmt.Sprintf(`  etcd:
    quotaBackendBytes: 4Gi
    options:
      heartbeat-interval: "%d"
`, 100+roll)
}

// rollLarge fills a cluster of its own, and rolls it by either way in turn.
func (b *bench) rollLarge(ctx context.Context) error {
	from := b.daemon.Log.Mark()
	if _, err := b.git.Commit(ctx, "a large cluster", map[string]string{largeFile: largeManifest(0)}); err != nil {
		return err
	}
	if _, _, err := b.daemon.WaitFor(ctx, from, rollLimit, lab.Idle(largeKey, largeVersion)); err != nil {
		return err
	}
	if err := b.Do(fmt.Sprintf("writing %d keys", b.keys), func() error { return b.fillKeys(ctx) }); err != nil {
		return err
	}
	b.large = contest{cluster: largeName, limit: largeLimit, rolls: largeRolls}
	for range b.large.rolls {
		if err := b.turn(ctx, &b.large, b.largeByQuorate); err != nil {
			return err
		}
	}
	return nil
}

// fillKeys writes all keys.
func (b *bench) fillKeys(ctx context.Context) error {
	client, err := b.cluster.Dial(ctx, namespace, largeName)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return fillWith(ctx, func(ctx context.Context, next *atomic.Int64) error {
		return fillTxns(ctx, client, next, int64(b.keys))
	})
}

// fillTxns takes the next keys until all are taken.
func fillTxns(ctx context.Context, client *clientv3.Client, next *atomic.Int64, count int64) error {
	value := strings.Repeat("x", largeValue)
	for first := next.Add(largeTxn) - largeTxn; first < count; first = next.Add(largeTxn) - largeTxn {
		puts := make([]clientv3.Op, largeTxn)
		for i := range puts {
			puts[i] = clientv3.OpPut(fmt.Sprintf("large/%010d", first+int64(i)), value)
		}
		if _, err := client.Txn(ctx).Then(puts...).Commit(); err != nil {
			return err
		}
	}
	return nil
}

// largeByQuorate commits another setting, and waits until quorate calls it done.
func (b *bench) largeByQuorate(ctx context.Context, r *roll) error {
	from, begin := b.daemon.Log.Mark(), time.Now()
	if _, err := b.git.Commit(ctx, "another setting", map[string]string{largeFile: largeManifest(len(b.large.quorate) + 1)}); err != nil {
		return err
	}
	_, _, err := b.daemon.WaitFor(ctx, from, largeLimit, lab.Idle(largeKey, largeVersion))
	r.wall = time.Since(begin)
	return err
}

// printLarge prints what a client noticed of either.
func (b *bench) printLarge(out io.Writer) {
	if len(b.large.quorate) == 0 {
		return
	}
	q, f := summarise(b.large.quorate), summarise(b.large.floor)
	fmt.Fprintf(out, "\nthree members, etcd %s, %d keys of %d bytes, rolls of a setting; %d each, alternating\n\n", largeVersion, b.keys, largeValue, largeRolls)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\tquorate\tscript\tratio")
	for _, row := range []struct {
		name string
		of   func(roll) time.Duration
	}{
		{"wall time of a roll, median", func(r roll) time.Duration { return r.wall }},
		{"longest write gap in a roll, median", func(r roll) time.Duration { return r.seen.Writes.LongestGap }},
		{"longest read gap in a roll, median", func(r roll) time.Duration { return r.seen.Reads.LongestGap }},
	} {
		own, floor := median(b.large.quorate, row.of), median(b.large.floor, row.of)
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\n", row.name, lab.Round(own), lab.Round(floor), own.Seconds()/floor.Seconds())
	}
	fmt.Fprintf(w, "failed writes\t%d of %d\t%d of %d\t\n", q.failed, q.all, f.failed, f.all)
	fmt.Fprintf(w, "failed reads\t%d\t%d\t\n", q.failedReads, f.failedReads)
	_ = w.Flush()
}
