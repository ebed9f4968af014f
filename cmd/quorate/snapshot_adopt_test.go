package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"gocloud.dev/blob"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/restore"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
)

// savedSnapshot is what etcdctl snapshot save writes: the stream of a real etcd of
// that release, with four keys at revision 8.
func savedSnapshot(t *testing.T, version string) (snapshot []byte, etcd string) {
	t.Helper()
	s := etcdtest.Start(t, version, 1, false)
	for i := range 6 {
		s.MustPut(fmt.Sprint("key-", i%5), "value")
	}
	_, port, err := net.SplitHostPort(s.Members[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://127.0.0.1:" + port}, Logger: zap.NewNop(), DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Delete(t.Context(), "key-4"); err != nil {
		t.Fatal(err)
	}
	stream, err := client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot, err = io.ReadAll(stream); err != nil {
		t.Fatal(err)
	}
	return snapshot, s.Path
}

// The revision and the keys of savedSnapshot.
const savedRevision, savedKeys = 8, 4

// inFile stores an object in a directory, inS3 in a bucket.
func inFile(t *testing.T, name string, text []byte) (url string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + dir + "/" + name + "?root=" + dir
}

func inS3(t *testing.T, s3 *backuptest.S3, key string, text []byte) (url string) {
	t.Helper()
	url = s3.URL(key)
	_, query, _ := strings.Cut(url, "?")
	bucket, err := blob.OpenBucket(t.Context(), "s3://backups?use_path_style=true&"+query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bucket.Close() }()
	if err := bucket.WriteAll(t.Context(), key, text, nil); err != nil {
		t.Fatal(err)
	}
	return url
}

// 201: the snapshot that another tool has taken of a real etcd is adopted where it is,
// in a directory and in S3, and is restored as quorate's own backups are.
func TestAdoptedSnapshotsAreRestored(t *testing.T) {
	s3 := backuptest.StartS3(t)
	previous := map[string]string{
		etcdtest.V34: "3.3.27", etcdtest.V35: "3.4.34", etcdtest.V36: "3.5.35", etcdtest.V37: "3.6.16",
	}
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		older := previous[version]
		snapshot, etcd := savedSnapshot(t, version)
		plain := strings.TrimPrefix(version, "v")
		for _, url := range []string{
			inFile(t, "etcd.backup_v8_2026-11-24-05:00:00", snapshot), inS3(t, s3, version+"/orders-last.db", snapshot),
		} {
			status, stdout, stderr := quorateSays(t, "snapshot", "adopt", "--namespace=shop", "--name=orders",
				"--time=2026-11-20T02:00:00Z", "-o=json", url)
			var m backup.Manifest
			if err := json.Unmarshal([]byte(stdout), &m); status != 0 || err != nil {
				t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
			}
			line := plain[:strings.LastIndex(plain, ".")]
			sum := fmt.Sprintf("%x", sha256.Sum256(snapshot))
			taken := time.Date(2026, 11, 20, 2, 0, 0, 0, time.UTC)
			if m.Namespace != "shop" || m.Name != "orders" || m.Revision != savedRevision || m.Keys != savedKeys ||
				m.SHA256 != sum || m.HashRevision != 0 || m.ClusterID != "" || m.EtcdVersion != line+".0" ||
				m.Reason != "adopted" || !m.Time.Equal(taken) {
				t.Errorf("the manifest is %+v", m)
			}
			if stores.FitsRelease(m, plain) != nil || stores.FitsRelease(m, older) == nil {
				t.Errorf("it starts on %s: %v, and on %s: %v",
					plain, stores.FitsRelease(m, plain), older, stores.FitsRelease(m, older))
			}
			restoresAdopted(t, url, snapshot, etcd)
			// Done is done: the manifest stays as it is.
			status, _, stderr = quorateSays(t, "snapshot", "adopt", "--namespace=other", "--name=orders", url)
			if status != 1 || !strings.Contains(stderr, "it has a manifest already") {
				t.Errorf("again: status %d, %s", status, stderr)
			}
			if m, err := (backup.Store{Drivers: clouds.Drivers()}).ReadManifest(t.Context(), url); err != nil || m.Namespace != "shop" {
				t.Errorf("the manifest became %+v, %v", m, err)
			}
		}
	})
}

