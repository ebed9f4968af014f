package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/compression"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/restore"
)

// The backup that is stored is the one that was verified, or none; and who has the
// URL has the data, so that no error repeats it.
func TestFetchBackup(t *testing.T) {
	content := bytes.Repeat([]byte("etcd"), 1000)
	hash := sha256.Sum256(content)
	sum := hex.EncodeToString(hash[:])
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/1.db" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = w.Write(content)
	}))
	defer store.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		url, sum string
		size     int64
		want     string
	}{
		"the verified one": {store.URL + "/1.db?token=s3cret", sum, 4000, ""},
		"another one":      {store.URL + "/1.db?token=s3cret", strings.Repeat("0", 64), 4000, "it has other bytes: 4000 bytes and sha256 " + sum},
		"another size":     {store.URL + "/1.db?token=s3cret", sum, 4001, "the one that was verified has 4001"},
		"expired":          {store.URL + "/2.db?token=s3cret", sum, 4000, "the store answers 403 Forbidden"},
		"no store":         {gone.URL + "/1.db?token=s3cret", sum, 4000, "connection refused"},
		"no URL":           {"http://%zz?token=s3cret", sum, 4000, "the URL is not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backup.db")
			err := storedBackup{url: c.url, sum: c.sum, size: c.size}.fetch(t.Context(), path)
			if c.want == "" {
				if text, errRead := os.ReadFile(path); err != nil || errRead != nil || !bytes.Equal(text, content) {
					t.Errorf("%v, %v, %d bytes", err, errRead, len(text))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// 190, 191: a download that breaks off, stalls, or meets a store that is busy continues
// where it was; one whose URL has expired, with the URL that quorate writes meanwhile.
func TestADownloadContinues(t *testing.T) {
	content := bytes.Repeat([]byte("etcdetcdetcd"), 20_000)
	hash := sha256.Sum256(content)
	var ranges []string
	limits := patience{stall: 200 * time.Millisecond, giveUp: 10 * time.Second, first: time.Millisecond, most: time.Millisecond}
	partly := func(w http.ResponseWriter, r *http.Request) (rest []byte) {
		from := 0
		if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); n == 1 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
			w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
			w.WriteHeader(http.StatusPartialContent)
		} else {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		}
		return content[from:]
	}
	some := func(w http.ResponseWriter, rest []byte, most int) {
		_, _ = w.Write(rest[:min(most, len(rest))])
		w.(http.Flusher).Flush()
	}
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request, dir string){
		"it breaks off": func(w http.ResponseWriter, r *http.Request, _ string) { some(w, partly(w, r), 100_000) },
		"it stalls": func(w http.ResponseWriter, r *http.Request, _ string) {
			rest := partly(w, r)
			some(w, rest, 100_000)
			if len(rest) > 100_000 {
				<-r.Context().Done()
			}
		},
		"it says nothing at first": func(w http.ResponseWriter, r *http.Request, _ string) {
			if len(ranges) == 1 {
				<-r.Context().Done()
				return
			}
			some(w, partly(w, r), len(content))
		},
		"it knows no ranges": func(w http.ResponseWriter, r *http.Request, _ string) {
			r.Header.Del("Range")
			some(w, partly(w, r), 100_000*len(ranges))
		},
		"it is busy": func(w http.ResponseWriter, r *http.Request, _ string) {
			if len(ranges) < 4 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			some(w, partly(w, r), len(content))
		},
		"its URL expires": func(w http.ResponseWriter, r *http.Request, dir string) {
			if r.URL.RawQuery == "first" && len(ranges) > 1 {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, "<Error><Code>ExpiredToken</Code></Error>")
				writeOffer(t, dir, "http://"+r.Host+"/1.db?second")
				return
			}
			some(w, partly(w, r), 100_000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ranges = nil
			dir := t.TempDir()
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ranges = append(ranges, r.Header.Get("Range"))
				answer(w, r, dir)
			}))
			defer store.Close()
			writeOffer(t, dir, store.URL+"/1.db?first")
			path := filepath.Join(t.TempDir(), "backup.db")
			var log bytes.Buffer
			b := storedBackup{offer: dir, sum: hex.EncodeToString(hash[:]), size: int64(len(content)), limits: limits, log: &log}
			if err := b.fetch(t.Context(), path); err != nil {
				t.Fatalf("%v, %q, %s", err, ranges, log.String())
			}
			if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, content) {
				t.Errorf("%v, %d bytes", err, len(text))
			}
			if len(ranges) < 2 || !strings.Contains(log.String(), "it is tried again") || strings.Contains(log.String(), "?") {
				t.Errorf("asked for %q, log %s", ranges, log.String())
			}
		})
	}
}

