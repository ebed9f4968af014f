package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/schema"
)

// endlessSnapshot generates a stream of size bytes and its checksum without
// holding it. Its beginning can be compressed, and nothing else: all of it is sent.
func endlessSnapshot(size int64) io.Reader {
	h := sha256.New()
	head := make([]byte, 4<<20)
	binary.LittleEndian.PutUint32(head[boltMagicOffset:], boltMagic)
	body := io.MultiReader(bytes.NewReader(head), io.LimitReader(rand.NewChaCha8([32]byte{}), size-int64(len(head))))
	return io.MultiReader(io.TeeReader(body, h), &checksumReader{sum: func() []byte { return h.Sum(nil) }})
}

// checksumReader asks for its bytes when it is first read.
type checksumReader struct {
	sum  func() []byte
	rest io.Reader
}

func (r *checksumReader) Read(p []byte) (int, error) {
	if r.rest == nil {
		r.rest = bytes.NewReader(r.sum())
	}
	return r.rest.Read(p)
}

func manifestForTest() Manifest {
	return Manifest{
		Namespace: "shop", Name: "orders", ClusterID: "cdf818194e3a8c32", Member: "orders-0", EtcdVersion: "3.5.21",
		Revision: 42, Reason: "upgrade 3.5.21 → 3.6.16", TargetVersion: "3.6.16", Commit: "0a1b2c3",
		Time: time.Date(2026, 11, 20, 10, 0, 0, 5, time.UTC),
	}
}

// filesBelow lists the regular files below dir.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// heapPeak samples what f needs at a time, in bytes: the heap but for what is to be
// collected, which is as much as the machine is loaded, and the stacks.
func heapPeak(f func()) uint64 {
	for range 3 {
		// Pools let go of what earlier tests put into them after two cycles.
		runtime.GC()
	}
	var peak atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc+m.StackInuse))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(stop)
	<-done
	return peak.Load()
}

func snapshotCopy(w io.Writer, r io.Reader) (snapshotSum, error) {
	checked := newSnapshotReader(r)
	_, err := io.Copy(w, checked)
	return checked.sum, err
}

