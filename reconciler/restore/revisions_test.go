package restore

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// incarnation is a cluster of one name, the database that it has, and what is known of
// it and of those before it.
type incarnation struct {
	db     string
	record record.Record
}

// stored is a backup, as etcd sends it, and the revision in its manifest.
type stored struct {
	path     string
	revision int64
}

// writes puts n keys into a database, and returns the revision that clients see then.
func writes(t *testing.T, path string, n int) int64 {
	t.Helper()
	b := backend.NewDefaultBackend(zap.NewNop(), path)
	kv := mvcc.NewStore(zap.NewNop(), b, &lease.FakeLessor{}, mvcc.StoreConfig{})
	for i := range n {
		kv.Put(fmt.Appendf(nil, "key-%d", i%7), []byte("value"), lease.NoLease)
	}
	kv.Commit()
	seen := kv.Rev()
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return seen
}

// store copies a database as a snapshot, with etcd's checksum behind it.
func store(t *testing.T, db string, revision int64) stored {
	t.Helper()
	text, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, append(text, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return stored{path, revision}
}

// succeed restores a backup in the place of a cluster, or recovers the cluster with it,
// and notes what the daemon does.
func (was incarnation) succeed(t *testing.T, from stored, listed int64) incarnation {
	t.Helper()
	known, err := was.record.Reached()
	if err != nil {
		t.Fatal(err)
	}
	r := Request{
		Volume: t.TempDir(), Member: member, PeerURL: peer, Token: "new", AtLeast: from.revision, Above: max(known, listed),
		Fetch: func(path string) error {
			text, err := os.ReadFile(from.path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, text, 0o600)
		},
	}
	if err := Run(r, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	g := record.Recovering{Token: r.Token, NewClusterID: "c", NewMemberID: "m", Verified: backup.Verified{Revision: from.revision}, Above: r.Above}
	next := incarnation{
		db:     filepath.Join(r.Volume, "data", "member", "snap", "db"),
		record: record.NewRestore(action.BeginRestore{Restore: "back", Member: member}, backup.Manifest{Revision: from.revision}, g, now),
	}
	if err := next.record.Succeed(was.record, "1", now); err != nil {
		t.Fatal(err)
	}
	next.record.ClusterID = "c"
	if !next.record.EndRecovery(action.EndRecovery{OneShot: next.record.Recovering.OneShot}, now) {
		t.Fatal("the restore does not end")
	}
	return next
}

// 167, I8: however often a backup is restored, and whichever one, what clients see next is
// above all that they have ever seen of clusters of this name. What is known of those is
// noted at the beginning, at the end, or only in the manifests of their backups.
func TestRevisionsNeverGoBackOverManyRestores(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 7))
		first := filepath.Join(t.TempDir(), "db")
		database(t, first, nil)
		cluster, seen, listed := incarnation{db: first, record: record.New("t")}, int64(11), int64(11)
		backups := []stored{store(t, first, 11)}
		for i := range 4 {
			cluster = cluster.succeed(t, backups[random.IntN(len(backups))], listed)
			begins, _, err := revisions(cluster.db)
			if err != nil {
				t.Fatal(err)
			}
			if begins < seen+state.RevisionBump/2 {
				t.Fatalf("seed %d, restore %d: the cluster begins at revision %d, and clients have seen %d", seed, i, begins, seen)
			}
			if random.IntN(2) == 0 {
				cluster.record.Saw(begins)
			}
			seen = writes(t, cluster.db, random.IntN(20))
			if seen < begins {
				t.Fatalf("seed %d, restore %d: clients see %d after %d", seed, i, seen, begins)
			}
			if random.IntN(3) == 0 {
				backups, listed = append(backups, store(t, cluster.db, seen)), seen
			}
			if random.IntN(4) == 0 && listed == seen {
				cluster.record = record.New("t") // deleted with its volumes: only its last backup tells
			}
		}
	}
}

// 167: records from before revisions were noted tell how often they were raised.
func TestRevisionsOfOlderRecords(t *testing.T) {
	const bump = state.RevisionBump
	restored := func(revision int64, edit func(*record.Record)) record.Record {
		r := record.Record{ClusterID: "c2", Restore: record.Restore{Restored: &record.Restored{Revision: revision}}}
		if edit != nil {
			edit(&r)
		}
		return r
	}
	text := func(r record.Record) []byte {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		r    record.Record
		want int64
	}{
		"nothing is known":       {record.New("t"), 0},
		"a backup":               {record.Record{Backup: &record.Backup{Revision: 40}}, 40},
		"a compaction":           {record.Record{Compacted: &record.Compacted{Revision: 41}}, 41},
		"restored":               {restored(7, nil), bump + 7},
		"restored, not yet made": {restored(7, func(r *record.Record) { r.ClusterID = "" }), 0},
		"recovered twice since":  {restored(7, func(r *record.Record) { r.Recovered = make([]record.Recovered, 2) }), 3*bump + 7},
		"recovered":              {record.Record{Recovery: record.Recovery{Recovered: make([]record.Recovered, 1)}}, bump},
		"it is noted":            {restored(7, func(r *record.Record) { r.HighestRevision = 5 * bump }), 5 * bump},
		"a recovery that begins": {record.Record{ClusterID: "c1", Recovery: record.Recovery{Recovering: &record.Recovering{NewClusterID: "c2", Verified: backup.Verified{Revision: 9}}}}, 9},
		"a recovery that is far": {record.Record{ClusterID: "c2", Recovery: record.Recovery{Recovering: &record.Recovering{NewClusterID: "c2", Verified: backup.Verified{Revision: 9}, Above: 20}}}, bump + 20},
		"a predecessor":          {record.Record{Restore: record.Restore{Predecessors: []record.Predecessor{{Record: text(restored(9, nil))}, {Record: text(record.New("t"))}}}}, bump + 9},
	} {
		if got, err := c.r.Reached(); err != nil || got != c.want {
			t.Errorf("%s: %d, want %d: %v", name, got, c.want, err)
		}
	}
	bad := record.Record{Restore: record.Restore{Predecessors: []record.Predecessor{{Record: []byte(`"x"`)}}}}
	if _, err := bad.Reached(); err == nil || !strings.Contains(err.Error(), "whose place was taken at") {
		t.Errorf("%v", err)
	}
}

// 167: a revision that cannot be true is refused before anything is touched: raised
// above it, etcd's numbers would overflow.
func TestARevisionThatCannotBeTrueIsRefused(t *testing.T) {
	r := intoNothing(t)
	r.Above = state.MaxRevision + 1
	if err := Run(r, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "cannot be true") {
		t.Errorf("%v", err)
	}
	r = intoNothing(t)
	r.Above = state.MaxRevision
	if err := Run(r, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	if last, _, err := revisions(filepath.Join(r.Volume, "data", "member", "snap", "db")); err != nil || last != state.MaxRevision+state.RevisionBump {
		t.Errorf("it begins at %d: %v", last, err)
	}
}
