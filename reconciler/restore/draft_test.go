package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/state"
)

// I8: what is made in place is what etcd's own code makes of a copy: each bucket, and
// each file beside the database, to the byte. The snapshots are those of real servers, with
// users, roles, leases, an alarm and a compaction.
func TestARestoreInPlaceIsWhatEtcdMakes(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		sent := snapshotOf(t, version)
		for name, config := range map[string]snapshot.RestoreConfig{
			"a restore": {RevisionBump: uint64(state.RevisionBump), MarkCompacted: true},
			"a drill":   {},
		} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				config.Name, config.PeerURLs = member, []string{peer}
				config.InitialCluster, config.InitialClusterToken = member+"="+peer, "new"
				theirs, ours := config, config
				theirs.SnapshotPath, theirs.OutputDataDir = sent, filepath.Join(dir, "theirs")
				if err := snapshot.NewV3(zap.NewNop()).Restore(theirs); err != nil {
					t.Fatal(err)
				}
				source := filepath.Join(dir, "download")
				if err := errors.Join(copyDatabase(sent, source), takeChecksumOff(source)); err != nil {
					t.Fatal(err)
				}
				if err := restoreInPlace(source, filepath.Join(dir, "ours"), ours, zap.NewNop()); err != nil {
					t.Fatal(err)
				}
				sameDirectories(t, filepath.Join(dir, "theirs"), filepath.Join(dir, "ours"))
				if names := namesIn(t, dir); len(names) != 2 {
					t.Errorf("it has left %q", names)
				}
			})
		}
	})
}

// snapshotOf is what a real server sends.
func snapshotOf(t *testing.T, version string) string {
	t.Helper()
	server := etcdtest.Start(t, version, 1, false, "--unsafe-no-fsync", "--quota-backend-bytes=33554432").Members[0]
	c := server.Client()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var failed []error
	try := func(_ any, err error) { failed = append(failed, err) }
	lease, err := c.Grant(ctx, 3600)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		try(c.Put(ctx, fmt.Sprint("key-", i%20), "value", clientv3.WithLease(lease.ID)))
	}
	try(c.Compact(ctx, 30, clientv3.WithCompactPhysical()))
	try(c.Delete(ctx, "key-3"))
	try(c.RoleAdd(ctx, "reader"))
	try(c.RoleGrantPermission(ctx, "reader", "key-", "key.", clientv3.PermissionType(clientv3.PermRead)))
	try(c.UserAdd(ctx, "alice", "secret"))
	try(c.UserGrantRole(ctx, "alice", "reader"))
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	for i := range 80 { // until the alarm is raised
		_, _ = c.Put(ctx, fmt.Sprint("large-", i), string(make([]byte, 1<<20)))
	}
	if alarms, err := c.AlarmList(ctx); err != nil || len(alarms.Alarms) == 0 {
		t.Fatalf("%v, %v", alarms, err)
	}
	sent, err := c.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sent.Close() }()
	path := filepath.Join(t.TempDir(), "sent.db")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, sent)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// sameDirectories wants the same files in both, and the same pairs in their databases.
func sameDirectories(t *testing.T, want, got string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(want, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		name, err := filepath.Rel(want, path)
		if err != nil {
			return err
		}
		if d.Name() == "db" {
			sameDatabases(t, path, filepath.Join(got, name))
			return nil
		}
		a, errA := os.ReadFile(path)
		b, errB := os.ReadFile(filepath.Join(got, name))
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", name, err)
		}
		return nil
	})
	if err != nil || files < 3 {
		t.Errorf("%d files: %v", files, err)
	}
}

func sameDatabases(t *testing.T, want, got string) {
	t.Helper()
	a, b := pairs(t, want), pairs(t, got)
	for key, value := range a {
		if have, there := b[key]; !there || have != value {
			t.Errorf("%q is %q, and etcd makes %q", key, have, value)
		}
	}
	for key := range b {
		if _, there := a[key]; !there {
			t.Errorf("%q is there, and etcd makes none", key)
		}
	}
	if len(a) < 30 {
		t.Errorf("only %d pairs", len(a))
	}
}

// pairs are all of a database, by bucket and key.
func pairs(t *testing.T, path string) map[string]string {
	t.Helper()
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	all := map[string]string{}
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
			all[string(name)] = ""
			return bucket.ForEach(func(key, value []byte) error {
				all[string(name)+"/"+string(key)] = string(value)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// largeDatabase writes one of more than mebibytes MiB, and returns its size in bytes.
func largeDatabase(t *testing.T, path string, mebibytes int) int64 {
	t.Helper()
	database(t, path, func(kv mvcc.KV) {
		for i := range mebibytes {
			kv.Put(fmt.Appendf(nil, "large-%d", i), make([]byte, 1<<20), 0)
		}
	})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
