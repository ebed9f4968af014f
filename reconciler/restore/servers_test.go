package restore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
)

var histories = flag.Int("histories", 40, "how many random histories each release of etcd goes through before its snapshots are hashed")

// 163, 164, I9: what a real etcd of each release says of its keys at a random revision
// is what the file says that it sends as a snapshot: after puts, deletions, transactions,
// compactions, the end of leases, and restarts. More histories: -histories=2000.
func TestASnapshotIsHashedAsItsEtcdDoes(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		h := newServedHistory(t, version)
		h.refusesToPutAndDelete()
		for i := range *histories {
			h.begin(i)
			for range 1 + h.IntN(25) {
				h.move()
			}
			h.compare()
			switch h.IntN(20) {
			case 0:
				h.restart()
			case 1:
				h.empty()
			}
		}
		t.Logf("%d of %d files were compared", h.compared, h.asked)
		if h.compared < h.asked/3 {
			t.Errorf("only %d of %d files were compared", h.compared, h.asked)
		}
	})
}

// servedHistory is a history of one server, which goes on in the next one: each writes
// keys of its own.
type servedHistory struct {
	*testing.T
	*rand.Rand
	server          *etcdtest.Member
	client          *clientv3.Client
	conn            *etcd.Conn
	prefix          string
	compacted       int64
	leases          []clientv3.LeaseID
	asked, compared int
}

func newServedHistory(t *testing.T, version string) *servedHistory {
	t.Helper()
	server := etcdtest.Start(t, version, 1, false, "--unsafe-no-fsync").Members[0]
	conn, err := etcd.Dial(etcd.Endpoint{Member: server.Name, Host: server.Host, Address: server.Address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &servedHistory{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), server: server, client: server.Client(), conn: conn}
}

// must fails the test where a request was not served.
func must[A any](h *servedHistory) func(A, error) A {
	return func(answer A, err error) A {
		h.Helper()
		if err != nil {
			h.Fatal(err)
		}
		return answer
	}
}

// refusesToPutAndDelete wants etcd to refuse a transaction that puts and deletes a key:
// no file has such a revision.
func (h *servedHistory) refusesToPutAndDelete() {
	put, remove := clientv3.OpPut("twice", ""), clientv3.OpDelete("twice")
	for _, ops := range [][]clientv3.Op{{put, remove}, {remove, put}, {clientv3.OpTxn(nil, []clientv3.Op{remove}, nil), put}, {put, put}} {
		if _, err := h.client.Txn(h.Context()).Then(ops...).Commit(); !errors.Is(err, rpctypes.ErrDuplicateKey) {
			h.Errorf("%v", err)
		}
	}
}

// begin begins the history of other keys. One key is never missing: etcd's hash of no
// keys depends on how far a compaction has come.
func (h *servedHistory) begin(i int) {
	h.prefix = fmt.Sprintf("history-%d/", i)
	must[*clientv3.PutResponse](h)(h.client.Put(h.Context(), "always", h.prefix))
}

func (h *servedHistory) key() string { return fmt.Sprint(h.prefix, h.IntN(6)) }

// move is one request.
func (h *servedHistory) move() {
	ctx := h.Context()
	switch h.IntN(10) {
	case 0, 1, 2:
		must[*clientv3.PutResponse](h)(h.client.Put(ctx, h.key(), fmt.Sprint(h.Int())))
	case 3:
		must[*clientv3.DeleteResponse](h)(h.client.Delete(ctx, h.key()))
	case 4:
		must[*clientv3.DeleteResponse](h)(h.client.Delete(ctx, h.key(), clientv3.WithRange(h.prefix+"5")))
	case 5, 6:
		h.transaction()
	case 7:
		h.lease()
	case 8:
		h.compact(h.compacted+1+h.Int64N(h.revision()-h.compacted+1), h.IntN(2) == 0)
	case 9:
		h.compact(h.revision(), h.IntN(2) == 0)
	}
}

// transaction changes some keys at one revision, and no key twice.
func (h *servedHistory) transaction() {
	var ops []clientv3.Op
	for _, i := range h.Perm(6)[:1+h.IntN(4)] {
		key := fmt.Sprint(h.prefix, i)
		switch h.IntN(3) {
		case 0:
			ops = append(ops, clientv3.OpPut(key, "t"))
		case 1:
			ops = append(ops, clientv3.OpDelete(key))
		case 2:
			ops = append(ops, clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Version(key), ">", 0)},
				[]clientv3.Op{clientv3.OpDelete(key)}, []clientv3.Op{clientv3.OpPut(key, "n")}))
		}
	}
	must[*clientv3.TxnResponse](h)(h.client.Txn(h.Context()).Then(ops...).Commit())
}