// writeOffer writes a URL into the directory of a mounted Secret.
func writeOffer(t *testing.T, dir, url string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "url"), []byte(url), 0o600); err != nil {
		t.Error(err)
	}
}

// 191: a download has an end: without a new byte for long enough it is given up, and what
// does not become better is not waited for. Neither says that the backup is unfit.
func TestADownloadGivesUp(t *testing.T) {
	asked := 0
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		once   bool
	}{
		"silence":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "has sent nothing for too long", false},
		"it is busy": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "503", false},
		"the URL has expired": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
		}, "the URL has expired, and quorate has not written a new one", false},
		"it is gone": {http.NotFound, "404", true},
		"other bytes each time": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, "please log in %d", asked) },
			"gives other bytes each time", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				c.answer(w, r)
			}))
			defer store.Close()
			b := storedBackup{url: store.URL, sum: strings.Repeat("0", 64), size: 4000, limits: patience{stall: 20 * time.Millisecond, giveUp: 200 * time.Millisecond, first: time.Millisecond, most: time.Millisecond}}
			err := b.fetch(t.Context(), filepath.Join(t.TempDir(), "backup.db"))
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, restore.ErrUnfit) || (asked == 1) != c.once {
				t.Errorf("%v after %d requests, want %q", err, asked, c.want)
			}
		})
	}
}

