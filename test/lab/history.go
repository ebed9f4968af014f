package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// HistoryOptions are the load that a History makes. Its size is bounded because the
// memory of a check grows with the square of the operations on one key.
type HistoryOptions struct {
	// Prefix of the keys; each History of a cluster needs its own, and keys that
	// no other client has written. Default "history/".
	Prefix string
	// Clients is how many there are at once, each with its own connection.
	// Default 4.
	Clients int
	// Keys is how many keys they share. Default 5.
	Keys int
	// Pace is the shortest time from one operation to the next of one client.
	// Default 50ms.
	Pace time.Duration
	// Timeout of one operation. Default 2s.
	Timeout time.Duration
	// Limit bounds the load in time. Default 10m.
	Limit time.Duration
	// MaxOperations bounds it in count, all clients together. Default 50,000.
	MaxOperations int
}

func (o *HistoryOptions) fill() {
	if o.Prefix == "" {
		o.Prefix = "history/"
	}
	for field, value := range map[*time.Duration]time.Duration{
		&o.Pace: 50 * time.Millisecond, &o.Timeout: 2 * time.Second, &o.Limit: 10 * time.Minute,
	} {
		if *field == 0 {
			*field = value
		}
	}
	for field, value := range map[*int]int{&o.Clients: 4, &o.Keys: 5, &o.MaxOperations: 50_000} {
		if *field == 0 {
			*field = value
		}
	}
}

// History is a few clients that read, put and swap the same few keys, and a
// record of when each operation was called, when it was answered and how. Check
// reports whether one cluster that loses nothing could have answered so.
type History struct {
	options HistoryOptions
	clients []*clientv3.Client
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	begin   time.Time

	mu  sync.Mutex
	ops []*operation
}

// kind is what an operation asks for.
type kind string

const (
	// read returns the value and the revision of a key.
	read kind = "read"
	// put writes a key, whatever it holds.
	put kind = "put"
	// swap writes a key that is still at the revision that the client expects,
	// and else returns what the key holds.
	swap kind = "swap"
)

// outcome is how an operation ended.
type outcome string

const (
	// unknown is an operation without an answer: it may have had its effect, have
	// it later, or never.
	unknown outcome = ""
	// done is a read that was answered, a write that was acknowledged.
	done outcome = "done"
	// missed is a swap that found the key at another revision.
	missed outcome = "missed"
)

// operation is one line of the history.
type operation struct {
	client int
	kind   kind
	key    string
	// value is what a write writes; no two write the same.
	value string
	// expect is the revision that a swap wants to find, 0 for no key.
	expect int64
	// call and answer are times since the history's begin.
	call, answer time.Duration
	outcome      outcome
	// seen is what a read or a missed swap found; revision is the one found
	// there, or the one at which the write was acknowledged.
	seen     string
	revision int64
}

// String describes the operation.
func (o operation) String() string {
	what := fmt.Sprintf("client %d, %s of %s from %s to %s", o.client, o.kind, o.key, Round(o.call), Round(o.answer))
	switch {
	case o.kind == read || o.outcome == missed:
		return fmt.Sprintf("%s, which found %q at revision %d", what, o.seen, o.revision)
	case o.kind == swap:
		return fmt.Sprintf("%s, which replaced revision %d by %q at revision %d", what, o.expect, o.value, o.revision)
	default:
		return fmt.Sprintf("%s, which wrote %q at revision %d", what, o.value, o.revision)
	}
}

// StartHistory begins the load, with one client after the other of clients. The
// History owns them, and closes them.
func StartHistory(clients []*clientv3.Client, o HistoryOptions) *History {
	o.fill()
	ctx, cancel := context.WithTimeout(context.Background(), o.Limit)
	h := &History{options: o, clients: clients, cancel: cancel, begin: time.Now()}
	for i, client := range clients {
		h.loops.Go(func() { h.run(ctx, i, client, o.MaxOperations/len(clients)) })
	}
	return h
}

// Record is StartHistory on the client Service of a cluster.
func (c *Cluster) Record(ctx context.Context, namespace, name string, o HistoryOptions) (*History, error) {
	o.fill()
	var clients []*clientv3.Client
	for range o.Clients {
		client, err := c.Dial(ctx, namespace, name)
		if err != nil {
			for _, opened := range clients {
				_ = opened.Close()
			}
			return nil, err
		}
		clients = append(clients, client)
	}
	return StartHistory(clients, o), nil
}

// run makes one operation after the other. What it asks for depends on nothing
// but the client's number and the answers.
func (h *History) run(ctx context.Context, number int, client *clientv3.Client, most int) {
	pace := time.NewTicker(h.options.Pace)
	defer pace.Stop()
	dice := rand.New(rand.NewPCG(uint64(number), uint64(most)))
	newest := map[string]int64{}
	for n := range most {
		op := h.next(number, n, dice, newest)
		limited, cancel := context.WithTimeout(ctx, h.options.Timeout)
		h.perform(limited, client, op)
		cancel()
		if op.outcome != unknown {
			newest[op.key] = op.revision
		}
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
	}
}

