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
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/jobs"
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
		"another one":      {store.URL + "/1.db?token=s3cret", strings.Repeat("0", 64), 4000, "it has 4000 bytes and sha256 " + sum},
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
		"nothing is accepted":         {nil, exitError(jobs.ExitHashMismatch)},
		"another backup is accepted":  {[]string{"--accept-hash-mismatch=" + strings.Repeat("0a", 32)}, exitError(jobs.ExitHashMismatch)},
		"it is accepted":              {[]string{"--accept-hash-mismatch=" + sum}, nil},
		"but not in a drill":          {[]string{"--trial"}, exitError(jobs.ExitUnfit)},
		"it is an older one":          {[]string{"--accept-hash-mismatch=" + sum, "--at-least=9"}, exitError(jobs.ExitUnfit)},
		"it is no longer what it was": {[]string{"--accept-hash-mismatch=" + sum, "--size=1"}, exitError(jobs.ExitUnfit)},
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
