package backup

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// 607: a process that was paused in the midst of a Save goes on after its successor has
// discarded the backup. However the two interleave, no manifest without an object is left.
func TestNoManifestOutlivesADiscardedBackup(t *testing.T) {
	s := backuptest.StartS3(t)
	backuptest.SetCredentials(t, "tester", backuptest.Secret)
	p := behind(t, s.Address, s.URL, backuptest.Certificate{})
	direct := place{store: p.store, base: p.base, query: strings.ReplaceAll(p.query, p.proxy.Address, s.Address)}
	before := func(method, suffix string, then func()) {
		p.proxy.Set(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == method && strings.HasSuffix(r.URL.Path, suffix) {
				p.proxy.Set(nil)
				then()
			}
			return false
		})
	}

	before(http.MethodPut, "saved.db"+ManifestSuffix, func() {
		if err := direct.store.Discard(t.Context(), direct.url("saved.db")); err != nil {
			t.Error(err)
		}
	})
	_, err := p.store.Save(t.Context(), p.url("saved.db"), bytes.NewReader(backuptest.Snapshot(4096)), manifestForTest())
	backuptest.WantError(t, err, "another process has discarded it meanwhile")
	if keys := direct.keys(t); len(keys) > 0 {
		t.Errorf("Save leaves %q", keys)
	}

	bucket := direct.bucket(t)
	write := func(key string) {
		if err := bucket.WriteAll(t.Context(), key, []byte("half"), nil); err != nil {
			t.Error(err)
		}
	}
	write("discarded.db")
	before(http.MethodDelete, "discarded.db", func() { write("discarded.db" + ManifestSuffix) })
	if err := p.store.Discard(t.Context(), p.url("discarded.db")); err != nil {
		t.Error(err)
	}
	if keys := direct.keys(t); len(keys) > 0 {
		t.Errorf("Discard leaves %q", keys)
	}
}
