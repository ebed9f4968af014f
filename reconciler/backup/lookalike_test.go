package backup

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// lookalikeTests are the tests of conformance that send what some look-alikes of S3 do not know, by what that is. What
// the other tests send is the same at each of them, and they run with -all.
func lookalikeTests() []string {
	return []string{
		"saves and reads back",   // checksums and trailers of objects and of parts
		"refuses a race",         // If-None-Match of an object and of the completion of parts
		"annotates",              // If-Match
		"stops with its context", // the abort of an upload
		"discards",               // the list of unfinished uploads, and the abort of each
	}
}

// 196, 197, 198: a store that refuses conditions, checksums or what it should know of
// uploads, or that ignores conditions, is a store like any other, and nothing is
// overwritten there either. How much memory a backup takes does not depend on them.
func TestLookalikesConform(t *testing.T) {
	certificate := backuptest.NewCertificate(t)
	s := backuptest.StartS3TLS(t, certificate)
	for name, fault := range lookalikes(t) {
		for should, test := range conformance() {
			if strings.Contains(should, "bound") || !*all && !slices.Contains(lookalikeTests(), should) {
				continue
			}
			t.Run(name+"/"+should, func(t *testing.T) {
				f := behind(t, s.Address, s.URL, certificate)
				f.store.Credentials = backuptest.S3Secret()
				f.proxy.Set(fault)
				f.lift = func() { f.proxy.Set(nil) }
				f.keepsParts = strings.HasPrefix(name, "uploads")
				test(t, f.place)
			})
		}
	}
}

// 196: Amazon itself is asked for what is there only where it refuses a condition, and
// where that fails too, the first error counts.
func TestRefusedConditionWithoutAnEndpoint(t *testing.T) {
	server := backuptest.StartS3(t)
	proxy := backuptest.StartFaulty(t, server.Address, backuptest.Certificate{})
	// The URL has no endpoint, so that the store passes for Amazon's own.
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://"+proxy.Address)
	const url = "s3://backups/x.db?region=us-east-1&use_path_style=true&request_checksum_calculation=when_required"
	s, _, err := Store{Drivers: drivers}.open(t.Context(), "test", url, saving)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var asked atomic.Int32
	refuse := func(code int, and backuptest.Fault) {
		proxy.Set(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("If-None-Match") != "" {
				return backuptest.Answer(code)(w, r)
			}
			if r.Method == http.MethodHead {
				asked.Add(1)
				return and(w, r)
			}
			return false
		})
	}
	pass := func(http.ResponseWriter, *http.Request) bool { return false }
	write := func() error { return s.write(t.Context(), "x.db", strings.NewReader("x"), condition{}) }

	refuse(http.StatusBadRequest, backuptest.Answer(http.StatusForbidden))
	if err := write(); s.answer(err).Status != http.StatusBadRequest || asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
	refuse(http.StatusForbidden, pass)
	if err := write(); s.answer(err).Status != http.StatusForbidden || asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
	refuse(http.StatusMethodNotAllowed, pass)
	if err := write(); err != nil || asked.Load() != 2 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
	backuptest.WantError(t, write(), "never overwrites")
}

// 197: Amazon's own store, and one that is said to know them, is sent checksums with each
// part, and what else the URL asks for.
func TestUploadsAsTheURLAsks(t *testing.T) {
	certificate := backuptest.NewCertificate(t)
	s := backuptest.StartS3TLS(t, certificate)
	f := behind(t, s.Address, s.URL, certificate)
	f.store.Credentials = backuptest.S3Secret()
	f.query += "&request_checksum_calculation=when_supported&ssetype=AES256"
	var trailers, sealed atomic.Int32
	f.proxy.Set(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Amz-Trailer") == "x-amz-checksum-crc32" {
			trailers.Add(1)
		}
		if r.Header.Get("X-Amz-Server-Side-Encryption") == "AES256" {
			sealed.Add(1)
		}
		return false
	})
	f.save(t, "parts.db", backuptest.Snapshot(2*partBytes+4096))
	if _, err := f.store.Verify(t.Context(), f.url("parts.db")); err != nil {
		t.Error(err)
	}
	// Three parts and the manifest; the upload and the manifest.
	if trailers.Load() != 4 || sealed.Load() != 2 {
		t.Errorf("%d with a checksum, %d to be encrypted", trailers.Load(), sealed.Load())
	}
}