// next draws an operation: two reads to two puts to three swaps.
func (h *History) next(number, n int, dice *rand.Rand, newest map[string]int64) *operation {
	op := &operation{client: number, key: h.key(dice.IntN(h.options.Keys))}
	switch dice.IntN(7) {
	case 0, 1:
		op.kind = read
	case 2, 3:
		op.kind, op.value = put, fmt.Sprintf("%d.%d", number, n)
	default:
		op.kind, op.value, op.expect = swap, fmt.Sprintf("%d.%d", number, n), newest[op.key]
	}
	return op
}

func (h *History) key(n int) string { return fmt.Sprintf("%s%d", h.options.Prefix, n) }

// perform carries an operation out and records it: the call before it is sent,
// so that a write whose answer is still to come is not forgotten.
func (h *History) perform(ctx context.Context, client *clientv3.Client, op *operation) {
	h.mu.Lock()
	op.call = time.Since(h.begin)
	h.ops = append(h.ops, op)
	h.mu.Unlock()
	answered, err := send(ctx, client, *op)
	h.mu.Lock()
	defer h.mu.Unlock()
	answered.answer = time.Since(h.begin)
	if err != nil {
		answered.outcome = unknown
	}
	*op = answered
}

// send is one request, never repeated, and the operation with its answer.
func send(ctx context.Context, client *clientv3.Client, op operation) (operation, error) {
	switch op.kind {
	case read:
		answer, err := client.Get(ctx, op.key)
		if err != nil {
			return op, err
		}
		op.outcome = done
		op.seen, op.revision = found(answer)
		return op, nil
	case put:
		answer, err := client.Put(ctx, op.key, op.value)
		if err != nil {
			return op, err
		}
		op.outcome, op.revision = done, answer.Header.Revision
		return op, nil
	default:
		return sendSwap(ctx, client, op)
	}
}

func sendSwap(ctx context.Context, client *clientv3.Client, op operation) (operation, error) {
	answer, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(op.key), "=", op.expect)).
		Then(clientv3.OpPut(op.key, op.value)).
		Else(clientv3.OpGet(op.key)).
		Commit()
	if err != nil {
		return op, err
	}
	if answer.Succeeded {
		op.outcome, op.revision = done, answer.Header.Revision
		return op, nil
	}
	op.outcome = missed
	op.seen, op.revision = found((*clientv3.GetResponse)(answer.Responses[0].GetResponseRange()))
	return op, nil
}

// found is the value and the revision of the key in an answer; no key is the
// value "" at revision 0.
func found(answer *clientv3.GetResponse) (string, int64) {
	if len(answer.Kvs) == 0 {
		return "", 0
	}
	return string(answer.Kvs[0].Value), answer.Kvs[0].ModRevision
}

// HistoryReport counts the operations so far.
type HistoryReport struct {
	// Reads, Writes and Missed were answered: Missed are swaps that found another
	// revision than they expected. Unknown had no answer, or have none yet.
	Reads, Writes, Missed, Unknown int
}

// String is the report on one line.
func (r HistoryReport) String() string {
	return fmt.Sprintf("%d reads, %d writes, %d swaps that missed, %d without an answer", r.Reads, r.Writes, r.Missed, r.Unknown)
}

// Report is what was recorded so far.
func (h *History) Report() HistoryReport {
	var r HistoryReport
	for _, op := range h.snapshot() {
		switch {
		case op.outcome == unknown:
			r.Unknown++
		case op.outcome == missed:
			r.Missed++
		case op.kind == read:
			r.Reads++
		default:
			r.Writes++
		}
	}
	return r
}

// snapshot is a copy of the history as of now.
func (h *History) snapshot() []operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops := make([]operation, len(h.ops))
	for i, op := range h.ops {
		ops[i] = *op
	}
	return ops
}

// Stop ends the load.
func (h *History) Stop() {
	h.cancel()
	h.loops.Wait()
}

// Close ends the load and the connections.
func (h *History) Close() {
	h.Stop()
	for _, client := range h.clients {
		_ = client.Close()
	}
}

// Check reads every key once more, and then searches for an order of all that was
// recorded so far in which each answer is right. It may be called while the
// load continues. A nil error means that nothing acknowledged was lost and nothing
// stale was read. A read that is not answered is repeated: that a cluster is slow
// says nothing about what it has lost.
func (h *History) Check(ctx context.Context, client *clientv3.Client) error {
	for n := range h.options.Keys {
		if err := Poll(ctx, readLimit, func(ctx context.Context) (bool, error) {
			limited, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			op := &operation{client: h.options.Clients, kind: read, key: h.key(n)}
			h.perform(limited, client, op)
			return op.outcome != unknown, nil
		}); err != nil {
			return fmt.Errorf("check the history: read %s: %w", h.key(n), err)
		}
	}
	return linearizable(h.snapshot(), checkLimit)
}

// readLimit is how long Check tries to read a key.
const readLimit = 3 * time.Minute
