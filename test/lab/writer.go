package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// verifyPage is how many keys Verify reads at a time.
const verifyPage = 5000

// WriterOptions are the load that a Writer makes.
type WriterOptions struct {
	// Prefix of the keys; each Writer of a cluster needs its own. Default
	// "lab/".
	Prefix string
	// Pace is the shortest time from one request to the next of the same loop.
	// Default 5ms; a gap is never shorter than that.
	Pace time.Duration
	// Timeout of one request. Default 2s.
	Timeout time.Duration
	// Limit bounds the load in time. Default 10m.
	Limit time.Duration
	// MaxWrites bounds it in count. Default 200,000.
	MaxWrites int
	// NoReads leaves the reads out.
	NoReads bool
}

func (o *WriterOptions) fill() {
	if o.Prefix == "" {
		o.Prefix = "lab/"
	}
	for field, value := range map[*time.Duration]time.Duration{
		&o.Pace: 5 * time.Millisecond, &o.Timeout: 2 * time.Second, &o.Limit: 10 * time.Minute,
	} {
		if *field == 0 {
			*field = value
		}
	}
	if o.MaxWrites == 0 {
		o.MaxWrites = 200_000
	}
}

// Writer is a client that never stops: one loop that puts its own keys, one
// after the other, and one that reads back the newest acknowledged one. Neither
// repeats a request. It knows every write that was acknowledged.
type Writer struct {
	options WriterOptions
	client  *clientv3.Client
	cancel  context.CancelFunc
	loops   sync.WaitGroup

	mu            sync.Mutex
	writes, reads loop
	// revisions holds, by the number of the write, the revision at which it was
	// acknowledged; 0 when it was not.
	revisions []int64
	newest    int
	problems  []string
}

// loop has the figures of a lap and of all laps.
type loop struct {
	lap, total Stats
	// ended is when the loop came to its end; zero while it runs.
	ended time.Time
}

// now is the time up to which the loop's gaps count.
func (l *loop) now() time.Time {
	if !l.ended.IsZero() {
		return l.ended
	}
	return time.Now()
}

// Report is what a load has seen.
type Report struct {
	Writes, Reads Stats
	// Ended says that no more is written: the load was stopped, or it has come
	// to one of its bounds.
	Ended bool
	// Problems are answers that etcd must never give: a read that misses an
	// acknowledged write, a revision that goes back. They mean lost data.
	Problems []string
}

// StartWriter begins the load. The Writer owns the client, and closes it.
func StartWriter(client *clientv3.Client, o WriterOptions) *Writer {
	o.fill()
	ctx, cancel := context.WithTimeout(context.Background(), o.Limit)
	now := time.Now()
	fresh := loop{lap: newStats(now, now), total: newStats(now, now)}
	w := &Writer{options: o, client: client, cancel: cancel, writes: fresh, reads: fresh, newest: -1}
	w.loops.Go(func() { w.run(ctx, &w.writes, w.put) })
	if !o.NoReads {
		w.loops.Go(func() { w.run(ctx, &w.reads, w.get) })
	}
	return w
}

// Write is StartWriter on the client Service of a cluster.
func (c *Cluster) Write(ctx context.Context, namespace, name string, o WriterOptions) (*Writer, error) {
	client, err := c.Dial(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return StartWriter(client, o), nil
}

// errNothingToRead is a read before the first write, which counts for nothing.
var errNothingToRead = errors.New("nothing is written yet")

// run makes one request after the other, at the Writer's pace.
func (w *Writer) run(ctx context.Context, l *loop, request func(context.Context) error) {
	pace := time.NewTicker(w.options.Pace)
	defer pace.Stop()
	defer w.end(l)
	for range w.options.MaxWrites {
		sent := time.Now()
		limited, cancel := context.WithTimeout(ctx, w.options.Timeout)
		err := request(limited)
		cancel()
		if err != nil && ctx.Err() != nil {
			return // the request was cut off by the end of the load
		}
		w.count(l, sent, err)
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
	}
}

func (w *Writer) end(l *loop) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.ended = time.Now()
}

func (w *Writer) count(l *loop, sent time.Time, err error) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range []*Stats{&l.lap, &l.total} {
		switch {
		case errors.Is(err, errNothingToRead):
			s.last = now
		case err != nil:
			s.bad(sent, now, err)
		default:
			s.good(sent, now)
		}
	}
}

// put writes the next key.
func (w *Writer) put(ctx context.Context) error {
	w.mu.Lock()
	n := len(w.revisions)
	w.revisions = append(w.revisions, 0)
	w.mu.Unlock()
	answer, err := w.client.Put(ctx, w.key(n), w.value(n))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	revision := answer.Header.Revision
	if w.newest >= 0 && revision <= w.revisions[w.newest] {
		w.problem("write %d was acknowledged at revision %d, after write %d at revision %d", n, revision, w.newest, w.revisions[w.newest])
	}
	w.revisions[n], w.newest = revision, n
	return nil
}