// 192, 193: a restore reads an object by itself: from the files of a mounted volume, with
// the credentials of a mounted Secret, and with an identity of its own.
func TestAnObjectIsFetchedWithoutASignedURL(t *testing.T) {
	content, files := backuptest.Snapshot(300<<10), t.TempDir()
	store := backuptest.StartS3(t)
	for name, c := range map[string]struct {
		url    string
		secret map[string][]byte
	}{
		"files":           {"file://" + files + "/1.db?root=" + files, nil},
		"with the Secret": {store.URL("secret.db"), backuptest.S3Secret()},
		"by identity":     {store.URL("identity.db"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := backup.Store{Drivers: clouds.Drivers(), Credentials: c.secret}.Save(t.Context(), c.url, bytes.NewReader(content), backup.Manifest{})
			if err != nil {
				t.Fatal(err)
			}
			offer, credentials := t.TempDir(), ""
			write := func(dir, key string, value []byte) {
				if err := os.WriteFile(filepath.Join(dir, key), value, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(offer, "object", []byte(c.url))
			if c.secret != nil {
				credentials = t.TempDir()
				for key, value := range c.secret {
					write(credentials, key, value)
				}
			}
			path := filepath.Join(t.TempDir(), "backup.db")
			b := storedBackup{offer: offer, credentials: credentials, sum: m.SHA256, size: m.Size}
			if err := b.fetch(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, content) {
				t.Errorf("%v, %d bytes", err, len(text))
			}
			rest, begins, err := b.open(t.Context(), 200<<10)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(rest)
			if cerr := rest.Close(); err != nil || cerr != nil || begins != 200<<10 || !bytes.Equal(text, content[200<<10:]) {
				t.Errorf("%v, %v, %d bytes from %d on", err, cerr, len(text), begins)
			}
			write(offer, "object", []byte(strings.Replace(c.url, ".db", "2.db", 1)))
			if err := b.fetch(t.Context(), path+"2"); err == nil || errors.Is(err, restore.ErrUnfit) || !strings.Contains(err.Error(), "no backup is stored there") {
				t.Errorf("one that is not there: %v", err)
			}
		})
	}
}

// 109, 111: an encrypted backup is decrypted on its way from a store with a CA of its
// own, and checked as it was stored. Another key, and one that is none, are told, and
// neither is repeated.
func TestFetchEncryptedBackup(t *testing.T) {
	keys := make([]*age.X25519Identity, 2)
	for i := range keys {
		var err error
		if keys[i], err = age.GenerateX25519Identity(); err != nil {
			t.Fatal(err)
		}
	}
	content, object := bytes.Repeat([]byte("etcd"), 100_000), &bytes.Buffer{}
	w, err := age.Encrypt(object, keys[0].Recipient())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(object.Bytes())
	store := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(object.Bytes()) }))
	defer store.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: store.Certificate().Raw}))
	for name, c := range map[string]struct {
		identity, ca, sum, want string
	}{
		"the right key":    {identity: keys[0].String() + "\n", ca: ca},
		"another key":      {identity: keys[1].String(), ca: ca, want: "not for the private key that was given"},
		"no key":           {identity: "x" + keys[0].String(), ca: ca, want: "is none of age's"},
		"another object":   {identity: keys[0].String(), ca: ca, sum: strings.Repeat("0", 64), want: "the one that was verified has"},
		"a CA of nobody's": {identity: keys[0].String(), ca: "x", want: "no certificate in PEM"},
		"without its CA":   {identity: keys[0].String(), want: "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backup.db")
			b := storedBackup{url: store.URL, ca: c.ca, sum: cmp.Or(c.sum, hex.EncodeToString(hash[:])), size: int64(object.Len()), identity: c.identity, encrypted: true}
			err := b.fetch(t.Context(), path)
			if c.want == "" {
				if text, errRead := os.ReadFile(path); err != nil || errRead != nil || !bytes.Equal(text, content) {
					t.Errorf("%v, %v, %d bytes", err, errRead, len(text))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "AGE-SECRET-KEY") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// 199: a compressed backup is decompressed on its way, and checked as it was stored: one
// that is no longer what was verified is unfit, however far it can be decompressed.
func TestFetchCompressedBackup(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	content := backuptest.Snapshot(1 << 20)
	for name, sealed := range map[string]bool{"in the clear": false, "encrypted": true} {
		store := backup.Store{Compress: true}
		if sealed {
			store.Recipients = []string{key.Recipient().String()}
		}
		m, err := store.Save(t.Context(), "file://"+dir+"/"+url.PathEscape(name)+".db?root="+dir, bytes.NewReader(content), backup.Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		object, err := os.ReadFile(filepath.Join(dir, name+".db"))
		if err != nil {
			t.Fatal(err)
		}
		flipped, broken := bytes.Clone(object), object[:len(object)/2]
		flipped[len(flipped)/2] ^= 1
		for what, c := range map[string]struct {
			served      []byte
			compression string
			want        string
			unfit       bool
		}{
			"as stored":            {object, compression.Zstd, "", false},
			"flipped":              {flipped, compression.Zstd, "the one that was verified has", true},
			"cut off":              {broken, compression.Zstd, "the one that was verified has", true},
			"of another kind":      {object, "lz5", "lz5", false},
			"the connection broke": {nil, compression.Zstd, "fetch the backup: unexpected EOF", false},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if c.served == nil {
						w.Header().Set("Content-Length", strconv.Itoa(len(object)))
						c.served = broken
					}
					_, _ = w.Write(c.served)
				}))
				defer server.Close()
				path := filepath.Join(t.TempDir(), "backup.db")
				err := storedBackup{url: server.URL, sum: m.SHA256, size: m.Size, identity: key.String(), encrypted: sealed, compression: c.compression}.fetch(t.Context(), path)
				if c.want == "" {
					if text, errRead := os.ReadFile(path); err != nil || errRead != nil || !bytes.Equal(text, content) {
						t.Errorf("%v, %v, %d bytes", err, errRead, len(text))
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, restore.ErrUnfit) != c.unfit {
					t.Errorf("%v, want %q, unfit %t", err, c.want, c.unfit)
				}
			})
		}
	}
}