func TestSnapshotCheckAgreesWithAnyChunking(t *testing.T) {
	data := backuptest.Snapshot(4096)
	want, err := snapshotCopy(io.Discard, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{
		"bytes":         iotest.OneByteReader(bytes.NewReader(data)),
		"halves":        iotest.HalfReader(bytes.NewReader(data)),
		"data with EOF": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		var copied bytes.Buffer
		got, err := snapshotCopy(&copied, r)
		if err != nil || got != want || !bytes.Equal(copied.Bytes(), data) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// 199: backups of a quorate that did not compress read as before: testdata/format1 is what
// one has written.
func TestReadsWhatAnEarlierQuorateWrote(t *testing.T) {
	dir, err := filepath.Abs("testdata/format1")
	if err != nil {
		t.Fatal(err)
	}
	identity, err := os.ReadFile(filepath.Join(dir, "age-key.txt"))
	if err != nil {
		t.Fatal(err)
	}
	store, data := Store{Drivers: drivers, Compress: true, Identity: string(identity)}, backuptest.Snapshot(4096)
	for _, key := range []string{"plain.db", "sealed.db"} {
		url := "file://" + dir + "/" + key + "?root=" + dir
		m, err := store.Verify(t.Context(), url)
		if err != nil || m.FormatVersion != 1 || m.Revision != 42 || m.Origin != "file:///backups/shop/"+key {
			t.Errorf("%+v, %v", m, err)
		}
		r, _, err := store.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", key, len(got), err)
		}
		_ = r.Close()
		v, err := m.Verified(schema.DecryptionSpec{SecretName: "key"}, "")
		if err != nil || v.SHA256 != m.SHA256 || v.Compression != "" || v.SnapshotSize != 0 {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

// A real bolt file passes: the magic number is where this package looks for it.
func TestSnapshotCheckTakesBolt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	if _, err := snapshotCopy(io.Discard, bytes.NewReader(append(body, sum[:]...))); err != nil {
		t.Error(err)
	}
}

func TestSaveToFile(t *testing.T) {
	dir, data := t.TempDir(), backuptest.Snapshot(1<<20)
	url := "file://" + dir + "/shop/orders/1.db"
	if _, err := (Store{Drivers: drivers}).ReadManifest(t.Context(), url); !errors.Is(err, ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	saved, err := Store{Drivers: drivers}.Save(t.Context(), url, bytes.NewReader(data), manifestForTest())
	if err != nil {
		t.Fatal(err)
	}
	if saved.Size != int64(len(data)) || saved.Object != url || saved.FormatVersion != 1 {
		t.Errorf("saved %+v", saved)
	}
	for name, read := range map[string]func(context.Context, string) (Manifest, error){"ReadManifest": Store{Drivers: drivers}.ReadManifest, "Verify": Store{Drivers: drivers}.Verify} {
		if m, err := read(t.Context(), url); err != nil || !reflect.DeepEqual(m, saved) {
			t.Errorf("%s: %+v, %v, want %+v", name, m, err, saved)
		}
	}
	if files := filesBelow(t, dir); len(files) != 2 {
		t.Errorf("files %v", files)
	}
	info, err := os.Stat(dir + "/shop/orders/1.db")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: a snapshot is secret", info.Mode(), err)
	}
}

func TestSaveOverwritesNothing(t *testing.T) {
	for _, there := range []string{"1.db", "1.db" + ManifestSuffix} {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/"+there, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Store{Drivers: drivers}.Save(t.Context(), "file://"+dir+"/1.db", bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
		backuptest.WantError(t, err, "save backup file://", "never overwrites")
		if text, _ := os.ReadFile(dir + "/" + there); string(text) != "precious" {
			t.Errorf("%s was overwritten", there)
		}
	}
}

// badStreams are streams of about size bytes that must leave nothing behind.
func badStreams(size int) map[string]struct {
	stream io.Reader
	want   string
} {
	good := backuptest.Snapshot(size)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	noBolt := bytes.Clone(good[:len(good)-sha256.Size])
	noBolt[boltMagicOffset] ^= 1
	sum := sha256.Sum256(noBolt)
	return map[string]struct {
		stream io.Reader
		want   string
	}{
		"empty":         {bytes.NewReader(nil), "stream is empty"},
		"only checksum": {bytes.NewReader(good[:sha256.Size]), "cut short"},
		"truncated":     {bytes.NewReader(good[:len(good)-100]), "cut short"},
		"lost page":     {bytes.NewReader(append(bytes.Clone(good[:size/2/512*512]), good[len(good)-32:]...)), "sha256 is not the one"},
		"bit flip":      {bytes.NewReader(flipped), "sha256 is not the one"},
		"not bolt":      {bytes.NewReader(append(noBolt, sum[:]...)), "not a bolt database"},
		"broken":        {io.MultiReader(bytes.NewReader(good[:len(good)/2]), iotest.ErrReader(errors.New("etcdserver: leader changed"))), "leader changed"},
	}
}

func TestSaveLeavesNothingOfABadStream(t *testing.T) {
	for name, bad := range badStreams(1 << 20) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := Store{Drivers: drivers}.Save(t.Context(), "file://"+dir+"/shop/1.db", bad.stream, manifestForTest())
			backuptest.WantError(t, err, "save backup file://", bad.want, "take the snapshot again")
			if files := filesBelow(t, dir); len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

func TestSaveStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	stream := io.MultiReader(bytes.NewReader(backuptest.Snapshot(4096)[:2000]), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, ctx.Err()
	}))
	_, err := Store{Drivers: drivers}.Save(ctx, "file://"+dir+"/1.db", stream, manifestForTest())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if files := filesBelow(t, dir); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestVerifyFindsDamage(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func(object string) error
		want   string
	}{
		"bit flip": {func(object string) error {
			data, err := os.ReadFile(object)
			data[len(data)/2] ^= 4
			return errors.Join(err, os.WriteFile(object, data, 0o600))
		}, "damaged"},
		"truncated":        {func(object string) error { return os.Truncate(object, 1024) }, "damaged"},
		"another snapshot": {func(object string) error { return os.WriteFile(object, backuptest.Snapshot(8192), 0o600) }, "has 8224 bytes and should have 4128"},
		"same size": {func(object string) error {
			other := backuptest.Snapshot(4096)
			other[100] ^= 1
			sum := sha256.Sum256(other[:4096])
			return os.WriteFile(object, append(other[:4096], sum[:]...), 0o600)
		}, "should have"},
		"gone":         {os.Remove, "the snapshot is not"},
		"bad manifest": {func(object string) error { return os.WriteFile(object+ManifestSuffix, []byte("{"), 0o600) }, "not valid JSON"},
		"new manifest": {func(object string) error {
			return os.WriteFile(object+ManifestSuffix, []byte(`{"formatVersion": 3}`), 0o600)
		}, "newer quorate"},
		"no manifest": {func(object string) error { return os.Remove(object + ManifestSuffix) }, "no backup is stored there"},
	} {
		t.Run(name, func(t *testing.T) {
			object := t.TempDir() + "/1.db"
			if _, err := (Store{Drivers: drivers}).Save(t.Context(), "file://"+object, bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest()); err != nil {
				t.Fatal(err)
			}
			if err := tc.damage(object); err != nil {
				t.Fatal(err)
			}
			_, err := Store{Drivers: drivers}.Verify(t.Context(), "file://"+object)
			backuptest.WantError(t, err, "verify backup file://"+object, tc.want)
		})
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const size, ceiling = 256 << 20, memoryBound
	url := "file://" + t.TempDir() + "/big.db"
	peak := heapPeak(func() {
		if m, err := (Store{Drivers: drivers}).Save(t.Context(), url, endlessSnapshot(size), manifestForTest()); err != nil || m.Size != size+32 {
			t.Errorf("%+v, %v", m, err)
		}
	})
	t.Logf("peak heap %d MiB for a snapshot of %d MiB", peak>>20, size>>20)
	if peak > ceiling {
		t.Errorf("peak heap %d bytes", peak)
	}
}

func TestURLs(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "no-such")
	for url, want := range map[string]string{
		"s3://b/k.db?endpoint=ftp://h":                "http or https",
		"s3://b/k.db?endpoint=http://u:hunter2@h":     "contains credentials",
		"s3://u:hunter2@b/k.db":                       "contains credentials",
		"s3://b":                                      "not a plain key",
		"s3:///k.db":                                  "names no bucket",
		"s3://b/a/../k.db":                            "not a plain key",
		"s3://b/a/":                                   "not a plain key",
		"s3://b/k.db?prefix=hunter2":                  "the parameter prefix or key, but the key is its path",
		"gs://b/k.db?prefix=hunter2":                  "the parameter prefix or key, but the key is its path",
		"azblob://b/k.db?key=hunter2":                 "the parameter prefix or key, but the key is its path",
		"s3://b/k.db?endpoint=http://":                "endpoint",
		"http://b/k.db":                               "scheme",
		"mem://b/k.db":                                "scheme",
		"s3://b:hunter2/k":                            "not a URL",
		"file://tmp/k.db":                             "three slashes",
		"file:///k.db":                                "names no directory",
		"file:///tmp/k.db?create_dir=hunter2":         "no parameter but root",
		"file:///tmp/k.db?root=/var":                  "not below its root",
		"file:///no-such-directory/k.db":              "/no-such-directory does not exist",
		"file://" + absent + "/k.db?root=" + absent:   absent + " does not exist",
		"s3://b/k.db?region=r&secret_key=hunter2":     "unknown query parameter",
		"gs://b/k.db?anonymous=true&hunter2x=hunter2": "invalid query parameter",
	} {
		_, err := Store{Drivers: drivers}.Save(t.Context(), url, bytes.NewReader(nil), Manifest{})
		backuptest.WantError(t, err, "save backup", want)
		if strings.Contains(err.Error(), "=hunter2") || strings.Contains(err.Error(), ":hunter2") {
			t.Errorf("%s: the error repeats a secret: %v", url, err)
		}
	}
}

func TestS3EndpointMeansPathStyle(t *testing.T) {
	for query, want := range map[string]string{
		"endpoint=http://10.0.0.1:7070":                        "true",
		"endpoint=http://10.0.0.1:7070&use_path_style=false":   "false",
		"endpoint=http://10.0.0.1:7070&s3ForcePathStyle=false": "",

		"region=eu-west-1": "",
	} {
		target, err := parseURL("test", "s3://b/k?"+query)
		if got := target.query.Get("use_path_style"); err != nil || got != want {
			t.Errorf("%s: use_path_style=%q, %v, want %q", query, got, err, want)
		}
	}
}

// 197: with an endpoint no checksums are sent that other stores than Amazon's may not
// know, unless the URL asks for them.
func TestS3EndpointMeansNoChecksums(t *testing.T) {
	for query, want := range map[string]string{
		"endpoint=http://10.0.0.1:7070":                                             "when_required",
		"endpoint=http://10.0.0.1:7070&request_checksum_calculation=when_supported": "when_supported",

		"region=eu-west-1": "",
	} {
		target, err := parseURL("test", "s3://b/k?"+query)
		if got := target.query.Get("request_checksum_calculation"); err != nil || got != want {
			t.Errorf("%s: request_checksum_calculation=%q, %v, want %q", query, got, err, want)
		}
	}
}

// A directory that the process may not write to is refused as such, for root as well, which runs the test as nobody.
func TestFilePermissions(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	leavePrivileges(t)
	_, err := Store{}.Save(t.Context(), "file://"+dir+"/1.db", bytes.NewReader(backuptest.Snapshot(4096)), Manifest{})
	backuptest.WantError(t, err, "permission denied", "list, read, write and delete in "+dir)
}