// get reads the newest write that was acknowledged before the read began.
func (w *Writer) get(ctx context.Context) error {
	w.mu.Lock()
	n := w.newest
	w.mu.Unlock()
	if n < 0 {
		return errNothingToRead
	}
	answer, err := w.client.Get(ctx, w.key(n))
	if err != nil {
		return err
	}
	if len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != w.value(n) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.problem("write %d was acknowledged at revision %d, and a read at revision %d does not see it", n, w.revisions[n], answer.Header.Revision)
	}
	return nil
}

// problem keeps the first few; w.mu is held.
func (w *Writer) problem(format string, args ...any) {
	if len(w.problems) < maxFailures {
		w.problems = append(w.problems, fmt.Sprintf(format, args...))
	}
}

func (w *Writer) key(n int) string   { return fmt.Sprintf("%s%08d", w.options.Prefix, n) }
func (w *Writer) value(n int) string { return fmt.Sprintf("value %d of %s", n, w.options.Prefix) }

// Report is what was seen since the start.
func (w *Writer) Report() Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.report(w.writes.total.closed(w.writes.now()), w.reads.total.closed(w.reads.now()))
}

// Lap is what was seen since the last Lap, or the start. A gap that began
// before the lap counts in it from where it began.
func (w *Writer) Lap() Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.report(w.writes.lap.closed(w.writes.now()), w.reads.lap.closed(w.reads.now()))
	for _, l := range []*loop{&w.writes, &w.reads} {
		l.lap = newStats(l.now(), l.lap.last)
	}
	return r
}

func (w *Writer) report(writes, reads Stats) Report {
	return Report{Writes: writes, Reads: reads, Ended: !w.writes.ended.IsZero(), Problems: append([]string(nil), w.problems...)}
}

// Stop ends the load, and returns what was seen.
func (w *Writer) Stop() Report {
	w.cancel()
	w.loops.Wait()
	return w.Report()
}

// Close ends the load and the connection.
func (w *Writer) Close() {
	w.cancel()
	w.loops.Wait()
	_ = w.client.Close()
}

// Verify checks every acknowledged write, after Stop: each must be there,
// once, with its value and at the revision of its acknowledgement. It returns
// how many it has found; its error names the first few that are wrong.
func (w *Writer) Verify(ctx context.Context) (int, error) {
	return w.VerifyUntil(ctx, math.MaxInt64)
}

// VerifyUntil is Verify for what was acknowledged up to a revision: that of the
// backup which a cluster was restored from.
func (w *Writer) VerifyUntil(ctx context.Context, last int64) (int, error) {
	found, err := w.readAll(ctx)
	if err != nil {
		return 0, fmt.Errorf("verify the writes: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	wrong, right := append([]string(nil), w.problems...), 0
	for n, revision := range w.revisions {
		switch there, ok := found[n]; {
		case revision == 0: // not acknowledged: it may be there or not
		case revision > last: // a backup may have a little more than its manifest says
		case !ok:
			wrong = append(wrong, fmt.Sprintf("write %d, acknowledged at revision %d, is gone", n, revision))
		case there.revision != revision || there.value != w.value(n):
			wrong = append(wrong, fmt.Sprintf("write %d, acknowledged at revision %d, is %q at revision %d", n, revision, there.value, there.revision))
		default:
			right++
		}
	}
	if len(wrong) > 0 {
		return right, fmt.Errorf("%d things wrong with %d writes: %s", len(wrong), len(w.revisions), strings.Join(wrong[:min(len(wrong), 5)], "; "))
	}
	return right, nil
}

// stored is a write as read back.
type stored struct {
	value    string
	revision int64
}

// readAll reads every key of the Writer, page by page, at one revision.
func (w *Writer) readAll(ctx context.Context) (map[int]stored, error) {
	found := map[int]stored{}
	from, revision := w.options.Prefix, int64(0)
	end := clientv3.GetPrefixRangeEnd(w.options.Prefix)
	for {
		page, err := w.page(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(verifyPage), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		for _, kv := range page.Kvs {
			n, err := strconv.Atoi(strings.TrimPrefix(string(kv.Key), w.options.Prefix))
			if err != nil {
				return nil, fmt.Errorf("key %q is not one of the writer's", kv.Key)
			}
			found[n] = stored{string(kv.Value), kv.ModRevision}
			from = string(kv.Key) + "\x00"
		}
		if revision = page.Header.Revision; !page.More {
			return found, nil
		}
	}
}

func (w *Writer) page(ctx context.Context, from string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return w.client.Get(ctx, from, options...)
}
