package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"

	"github.com/quorate/quorate/reconciler/backup/azurestore"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/driver"
	"github.com/quorate/quorate/reconciler/backup/googlestore"
	"github.com/quorate/quorate/reconciler/backup/s3store"
	"github.com/quorate/quorate/reconciler/compression"
)

// all is set by the nightly run.
var all = flag.Bool("all", false, "run each test of conformance at each look-alike of S3, and save long streams to each store")

// drivers are those of all object stores.
var drivers = driver.Set{"s3": s3store.Driver{}, "gs": googlestore.Driver{}, "azblob": azurestore.Driver{}}

// place is a real object store on this machine, empty at first.
type place struct {
	store Store
	// base is an object URL's beginning, with a slash at its end, query its "?…".
	base, query string
	// lift ends what the store is made to refuse, for who looks what is really there;
	// nil where it refuses nothing.
	lift func()
	// keepsParts says that the store does not list or abort uploads.
	keepsParts bool
	// large has the encrypted stream of the memory test be a long one, see checkMemory.
	large bool
}

func (p place) url(key string) string { return p.base + key + p.query }

// bucket gives the objects as they are stored, for who damages them.
func (p place) bucket(t *testing.T) *blob.Bucket {
	t.Helper()
	s, _, err := p.store.openDir(t.Context(), "test", p.url(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if s.key != "" {
		return blob.PrefixedBucket(s.bucket.Bucket, s.key)
	}
	return s.bucket.Bucket
}

// keys lists what is stored.
func (p place) keys(t *testing.T) (keys []string) {
	t.Helper()
	objects := p.bucket(t).List(nil)
	for {
		o, err := objects.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return keys
		}
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
}

func (p place) save(t *testing.T, key string, data []byte, edits ...func(*Manifest)) Manifest {
	t.Helper()
	m := manifestForTest()
	for _, edit := range edits {
		edit(&m)
	}
	saved, err := p.store.Save(t.Context(), p.url(key), bytes.NewReader(data), m)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return saved
}

// conformance is what every store must do, each in a place of its own. In scenarios:
// 105 nothing is overwritten, 106 damage is found, 108 memory does not grow with the
// size, 111 encryption and a wrong key, 199 compression,
// 200 memory.
func conformance() map[string]func(*testing.T, place) {
	return map[string]func(*testing.T, place){
		"saves and reads back":          testSaves,
		"reads what is stored":          testReadsStored,
		"overwrites nothing":            testOverwritesNothing,
		"leaves nothing of a bad one":   testBadStreams,
		"refuses a race":                testRace,
		"stops with its context":        testStops,
		"finds damage":                  testDamage,
		"encrypts":                      testEncrypts,
		"lists":                         testLists,
		"removes":                       testRemoves,
		"discards":                      testDiscards,
		"annotates":                     testAnnotates,
		"never loses a manifest":        testAnnotateFails,
		"signs":                         testSigns,
		"signs what is adopted":         testAdoptSigns,
		"compresses":                    testCompresses,
		"finds damage in compressed":    testDamageCompressed,
		"holds its memory bound":        testMemory,
		"holds its bound for encrypted": testMemoryEncrypted,
	}
}

func conform(t *testing.T, in func(t *testing.T) place) {
	for name, test := range conformance() {
		t.Run(name, func(t *testing.T) { test(t, in(t)) })
	}
}

// 110: a directory is a store like any other.
func TestDirectoryConforms(t *testing.T) {
	conform(t, func(t *testing.T) place { return place{base: "file://" + t.TempDir() + "/", large: true} })
}

// 109: a server under an address of its own, which has the bucket in the path.
func TestS3Conforms(t *testing.T) {
	s := backuptest.StartS3(t)
	conform(t, func(t *testing.T) place {
		p := s3Place(t, s)
		p.large = true
		return p
	})
}

// 109: another one, which many run themselves.
func TestMinIOConforms(t *testing.T) {
	s := startMinIO(t)
	conform(t, func(t *testing.T) place { return s3Place(t, s) })
}

func s3Place(t *testing.T, s *backuptest.S3) place {
	return placeAt(t, s.URL)
}

// placeAt is a directory of its own in the bucket that url makes object URLs of.
func placeAt(t *testing.T, url func(key string) string) place {
	base, query, _ := strings.Cut(url(strings.ReplaceAll(t.Name(), "/", "-")+"/"), "?")
	return place{store: Store{Drivers: drivers}, base: base, query: "?" + query}
}

func testSaves(t *testing.T, p place) {
	want := 0
	for name, size := range map[string]int{"small": 4096, "one-part": partBytes / 512 * 512, "multi-part": 3*partBytes + 4096} {
		key, data := "shop/ordérs+1/"+name+" x.db", backuptest.Snapshot(size)
		if _, err := p.store.ReadManifest(t.Context(), p.url(key)); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s before: %v", name, err)
		}
		saved := p.save(t, key, data)
		if saved.Size != int64(len(data)) || saved.FormatVersion != 1 || saved.Encrypted || saved.Origin != "" {
			t.Errorf("saved %+v", saved)
		}
		for op, read := range map[string]func(context.Context, string) (Manifest, error){"ReadManifest": p.store.ReadManifest, "Verify": p.store.Verify} {
			if m, err := read(t.Context(), p.url(key)); err != nil || !reflect.DeepEqual(m, saved) {
				t.Errorf("%s %s: %+v, %v, want %+v", op, name, m, err, saved)
			}
		}
		r, m, err := p.store.Open(t.Context(), p.url(key))
		if err != nil || !reflect.DeepEqual(m, saved) {
			t.Fatalf("open %s: %+v, %v", name, m, err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		want += 2
	}
	if keys := p.keys(t); len(keys) != want {
		t.Errorf("there is %q", keys)
	}
}

// testReadsStored reads an object as it is stored, from any byte on: what a restore does
// that has no signed URL.
func testReadsStored(t *testing.T, p place) {
	data := backuptest.Snapshot(64 << 10)
	p.save(t, "shop/1.db", data)
	for _, from := range []int{0, 1, 40_000, len(data) - 1} {
		r, err := p.store.OpenStored(t.Context(), p.url("shop/1.db"), int64(from))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if cerr := r.Close(); err != nil || cerr != nil || !bytes.Equal(got, data[from:]) {
			t.Errorf("from %d on: %d bytes, %v, %v", from, len(got), err, cerr)
		}
	}
	if _, err := p.store.OpenStored(t.Context(), p.url("shop/2.db"), 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if root := FileRoot(p.url("shop/1.db")); (root != "") != strings.HasPrefix(p.base, "file:") || root != "" && !strings.HasPrefix(p.base, "file://"+root+"/") {
		t.Errorf("its root is %q", root)
	}
}

func testOverwritesNothing(t *testing.T, p place) {
	b := p.bucket(t)
	for dir, there := range map[string]string{"a": "a/1.db", "b": "b/1.db" + ManifestSuffix} {
		if err := b.WriteAll(t.Context(), there, []byte("precious"), nil); err != nil {
			t.Fatal(err)
		}
		_, err := p.store.Save(t.Context(), p.url(dir+"/1.db"), bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
		backuptest.WantError(t, err, "save backup "+p.base+dir, "never overwrites")
		if text, err := b.ReadAll(t.Context(), there); string(text) != "precious" {
			t.Errorf("%s was overwritten: %v", there, err)
		}
	}
}

func testBadStreams(t *testing.T, p place) {
	for _, size := range []int{64 << 10, 2*partBytes + 4096} {
		for name, bad := range badStreams(size) {
			_, err := p.store.Save(t.Context(), p.url("bad.db"), bad.stream, manifestForTest())
			backuptest.WantError(t, err, "save backup "+p.base+"bad.db", bad.want, "take the snapshot again")
			if keys := p.keys(t); len(keys) != 0 {
				t.Errorf("%s of %d bytes left %v", name, size, keys)
			}
		}
	}
	// The next try has a name of its own: Azure's emulator keeps the old one taken
	// until the blocks of the failed upload are collected.
	p.save(t, "next.db", backuptest.Snapshot(4096))
}

// Two that save at once have both found nothing there.
func testRace(t *testing.T, p place) {
	for key, size := range map[string]int{"small.db": 4096, "parts.db": 2*partBytes + 4096} {
		first, other := bytes.NewReader(backuptest.Snapshot(size)), sync.Once{}
		stream := readerFunc(func(b []byte) (int, error) {
			other.Do(func() { p.save(t, key, backuptest.Snapshot(2048)) })
			return first.Read(b)
		})
		_, err := p.store.Save(t.Context(), p.url(key), stream, manifestForTest())
		backuptest.WantError(t, err, "never overwrites")
		if m, err := p.store.Verify(t.Context(), p.url(key)); err != nil || m.Size != 2048+32 {
			t.Errorf("the other's backup: %+v, %v", m, err)
		}
	}
	if keys := p.keys(t); len(keys) != 4 {
		t.Errorf("there is %q", keys)
	}
}

func testStops(t *testing.T, p place) {
	ctx, cancel := context.WithCancel(t.Context())
	data := bytes.NewReader(backuptest.Snapshot(3 * partBytes))
	stream := readerFunc(func(b []byte) (int, error) {
		if data.Len() < partBytes {
			cancel()
			return 0, ctx.Err()
		}
		return data.Read(b)
	})
	if _, err := p.store.Save(ctx, p.url("late.db"), stream, manifestForTest()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if keys := p.keys(t); len(keys) != 0 {
		t.Errorf("left %v", keys)
	}
}

func testDamage(t *testing.T, p place) {
	b, data := p.bucket(t), backuptest.Snapshot(64<<10)
	flipped := bytes.Clone(data)
	flipped[len(data)/2] ^= 4
	for name, tc := range map[string]struct {
		object []byte
		want   string
	}{
		"flipped":   {flipped, "is damaged"},
		"truncated": {data[:1024], "is damaged"},
		"empty":     {nil, "is damaged"},
		"foreign":   {[]byte("this is somebody's holiday photo"), "is damaged"},
		"another":   {backuptest.Snapshot(8192), "has 8224 bytes and should have 65568"},
	} {
		key := name + ".db"
		p.save(t, key, data)
		if err := b.WriteAll(t.Context(), key, tc.object, nil); err != nil {
			t.Fatal(err)
		}
		_, err := p.store.Verify(t.Context(), p.url(key))
		backuptest.WantError(t, err, "verify backup "+p.base+key, tc.want, "take a new one")
		r, _, err := p.store.Open(t.Context(), p.url(key))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, r)
		backuptest.WantError(t, err, "read backup "+p.base+key, tc.want, "take a new one")
		_ = r.Close()
	}
	if err := b.Delete(t.Context(), "empty.db"); err != nil {
		t.Fatal(err)
	}
	_, err := p.store.Verify(t.Context(), p.url("empty.db"))
	backuptest.WantError(t, err, "the manifest is there but the snapshot is not")
}

func testEncrypts(t *testing.T, p place) {
	owner, other := newIdentity(t), newIdentity(t)
	p.store.Recipients = []string{other.Recipient().String(), owner.Recipient().String()}
	for name, size := range map[string]int{"small": 4096, "multi-part": 2*partBytes + 4096} {
		key, data := name+".db", backuptest.Snapshot(size)
		m := p.save(t, key, data)
		stored, err := p.bucket(t).ReadAll(t.Context(), key)
		if err != nil || !m.Encrypted || m.Size != int64(len(stored)) || !slices.Equal(m.Recipients, p.store.Recipients) {
			t.Fatalf("%+v of %d bytes, %v", m, len(stored), err)
		}
		if bytes.Contains(stored, data[:512]) || !bytes.HasPrefix(stored, []byte("age-encryption.org/v1\n")) {
			t.Error("it is stored in the clear")
		}
		// Who has no key can still tell that the bytes are those that were stored.
		if _, err := p.store.Verify(t.Context(), p.url(key)); err != nil {
			t.Error(err)
		}
		_, _, err = p.store.Open(t.Context(), p.url(key))
		backuptest.WantError(t, err, "is encrypted and no private key was given", owner.Recipient().String())
		reader := p.store
		reader.Identity = "# created by a person\n" + owner.String() + "\n"
		if _, err := reader.Verify(t.Context(), p.url(key)); err != nil {
			t.Error(err)
		}
		r, _, err := reader.Open(t.Context(), p.url(key))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		_ = r.Close()
		for _, wrong := range []string{newIdentity(t).String(), "AGE-SECRET-KEY-1HUNTER2"} {
			reader.Identity = wrong
			_, _, err = reader.Open(t.Context(), p.url(key))
			backuptest.WantError(t, err, "private key", "was given")
			if strings.Contains(err.Error(), wrong) {
				t.Error("the error repeats the key")
			}
		}
		reader.Identity = owner.String()
		stored[len(stored)-100] ^= 1
		if err := p.bucket(t).WriteAll(t.Context(), key, stored, nil); err != nil {
			t.Fatal(err)
		}
		for _, st := range []Store{p.store, reader} {
			_, err = st.Verify(t.Context(), p.url(key))
			backuptest.WantError(t, err, "stored object", "take a new one")
		}
	}
	for name, bad := range badStreams(64 << 10) {
		_, err := p.store.Save(t.Context(), p.url("bad.db"), bad.stream, manifestForTest())
		backuptest.WantError(t, err, bad.want)
		if keys := p.keys(t); len(keys) != 4 {
			t.Errorf("%s left %v", name, keys)
		}
	}
}

func newIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func testLists(t *testing.T, p place) {
	if got, err := p.store.List(t.Context(), p.url("shop/orders/")); len(got) != 0 || err != nil {
		t.Errorf("at first: %v, %v", got, err)
	}
	snapshot := backuptest.Snapshot(4096)
	day := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for key, at := range map[string]struct {
		time     time.Time
		revision int64
	}{
		"shop/orders/9.db": {day, 9}, "shop/orders/10.db": {day, 10}, "shop/orders/deep/a b.db": {day.Add(-time.Hour), 900},
		"shop/orders/new.db": {day.Add(time.Hour), 1}, "shop/others/x.db": {day, 1}, "shop/orders-2/x.db": {day, 1},
	} {
		p.save(t, key, snapshot, func(m *Manifest) { m.Time, m.Revision = at.time, at.revision })
	}
	b := p.bucket(t)
	for key, text := range map[string]string{
		"shop/orders/no-manifest.db": "x", "shop/orders/broken.db" + ManifestSuffix: "{",
		"shop/orders/future.db" + ManifestSuffix: `{"formatVersion": 3}`, "shop/orders/" + ManifestSuffix: "{}",
	} {
		if err := b.WriteAll(t.Context(), key, []byte(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, prefix := range []string{"shop/orders/", "shop/orders/any.db"} {
		got, err := p.store.List(t.Context(), p.url(prefix))
		var order []string
		for _, m := range got {
			order = append(order, strings.TrimPrefix(m.Object, p.base+"shop/orders/"))
			if read, err := p.store.ReadManifest(t.Context(), m.URL(p.url(prefix))); err != nil || !reflect.DeepEqual(read, m) || m.Origin != "" {
				t.Errorf("%+v, %v, listed %+v", read, err, m)
			}
		}
		if want := []string{"new.db", "10.db", "9.db", "deep/a%20b.db"}; !slices.Equal(order, want) {
			t.Errorf("listed %q, want %q", order, want)
		}
		var broken *BrokenManifests
		if !errors.As(err, &broken) || len(broken.Errors) != 2 {
			t.Fatalf("broken: %v", err)
		}
		backuptest.WantError(t, broken.Errors[0], "list backups "+p.base+"shop/orders/broken.db", "not valid JSON")
		backuptest.WantError(t, broken.Errors[1], "shop/orders/future.db", "newer quorate")
	}
	if got, err := p.store.List(t.Context(), p.url("")); len(got) != 6 || err == nil {
		t.Errorf("the whole place: %d, %v", len(got), err)
	}
}

func testRemoves(t *testing.T, p place) {
	b, snapshot := p.bucket(t), backuptest.Snapshot(4096)
	p.save(t, "a/1.db", snapshot)
	p.save(t, "a/2.db", snapshot)
	manifest, err := b.ReadAll(t.Context(), "a/2.db"+ManifestSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for key, text := range map[string][]byte{
		"foreign.db": snapshot, "broken.db": snapshot, "broken.db" + ManifestSuffix: []byte("{"),
		"copy.db": snapshot, "copy.db" + ManifestSuffix: manifest,
	} {
		if err := b.WriteAll(t.Context(), key, text, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.store.Remove(t.Context(), p.url("foreign.db")); !errors.Is(err, ErrNotFound) {
		t.Errorf("foreign: %v", err)
	}
	backuptest.WantError(t, p.store.Remove(t.Context(), p.url("broken.db")), "remove backup "+p.base+"broken.db", "not valid JSON")
	backuptest.WantError(t, p.store.Remove(t.Context(), p.url("copy.db")), "it is a copy of "+p.base+"a/2.db")
	if err := p.store.Remove(t.Context(), p.url("a/1.db")); err != nil {
		t.Error(err)
	}
	if err := p.store.Remove(t.Context(), p.url("a/1.db")); !errors.Is(err, ErrNotFound) {
		t.Errorf("twice: %v", err)
	}
	want := []string{"a/2.db", "a/2.db" + ManifestSuffix, "broken.db", "broken.db" + ManifestSuffix, "copy.db", "copy.db" + ManifestSuffix, "foreign.db"}
	if keys := p.keys(t); !slices.Equal(keys, want) {
		t.Errorf("there is %q, want %q", keys, want)
	}
	if m, err := p.store.Verify(t.Context(), p.url("copy.db")); err != nil || m.Object != p.base+"copy.db" || m.Origin != p.base+"a/2.db" {
		t.Errorf("the copy: %+v, %v", m, err)
	}
}

// A Save that was killed leaves the object without a manifest, or parts of it. Who
// noted its URL can have that removed, twice; a finished backup stays.
func testDiscards(t *testing.T, p place) {
	if err := p.store.Discard(t.Context(), p.url("shop/none.db")); err != nil {
		t.Error(err)
	}
	p.save(t, "good.db", backuptest.Snapshot(4096))
	if err := p.bucket(t).WriteAll(t.Context(), "half.db", []byte("half"), nil); err != nil {
		t.Fatal(err)
	}
	uploads := startUploads(t, p, "half.db", "half.db2")
	for range 2 {
		for _, key := range []string{"half.db", "good.db"} {
			if err := p.store.Discard(t.Context(), p.url(key)); err != nil {
				t.Error(err)
			}
		}
	}
	keys := slices.DeleteFunc(p.keys(t), func(key string) bool { return strings.HasSuffix(key, ".tmp") })
	if !slices.Equal(keys, []string{"good.db", "good.db" + ManifestSuffix}) {
		t.Errorf("there is %q", keys)
	}
	want := []string{"half.db2"}
	if p.keepsParts {
		want = []string{"half.db", "half.db2"}
	}
	if p.lift != nil {
		p.lift()
	}
	if left := uploads(); !slices.Equal(left, want) {
		t.Errorf("uploads of %q are under way", left)
	}
}

// startUploads begins uploads as a killed process leaves them, where a store keeps
// such, and returns what says which are left.
func startUploads(t *testing.T, p place, keys ...string) func() []string {
	t.Helper()
	s, _, err := p.store.openDir(t.Context(), "test", p.url(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	var client *s3.Client
	switch {
	case s.bucket.As(&client):
		for _, key := range keys {
			key = s.key + key
			if _, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &s.target.bucket, Key: &key}); err != nil {
				t.Fatal(err)
			}
		}
		// One by one: MinIO lists those of an object that it is asked for, and no others.
		return func() (left []string) {
			for _, key := range keys {
				full := s.key + key
				uploads, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &s.target.bucket, Prefix: &full})
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(uploads.Uploads, func(u types.MultipartUpload) bool { return *u.Key == full }) {
					left = append(left, key)
				}
			}
			return left
		}
	case s.target.scheme == "file":
		drafts := func() (left []string) {
			found, _ := filepath.Glob(s.target.bucket + "/*.tmp")
			for _, draft := range found {
				key, _, _ := strings.Cut(filepath.Base(draft), ".18")
				left = append(left, key)
			}
			return left
		}
		for _, key := range keys {
			if err := os.WriteFile(filepath.Join(s.target.bucket, key+".18a2b3c4.tmp"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return drafts
	}
	// The others show none, and drop them by themselves.
	return func() []string { return []string{"half.db2"} }
}

func testAnnotates(t *testing.T, p place) {
	saved := p.save(t, "1.db", backuptest.Snapshot(4096))
	drill := Drill{Time: saved.Time.Add(time.Hour), Duration: 90 * time.Second, Result: DrillPassed, Keys: 7, Revision: 42, Hash: 1 << 31}
	tries := 0
	err := p.store.Annotate(t.Context(), p.url("1.db"), func(m *Manifest) {
		tries++
		if tries == 1 && !strings.HasPrefix(p.base, "file:") {
			// Another is faster. A directory cannot tell.
			if err := p.store.Annotate(t.Context(), p.url("1.db"), func(m *Manifest) { m.Request = "other" }); err != nil {
				t.Error(err)
			}
		}
		m.Drill, m.SHA256, m.Size, m.Object = drill, "forged", 1, "elsewhere"
	})
	if err != nil {
		t.Fatal(err)
	}
	want := saved
	want.Drill = drill
	if !strings.HasPrefix(p.base, "file:") {
		want.Request = "other"
	}
	if m, err := p.store.Verify(t.Context(), p.url("1.db")); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v, want %+v", m, err, want)
	}
	if err := p.store.Annotate(t.Context(), p.url("2.db"), func(*Manifest) {}); !errors.Is(err, ErrNotFound) {
		t.Errorf("absent: %v", err)
	}
	if keys := p.keys(t); len(keys) != 2 {
		t.Errorf("there is %q", keys)
	}
}

// A change that is cut off leaves the old manifest.
func testAnnotateFails(t *testing.T, p place) {
	saved := p.save(t, "1.db", backuptest.Snapshot(4096))
	ctx, cancel := context.WithCancel(t.Context())
	err := p.store.Annotate(ctx, p.url("1.db"), func(m *Manifest) {
		m.Request = "other"
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if m, err := p.store.ReadManifest(t.Context(), p.url("1.db")); err != nil || !reflect.DeepEqual(m, saved) {
		t.Errorf("%+v, %v", m, err)
	}
}

// What is compressed is a file of zstd, or of age with that in it, and reads as etcd sent
// it. A quorate that cannot read it is told by the format.
func testCompresses(t *testing.T, p place) {
	identity := newIdentity(t)
	p.store.Compress, p.store.Identity = true, identity.String()
	for key, recipients := range map[string][]string{"open.db": nil, "sealed.db": {identity.Recipient().String()}} {
		p.store.Recipients = recipients
		data := pages(3 * partBytes)
		m := p.save(t, key, data)
		stored, err := p.bucket(t).ReadAll(t.Context(), key)
		if err != nil || m.FormatVersion != 2 || m.Compression != compression.Zstd || m.SnapshotSize != int64(len(data)) || m.Size != int64(len(stored)) || m.Size > m.SnapshotSize/2 {
			t.Fatalf("%+v of %d bytes, %v", m, len(stored), err)
		}
		if sum := sha256.Sum256(stored); m.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("sha256 %s", m.SHA256)
		}
		if magic := bytes.HasPrefix(stored, []byte{0x28, 0xb5, 0x2f, 0xfd}); magic == m.Encrypted {
			t.Errorf("%s: it begins with %x", key, stored[:16])
		}
		if err := p.store.Annotate(t.Context(), p.url(key), func(m *Manifest) { m.Compression, m.SnapshotSize, m.FormatVersion = "", 0, 1 }); err != nil {
			t.Error(err)
		}
		if again, err := p.store.Verify(t.Context(), p.url(key)); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v, %v, want %+v", again, err, m)
		}
		r, _, err := p.store.Open(t.Context(), p.url(key))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", key, len(got), err)
		}
		_ = r.Close()
	}
	m := p.save(t, "random.db", signed(random(4<<20)))
	if m.FormatVersion != 1 || m.Compression != "" || m.Encrypted != (m.SnapshotSize > 0) {
		t.Errorf("what cannot be compressed: %+v", m)
	}
	for name, bad := range badStreams(2*partBytes + 4096) {
		_, err := p.store.Save(t.Context(), p.url("bad-"+strings.ReplaceAll(name, " ", "-")+".db"), bad.stream, manifestForTest())
		backuptest.WantError(t, err, bad.want, "take the snapshot again")
		if keys := p.keys(t); len(keys) != 6 {
			t.Errorf("%s left %v", name, keys)
		}
	}
}

// random is what no compression shrinks.
func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(data)
	return data
}

// pages is a snapshot that compresses well, as most do, but not to nothing.
func pages(size int) []byte {
	data := random(size)
	for at := 0; at < size; at += 4096 {
		clear(data[at : at+3072])
	}
	return signed(data)
}

// signed makes a snapshot of a database's bytes, which it changes.
func signed(database []byte) []byte {
	binary.LittleEndian.PutUint32(database[boltMagicOffset:], boltMagic)
	sum := sha256.Sum256(database)
	return append(database, sum[:]...)
}

func testDamageCompressed(t *testing.T, p place) {
	p.store.Compress = true
	b, data := p.bucket(t), pages(64<<10)
	p.save(t, "good.db", data)
	good, err := b.ReadAll(t.Context(), "good.db")
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(good)/2] ^= 4
	for name, tc := range map[string]struct {
		object []byte
		want   string
	}{
		"flipped":   {flipped, "is damaged"},
		"truncated": {good[:len(good)-8], "is damaged"},
		"continued": {append(bytes.Clone(good), "more"...), "is damaged"},
		"empty":     {nil, "is damaged"},
		"plain":     {data, "is damaged"},
		"another":   {stored(t, pages(8192)), "and should have"},
	} {
		key := name + ".db"
		p.save(t, key, data)
		if err := b.WriteAll(t.Context(), key, tc.object, nil); err != nil {
			t.Fatal(err)
		}
		_, err := p.store.Verify(t.Context(), p.url(key))
		backuptest.WantError(t, err, "verify backup "+p.base+key, tc.want, "take a new one")
	}
	// What says another size in its manifest is not what was saved.
	manifest, err := b.ReadAll(t.Context(), "good.db"+ManifestSuffix)
	if err != nil {
		t.Fatal(err)
	}
	manifest = bytes.Replace(manifest, []byte(`"snapshotSize": 65568`), []byte(`"snapshotSize": 65569`), 1)
	if err := b.WriteAll(t.Context(), "good.db"+ManifestSuffix, manifest, nil); err != nil {
		t.Fatal(err)
	}
	_, err = p.store.Verify(t.Context(), p.url("good.db"))
	backuptest.WantError(t, err, "the snapshot in the stored object has 65568 bytes and should have 65569")
}

// stored is what is kept of a snapshot that is compressed.
func stored(t *testing.T, snapshot []byte) []byte {
	t.Helper()
	c, shrinks, err := compression.Compress(bytes.NewReader(snapshot))
	if err != nil || !shrinks {
		t.Fatalf("shrinks %t, %v", shrinks, err)
	}
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// memoryBound is what docs/guarantees.md promises: 40 MiB at any size, of the whole process.
// Without it go what the runtime itself takes, and what is to be collected, which the
// limit in the process of a backup bounds.
const memoryBound = 26 << 20

func testMemory(t *testing.T, p place) {
	p.store.Compress = true
	p.large = false // it is the encrypted one that is long
	checkMemory(t, p)
}

func testMemoryEncrypted(t *testing.T, p place) {
	p.store.Compress, p.store.Recipients = true, []string{newIdentity(t).Recipient().String()}
	checkMemory(t, p)
}

// checkMemory saves a stream that does not fit into the bound: one of 48 MiB shows memory that grows with it. A long
// one, which shows as well what grows by a part of it, goes to a directory and to S3, where uploads have parts; the
// other stores get it with -all.
func checkMemory(t *testing.T, p place) {
	size := int64(48 << 20)
	if p.large || *all {
		size = 192 << 20
	}
	peak := heapPeak(func() {
		if m, err := p.store.Save(t.Context(), p.url("big.db"), endlessSnapshot(size), manifestForTest()); err != nil || m.SnapshotSize != size+32 {
			t.Errorf("%+v, %v", m, err)
		}
	})
	t.Logf("peak heap %d MiB for a snapshot of %d MiB", peak>>20, size>>20)
	if peak > memoryBound {
		t.Errorf("peak heap %d bytes", peak)
	}
}