// lease puts keys that go with their lease: when it is revoked, or at its end, at some
// moment of a later history.
func (h *servedHistory) lease() {
	if len(h.leases) > 0 && h.IntN(2) == 0 {
		// It may have ended by itself.
		_, err := h.client.Revoke(h.Context(), h.leases[0])
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			h.Fatal(err)
		}
		h.leases = h.leases[1:]
		return
	}
	granted := must[*clientv3.LeaseGrantResponse](h)(h.client.Grant(h.Context(), 1))
	h.leases = append(h.leases, granted.ID)
	for range 1 + h.IntN(3) {
		_, err := h.client.Put(h.Context(), h.key(), "leased", clientv3.WithLease(granted.ID))
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			h.Fatal(err)
		}
	}
}

func (h *servedHistory) revision() int64 {
	return must[*clientv3.GetResponse](h)(h.client.Get(h.Context(), "always")).Header.Revision
}

// compact drops history, and waits until it is gone, or not.
func (h *servedHistory) compact(at int64, physical bool) {
	var options []clientv3.CompactOption
	if physical {
		options = append(options, clientv3.WithCompactPhysical())
	}
	switch _, err := h.client.Compact(h.Context(), at, options...); {
	case err == nil:
		h.compacted = at
	case !errors.Is(err, rpctypes.ErrCompacted) && !errors.Is(err, rpctypes.ErrFutureRev):
		h.Fatal(err)
	}
}

// empty compares an etcd without keys.
func (h *servedHistory) empty() {
	h.compact(h.revision(), true)
	must[*clientv3.DeleteResponse](h)(h.client.Delete(h.Context(), "", clientv3.WithPrefix()))
	h.compare()
	must[*clientv3.PutResponse](h)(h.client.Put(h.Context(), "always", "again"))
	h.compact(h.revision(), true)
}

// restart ends the server as a power cut would: it knows then what the file says.
func (h *servedHistory) restart() {
	h.server.Kill()
	h.server.Start()
	ctx, cancel := context.WithTimeout(h.Context(), 30*time.Second)
	defer cancel()
	for {
		_, err := h.client.Get(ctx, "always")
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			h.Fatal(err)
		}
	}
}

// compare takes the hash and then a snapshot, as a backup does, and compares them.
func (h *servedHistory) compare() {
	at := max(1, h.compacted) + h.Int64N(h.revision()-max(1, h.compacted)+1)
	hash, err := h.conn.HashKV(h.Context(), at)
	if err != nil {
		h.Fatal(err)
	}
	if h.IntN(10) == 0 {
		h.compact(h.revision(), false)
	}
	path := filepath.Join(h.TempDir(), "snapshot")
	f := must[*os.File](h)(os.Create(path))
	must[int64](h)(io.Copy(f, must[io.ReadCloser](h)(h.conn.Snapshot(h.Context()))))
	if err := f.Close(); err != nil {
		h.Fatal(err)
	}
	compared, err := agrees(path, KeyHash{Hash: hash.Sum, Revision: at, CompactRevision: hash.Compacted})
	if err != nil {
		h.Errorf("after %s, compacted at %d: %v", h.prefix, hash.Compacted, err)
	}
	h.asked++
	if compared {
		h.compared++
	}
	if err := os.Remove(path); err != nil {
		h.Fatal(err)
	}
}