// restoresAdopted wants the adopted object to be what it was, and a cluster that
// begins with it to have its keys, both for good and on trial.
func restoresAdopted(t *testing.T, url string, snapshot []byte, etcd string) {
	t.Helper()
	m, err := (backup.Store{Drivers: clouds.Drivers()}).Verify(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(path string) error {
		r, _, err := (backup.Store{Drivers: clouds.Drivers()}).Open(t.Context(), url)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if !bytes.Equal(text, snapshot) {
			t.Errorf("the object has %d bytes, and the snapshot %d", len(text), len(snapshot))
		}
		return os.WriteFile(path, text, 0o600)
	}
	volumes := map[bool]string{}
	peer := backuptest.FreeAddress(t)
	for _, trial := range []bool{true, false} {
		volumes[trial] = t.TempDir()
		err := restore.Run(restore.Request{
			Volume: volumes[trial], Member: trialMember, PeerURL: "http://" + peer, Token: "t", AtLeast: m.Revision, Trial: trial,
			Keys:  restore.KeyHash{Hash: m.Hash, Revision: m.HashRevision, CompactRevision: m.CompactRevision},
			Fetch: fetch,
		}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
	}
	found, err := restore.Measure(filepath.Join(volumes[false], "data", "member", "snap", "db"))
	if err != nil || found.Keys != savedKeys || found.Revision != savedRevision+state.RevisionBump {
		t.Errorf("the restored database has %+v, %v", found, err)
	}
	b := backup.Verified{Revision: m.Revision, Keys: m.Keys}
	if got, err := startTrial(t, etcd, volumes[true], peer, b); err != nil || got.Problem != "" || got.Keys != savedKeys {
		t.Errorf("the restored etcd has %+v, %v", got, err)
	}
}

// startTrial starts an etcd of the release that the snapshot is from on the volume, and
// looks at it as a drill does.
func startTrial(t *testing.T, etcd, volume, peer string, b backup.Verified) (jobs.DrillResult, error) {
	t.Helper()
	client := backuptest.FreeAddress(t)
	run := exec.Command(etcd, "--name="+trialMember, "--data-dir="+filepath.Join(volume, "data"),
		"--initial-cluster="+trialMember+"=http://"+peer, "--initial-cluster-token=t", "--initial-advertise-peer-urls=http://"+peer, "--listen-peer-urls=http://"+peer,
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client)
	run.Env = []string{}
	if err := run.Start(); err != nil {
		return jobs.DrillResult{}, err
	}
	defer func() { _ = run.Process.Kill(); _ = run.Wait() }()
	return jobs.Compare(t.Context(), client, b)
}

// trialMember is the name of the only member of a restored cluster.
const trialMember = "orders-0"

// bareDatabase is a snapshot of a bolt database with these buckets and nothing in them.
func bareDatabase(t *testing.T, buckets ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return append(text, sum[:]...)
}

// 202: what is no whole snapshot, or is not one as etcd sends it, gets a sentence and
// no manifest, and stays as it is.
func TestWhatCannotBeRestoredIsNotAdopted(t *testing.T) {
	good, _ := savedSnapshot(t, etcdtest.V36)
	spoiled := bytes.Clone(good)
	spoiled[len(spoiled)/2] ^= 1
	text := bytes.Repeat([]byte("no database. "), 512)
	sum := sha256.Sum256(text[:4096])
	for name, c := range map[string]struct {
		object string
		text   []byte
		flags  []string
		want   string
	}{
		"damaged":           {text: spoiled, want: "the object is damaged: its sha256 is not the one that etcd appended"},
		"cut short":         {text: good[:8192], want: "it is a database without the checksum"},
		"cut short anyhow":  {text: good[:len(good)-7], want: "the object is cut short"},
		"empty":             {text: []byte{}, want: "the object is empty; it cannot be restored: adopt another one"},
		"a member's file":   {text: good[:len(good)-sha256.Size], want: "such as a copy of member/snap/db, so that nobody can know whether it is whole"},
		"no database":       {text: append(bytes.Clone(text[:4096]), sum[:]...), want: "is not a bolt database"},
		"another database":  {text: bareDatabase(t, "users"), want: "it is no database of etcd; nothing was written"},
		"of an unknown age": {text: bareDatabase(t, "key", "meta"), want: "give the release with --etcd-version"},
		"encrypted":         {text: []byte("age-encryption.org/v1\n-> X25519 abc\n"), want: "it is encrypted with age; decrypt a copy"},
		"gzip":              {object: "Full-00000000-00000008-1763964000.gz", text: []byte("\x1f\x8b\x08\x00 and so on"), want: "it is compressed with gzip; gunzip a copy"},
		"zlib":              {object: "Full-00000000-00000008-1763964000.zlib", text: []byte("\x78\x9c and so on"), want: "it is compressed with zlib; decompress a copy"},
		"zstd":              {text: []byte("\x28\xb5\x2f\xfd and so on"), want: "it is compressed with zstd; decompress a copy"},
		"lzw":               {object: "Full-00000000-00000008-1763964000.Z", text: []byte("anything"), want: "it is compressed with lzw, by its name"},
		"a delta":           {object: "Incr-00000009-00000012-1763964000", text: []byte("[]"), want: "a delta snapshot of etcd-druid"},
		"another release":   {text: good, flags: []string{"--etcd-version=3.5.35"}, want: "--etcd-version is 3.5.35, and what is in it is of etcd 3.6"},
		"no release":        {text: good, flags: []string{"--etcd-version=3.6"}, want: "--etcd-version: "},
		"in the future":     {text: good, flags: []string{"--time=2999-01-01T00:00:00Z"}, want: "is in the future"},
		"at no time":        {text: good, flags: []string{"--time=yesterday"}, want: `--time "yesterday" is no time`},
		"no cluster":        {text: good, flags: []string{"--name="}, want: "--name is required"},
		"no name":           {text: good, flags: []string{"--namespace=Shop"}, want: `--namespace "Shop" is no name in Kubernetes`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.object == "" {
				c.object = "orders.db"
			}
			url := inFile(t, c.object, c.text)
			t.Setenv("TMPDIR", t.TempDir())
			status, stdout, stderr := quorateSays(t, append([]string{"snapshot", "adopt", "--namespace=shop", "--name=orders", url}, c.flags...)...)
			if status != 1 || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("status %d\n%s%s", status, stdout, stderr)
			}
			path := strings.TrimPrefix(strings.Split(url, "?")[0], "file://")
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, c.text) {
				t.Errorf("the object was changed: %v", err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("beside the object there is %v, %v", left, err)
			}
			if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
				t.Errorf("the copy was left behind: %v, %v", left, err)
			}
		})
	}
	url := inFile(t, "orders.db", good)
	if status, _, stderr := quorateSays(t, "snapshot", "adopt", "--namespace=shop", "--name=orders", strings.Replace(url, "orders.db", "absent.db", 1)); status != 1 || !strings.Contains(stderr, "no object is stored there; correct the object URL") {
		t.Errorf("absent: status %d, %s", status, stderr)
	}
	if status, stdout, _ := quorateSays(t, "snapshot", "adopt", "--namespace=shop", "--name=orders", "--etcd-version=3.6.16", url); status != 0 || !strings.Contains(stdout, "etcd 3.6.16, revision 8, keys 4") {
		t.Errorf("good: status %d, %s", status, stdout)
	}
}