func newKey(t *testing.T) *age.X25519Identity {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// What is missing is said, and a volume that is not the member's is left alone.
func TestRestoreVolumeRefuses(t *testing.T) {
	t.Setenv(jobs.BackupURLEnv, "")
	var out bytes.Buffer
	run := func(args ...string) error {
		cmd := newRestoreVolume()
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		return cmd.ExecuteContext(context.Background())
	}
	if err := run("--member=orders-0"); err == nil || !strings.Contains(err.Error(), "--volume, --member, --peer-url and --token are needed") {
		t.Error(err)
	}
	volume := t.TempDir()
	if err := os.WriteFile(filepath.Join(volume, "somebody.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := run("--volume="+volume, "--member=orders-0", "--peer-url=https://orders-0:2380", "--former-token=a", "--token=b")
	if err == nil || !strings.Contains(err.Error(), "holds foreign data (somebody.txt)") {
		t.Error(err)
	}
}

// 166: a backup whose keys have another hash than etcd said is refused with a status of its
// own, but in a drill, and restored where its own sha256 is accepted, and no other.
func TestAnotherHashOfTheKeysIsAccepted(t *testing.T) {
	content := databaseOfEtcd(t)
	hash := sha256.Sum256(content)
	sum := hex.EncodeToString(hash[:])
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	defer store.Close()
	t.Setenv(jobs.BackupURLEnv, store.URL)
	for name, c := range map[string]struct {
		args []string
		want error
	}{
		"nothing is accepted":         {nil, cli.ExitError(jobs.ExitHashMismatch)},
		"another backup is accepted":  {[]string{"--accept-hash-mismatch=" + strings.Repeat("0a", 32)}, cli.ExitError(jobs.ExitHashMismatch)},
		"it is accepted":              {[]string{"--accept-hash-mismatch=" + sum}, nil},
		"but not in a drill":          {[]string{"--trial"}, cli.ExitError(jobs.ExitUnfit)},
		"it is an older one":          {[]string{"--accept-hash-mismatch=" + sum, "--at-least=9"}, cli.ExitError(jobs.ExitUnfit)},
		"it is no longer what it was": {[]string{"--accept-hash-mismatch=" + sum, "--size=1"}, cli.ExitError(jobs.ExitUnfit)},
		"nor what it was in a drill":  {[]string{"--trial", "--size=1"}, cli.ExitError(jobs.ExitOtherBytes)},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := newRestoreVolume()
			cmd.SetArgs(append([]string{
				"--volume=" + t.TempDir(), "--member=orders-0", "--peer-url=https://orders-0:2380", "--token=b",
				"--sha256=" + sum, fmt.Sprint("--size=", len(content)), "--hash=1", "--hash-revision=2",
			}, c.args...))
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v: %s", err, c.want, &out)
			}
		})
	}
}

// 206: a restore waits for room, then ends with a status of its own, and a drill does
// neither.
func TestARestoreWaitsForRoom(t *testing.T) {
	tries := 0
	lacks := fmt.Errorf("prepare: %w", restore.ErrNoRoom)
	try := func() error {
		if tries++; tries < 2 {
			return lacks
		}
		return nil
	}
	if err := awaitRoom(t.Context(), time.Hour, try); err != nil || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
	tries = 0
	if err := awaitRoom(t.Context(), 0, try); !errors.Is(err, restore.ErrNoRoom) || tries != 1 || restoreStatus(err, false) != jobs.ExitNoRoom {
		t.Errorf("%v after %d tries", err, tries)
	}
	fetched := false
	store := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched = true }))
	defer store.Close()
	t.Setenv(jobs.BackupURLEnv, store.URL)
	cmd := newRestoreVolume()
	cmd.SetArgs([]string{"--trial", "--volume=" + t.TempDir(), "--member=trial", "--peer-url=http://127.0.0.1:2380", "--token=b", "--snapshot-size=1000000000000000"})
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, restore.ErrNoRoom) || restoreStatus(err, true) != 0 || fetched {
		t.Errorf("a drill: %v, fetched %t", err, fetched)
	}
}

// databaseOfEtcd is a snapshot as etcd sends it, of one key.
func databaseOfEtcd(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b := backend.NewDefaultBackend(zap.NewNop(), path)
	kv := mvcc.NewStore(zap.NewNop(), b, &lease.FakeLessor{}, mvcc.StoreConfig{})
	kv.Put([]byte("key"), []byte("value"), lease.NoLease)
	if err := errors.Join(kv.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return append(text, sum[:]...)
}
