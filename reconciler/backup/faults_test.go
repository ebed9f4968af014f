package backup

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// faulty is a place behind a proxy that spoils requests.
type faulty struct {
	place
	proxy *backuptest.Faulty
}

// behind is a place in the store at the address, with a faulty proxy before it. The
// certificate is the zero value for a store without TLS.
func behind(t *testing.T, address string, url func(string) string, certificate backuptest.Certificate) faulty {
	proxy := backuptest.StartFaulty(t, address, certificate)
	p := placeAt(t, func(key string) string { return strings.ReplaceAll(url(key), address, proxy.Address) })
	p.store.CA = certificate.CA
	return faulty{p, proxy}
}

// TestFaults spoils every operation in every store that is reached over a network (104):
// each says in a sentence what is wrong, nothing is destroyed or left, an answer that
// did not come never passes for an empty store, and the next attempt works.
func TestFaults(t *testing.T) {
	certificate := backuptest.NewCertificate(t)
	for name, start := range map[string]func(*testing.T) faulty{
		"S3": func(t *testing.T) faulty {
			s := backuptest.StartS3TLS(t, certificate)
			p := behind(t, s.Address, s.URL, certificate)
			p.store.Credentials = backuptest.S3Secret()
			return p
		},
		"Google": func(t *testing.T) faulty {
			g := backuptest.StartGoogle(t, certificate)
			p := behind(t, g.Address, g.URL, certificate)
			p.store.Credentials = g.Secret
			return p
		},
		"Azure": func(t *testing.T) faulty {
			a := startAzure(t, certificate)
			p := behind(t, a.address, a.url, certificate)
			p.store.Credentials = a.secret
			return p
		},
	} {
		t.Run(name, func(t *testing.T) { testFaults(t, start(t)) })
	}
}

func testFaults(t *testing.T, p faulty) {
	p.save(t, "old.db", backuptest.Snapshot(4096))
	for name, tc := range map[string]struct {
		fault backuptest.Fault
		want  string
		// uploads says that only those fail.
		uploads bool
	}{
		"403":            {fault: backuptest.Answer(http.StatusForbidden), want: "permission denied"},
		"404":            {fault: backuptest.Answer(http.StatusNotFound), want: "the bucket backups does not exist"},
		"500":            {fault: backuptest.Answer(http.StatusInternalServerError), want: "the store failed"},
		"silent":         {fault: backuptest.Silence, want: "did not answer in time"},
		"403 on uploads": {fault: backuptest.Uploads(backuptest.Answer(http.StatusForbidden)), want: "permission denied", uploads: true},
		"503 on uploads": {fault: backuptest.Uploads(backuptest.Answer(http.StatusServiceUnavailable)), want: "the store ", uploads: true},
		"slow uploads":   {fault: backuptest.Uploads(backuptest.Silence), want: "did not answer in time", uploads: true},
		"dropped":        {fault: backuptest.Uploads(backuptest.Drop), want: "the store ", uploads: true},
	} {
		t.Run(name, func(t *testing.T) { p.endure(t, strings.ReplaceAll(name, " ", "-"), tc.fault, tc.want, tc.uploads) })
	}
	for _, key := range []string{"old.db", "next-403.db"} {
		if _, err := p.store.Verify(t.Context(), p.url(key)); err != nil {
			t.Errorf("a good backup: %v", err)
		}
	}
}

func (p faulty) endure(t *testing.T, name string, fault backuptest.Fault, want string, uploads bool) {
	before := len(p.keys(t))
	p.proxy.Set(fault)
	defer p.proxy.Set(nil)
	within := func(try func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return try(ctx)
	}
	tries := map[string]func(context.Context) error{"save": func(ctx context.Context) error {
		_, err := p.store.Save(ctx, p.url("bad-"+name+".db"), bytes.NewReader(backuptest.Snapshot(2*partBytes)), manifestForTest())
		return err
	}}
	if !uploads {
		tries["list"] = func(ctx context.Context) error { _, err := p.store.List(ctx, p.url("")); return err }
		tries["verify"] = func(ctx context.Context) error { _, err := p.store.Verify(ctx, p.url("old.db")); return err }
		tries["remove"] = func(ctx context.Context) error { return p.store.Remove(ctx, p.url("old.db")) }
		tries["annotate"] = func(ctx context.Context) error { return p.store.Annotate(ctx, p.url("old.db"), func(*Manifest) {}) }
	}
	var group sync.WaitGroup
	for op, try := range tries {
		group.Go(func() {
			err := within(try)
			wanted := want
			if errors.Is(err, context.DeadlineExceeded) {
				// The SDKs ask again for longer than the test waits.
				wanted = "did not answer in time"
			}
			backuptest.WantError(t, err, wanted, p.base)
			if errors.Is(err, ErrNotFound) || err != nil && strings.Contains(err.Error(), backuptest.Secret) {
				t.Errorf("%s: %v", op, err)
			}
		})
	}
	group.Wait()
	p.proxy.Set(nil)
	if keys := p.keys(t); len(keys) != before {
		t.Errorf("there is %q, and were %d", keys, before)
	}
	p.save(t, "next-"+name+".db", backuptest.Snapshot(4096))
}
