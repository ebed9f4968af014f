package restore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/state"
)

const (
	member = "orders-1"
	peer   = "https://orders-1.orders-peers.shop.svc:2380"
)

// database writes a database with ten revisions after the first, as a member has it.
func database(t *testing.T, path string, change func(mvcc.KV)) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	b := backend.NewDefaultBackend(zap.NewNop(), path)
	schema.CreateMetaBucket(b.BatchTx())
	kv := mvcc.NewStore(zap.NewNop(), b, &lease.FakeLessor{}, mvcc.StoreConfig{})
	for i := range 10 {
		kv.Put(fmt.Appendf(nil, "key-%d", i), []byte("value"), lease.NoLease)
	}
	if change != nil {
		change(kv)
	}
	kv.Commit()
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// volume is the volume of a member that has stopped.
func volume(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	database(t, filepath.Join(dir, "data", "member", "snap", "db"), nil)
	owned(t, dir, "old", member)
	return dir
}

func owned(t *testing.T, dir, token, name string) {
	t.Helper()
	text := fmt.Sprintf(`{"token":%q,"member":%q}`, token, name)
	if err := os.WriteFile(filepath.Join(dir, "quorate.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func request(dir string) Request {
	return Request{Volume: dir, Member: member, PeerURL: peer, Former: "old", Token: "new", AtLeast: 11}
}

// run makes the volume, and wants it to be whole.
func run(t *testing.T, r Request) {
	t.Helper()
	if err := Run(r, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	whole(t, r.Volume)
}

// whole wants the volume to be the recovered one, with the old data kept.
func whole(t *testing.T, dir string) {
	t.Helper()
	last, reached, err := revisions(filepath.Join(dir, "data", "member", "snap", "db"))
	if err != nil || last != state.RevisionBump+11 || reached != last {
		t.Errorf("the new database is at %d and %d: %v", last, reached, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "quorate.json")); err != nil || !strings.Contains(string(text), `"new"`) {
		t.Errorf("the marker says %s: %v", text, err)
	}
	if logs, err := os.ReadDir(filepath.Join(dir, "data", "member", "wal")); err != nil || len(logs) == 0 {
		t.Errorf("no log: %v", err)
	}
	if names := namesIn(t, dir); len(names) != 3 {
		t.Errorf("the volume has %v", names)
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// I8: a member's data becomes that of a new cluster, far ahead of what it was,
// and what was there is kept to the byte.
func TestASurvivorsDataBecomesANewCluster(t *testing.T) {
	dir := volume(t)
	before, err := os.ReadFile(filepath.Join(dir, "data", "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, request(dir))
	kept, err := os.ReadFile(filepath.Join(dir, "data-old", "member", "snap", "db"))
	if err != nil || string(kept) != string(before) {
		t.Errorf("the old database is not what it was: %v", err)
	}
	stat := func() string {
		info, err := os.Stat(filepath.Join(dir, "data", "member", "snap", "db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime().String()
	}
	once := stat()
	run(t, request(dir))
	if again := stat(); again != once {
		t.Error("the second run changed the data")
	}
}

// I13, 121: quorate, the pod or the node may die at any point. The next run goes
// on from what is on the volume.
func TestARunThatWasCutOffGoesOn(t *testing.T) {
	rename := func(t *testing.T, dir, from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	// prepared is a volume whose new data is whole, and has not moved yet.
	prepared := func(t *testing.T) string {
		dir := volume(t)
		r := request(dir)
		if err := r.prepare(r.handover(), zap.NewNop()); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, cut := range map[string]func(*testing.T) string{
		"before anything": func(t *testing.T) string { return volume(t) },
		"in the middle of the new data": func(t *testing.T) string {
			dir := prepared(t)
			rename(t, dir, "prepared-new", "prepared-new.draft")
			if err := os.RemoveAll(filepath.Join(dir, "prepared-new.draft", "member", "wal")); err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"when the new data is whole": prepared,
		"when the old data is aside": func(t *testing.T) string {
			dir := prepared(t)
			rename(t, dir, "data", "data-old")
			return dir
		},
		"before the marker": func(t *testing.T) string {
			dir := prepared(t)
			rename(t, dir, "data", "data-old")
			rename(t, dir, "prepared-new", "data")
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := cut(t)
			run(t, request(dir))
			run(t, request(dir))
		})
	}
}

// I5, I7, I8: what is not as it should be stays as it is.
func TestWhatIsRefusedIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, string, *Request)
		want   string
		unfit  bool
	}{
		"an older state": {func(_ *testing.T, _ string, r *Request) { r.AtLeast = 12 }, "at revision 11 and was to be at 12", true},
		"another member": {func(t *testing.T, dir string, _ *Request) { owned(t, dir, "old", "orders-2") }, "belongs to member orders-2", false},
		"another token":  {func(t *testing.T, dir string, _ *Request) { owned(t, dir, "older", member) }, "cluster token older", false},
		"no owner": {func(t *testing.T, dir string, _ *Request) {
			if err := os.Remove(filepath.Join(dir, "quorate.json")); err != nil {
				t.Fatal(err)
			}
		}, "foreign data", false},
		"no database": {func(t *testing.T, dir string, _ *Request) {
			if err := os.Remove(filepath.Join(dir, "data", "member", "snap", "db")); err != nil {
				t.Fatal(err)
			}
		}, "no such file", false},
		"a damaged database": {func(t *testing.T, dir string, _ *Request) {
			if err := os.WriteFile(filepath.Join(dir, "data", "member", "snap", "db"), make([]byte, 8192), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "open the database", true},
		"a database without keys":      {justBucket("meta"), "no database of etcd", true},
		"a database that is no etcd's": {justBucket("key"), "no database of etcd", true},
		"a backup that cannot be had": {func(_ *testing.T, _ string, r *Request) {
			r.Fetch = func(string) error { return errors.New("403 Forbidden") }
		}, "403 Forbidden", false},
		"a download that does not make way": {func(t *testing.T, dir string, r *Request) {
			if err := os.MkdirAll(filepath.Join(dir, "prepared-new.download", "somebody's"), 0o700); err != nil {
				t.Fatal(err)
			}
			r.Fetch = func(string) error { return errors.New("fetched all the same") }
		}, "directory not empty", false},
		"a backup without its checksum": {func(t *testing.T, _ string, r *Request) {
			r.Fetch = func(path string) error { database(t, path, nil); return nil }
		}, "a database and its checksum", true},
		"a backup with another checksum": {func(t *testing.T, _ string, r *Request) {
			r.Fetch = func(path string) error {
				database(t, path, nil)
				end(t, path, make([]byte, sha256.Size))
				return nil
			}
		}, "its checksum is", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := volume(t)
			r := request(dir)
			c.change(t, dir, &r)
			if err := Run(r, zap.NewNop()); err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrUnfit) != c.unfit {
				t.Fatalf("want %q, unfit %t, have %v", c.want, c.unfit, err)
			}
			for _, moved := range []string{"data-old", "prepared-new"} {
				if _, err := os.Lstat(filepath.Join(dir, moved)); err == nil {
					t.Errorf("there is %s", moved)
				}
			}
		})
	}
}

// justBucket makes the database one of bolt that has one bucket.
func justBucket(name string) func(*testing.T, string, *Request) {
	return func(t *testing.T, dir string, _ *Request) {
		path := filepath.Join(dir, "data", "member", "snap", "db")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte(name))
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// I8: no data takes a place where something stands that is not the old data.
func TestNoDataIsMadeBesideWhatIsNotUnderstood(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(kept string) error
		want string
	}{
		"what cannot be examined": {func(kept string) error { return os.Symlink("data-old", kept) }, syscall.ELOOP.Error()},
		"a file":                  {func(kept string) error { return os.WriteFile(kept, nil, 0o600) }, "data of both incarnations"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := volume(t)
			if err := c.put(filepath.Join(dir, "data-old")); err != nil {
				t.Fatal(err)
			}
			if err := Run(request(dir), zap.NewNop()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, have %v", c.want, err)
			}
			if last, _, err := revisions(filepath.Join(dir, "data", "member", "snap", "db")); err != nil || last != 11 {
				t.Errorf("the database is at %d: %v", last, err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "quorate.json"))
			if err != nil || !strings.Contains(string(text), `"old"`) {
				t.Errorf("the marker says %s: %v", text, err)
			}
		})
	}
}

// A full disk says nothing against the backup.
func TestAFullDiskMakesNoBackupUnfit(t *testing.T) {
	if err := unfit(fmt.Errorf("write the database: %w", syscall.ENOSPC)); errors.Is(err, ErrUnfit) {
		t.Error(err)
	}
}

// I8: what a compaction has removed counts, too: the revision never goes back.
// Older releases remove the last key when it is a deletion.
func TestACompactedDatabaseKeepsItsRevision(t *testing.T) {
	dir := t.TempDir()
	database(t, filepath.Join(dir, "data", "member", "snap", "db"), func(kv mvcc.KV) {
		_, rev := kv.DeleteRange([]byte("key-9"), nil)
		done, err := kv.Compact(traceutil.TODO(), rev)
		if err != nil {
			t.Fatal(err)
		}
		<-done
	})
	owned(t, dir, "old", member)
	withoutLastKey(t, filepath.Join(dir, "data", "member", "snap", "db"))
	last, reached, err := revisions(filepath.Join(dir, "data", "member", "snap", "db"))
	if err != nil || last >= reached || reached != 12 {
		t.Fatalf("the database is at %d and %d: %v", last, reached, err)
	}
	r := request(dir)
	r.AtLeast = 12
	if err := Run(r, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	if last, _, err = revisions(filepath.Join(dir, "data", "member", "snap", "db")); err != nil || last != state.RevisionBump+12 {
		t.Errorf("the new database is at %d: %v", last, err)
	}
}

func withoutLastKey(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Update(func(tx *bolt.Tx) error {
		keys := tx.Bucket([]byte("key"))
		newest, _ := keys.Cursor().Last()
		return keys.Delete(newest)
	}); err != nil {
		t.Fatal(err)
	}
}

// An empty volume is as good as the member's own for a backup.
func TestABackupOnAnEmptyVolume(t *testing.T) {
	r := request(t.TempDir())
	r.Fetch = func(path string) error {
		database(t, path, nil)
		seal(t, path)
		return nil
	}
	run(t, r)
	run(t, r)
}

// seal adds the checksum that etcd sends with a snapshot.
func seal(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	end(t, path, sum[:])
}

// end adds bytes to a file.
func end(t *testing.T, path string, more []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(more)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
