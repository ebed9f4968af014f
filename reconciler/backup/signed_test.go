package backup

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/manifest"
)

// A manifest is signed when it is written or, where somebody else has written it, later; what
// a drill finds, and a copy to another place, leave the signature as it is.
func testSigns(t *testing.T, p place) {
	_, key := backuptest.NewKeyFile(t)
	p.store.Key = key
	saved := p.save(t, "1.db", backuptest.Snapshot(4096))
	if saved.Signature == nil || saved.Signature.Key != key.Fingerprint() {
		t.Fatalf("%+v", saved)
	}
	keyless := p.store
	keyless.Key = nil
	if err := keyless.Annotate(t.Context(), p.url("1.db"), func(m *Manifest) { m.Drill.Result, m.Signature = DrillPassed, nil }); err != nil {
		t.Fatal(err)
	}
	want := saved
	want.Drill.Result = DrillPassed
	if m, err := keyless.Verify(t.Context(), p.url("1.db")); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("with a drill: %+v, %v, want %+v", m, err, want)
	}
	for _, suffix := range []string{"", ManifestSuffix} {
		data, err := p.bucket(t).ReadAll(t.Context(), "1.db"+suffix)
		if err == nil {
			err = p.bucket(t).WriteAll(t.Context(), "copy.db"+suffix, data, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := keyless.List(t.Context(), p.url(""))
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, m := range list {
		if m.Forged || m.Signature == nil || m.Signature.Key != key.Fingerprint() {
			t.Errorf("listed: %+v", m)
		}
	}
	p.store = keyless
	testSignsWritten(t, p, saved)
}

// testSignsWritten signs what another process has written, and nothing else.
func testSignsWritten(t *testing.T, p place, other Manifest) {
	_, key := backuptest.NewKeyFile(t)
	text, err := p.save(t, "2.db", backuptest.Snapshot(8192)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := manifest.Digest(text)
	if err != nil {
		t.Fatal(err)
	}
	p.store.Key = key
	backuptest.WantError(t, p.store.SignManifest(t.Context(), p.url("2.db"), "0a"), "sign backup manifest", "2.db", "not the one that was written", "who else writes to the store")
	if m, err := p.store.ReadManifest(t.Context(), p.url("2.db")); err != nil || m.Signature != nil {
		t.Errorf("%+v, %v", m, err)
	}
	for range 2 {
		if err := p.store.SignManifest(t.Context(), p.url("2.db"), digest); err != nil {
			t.Fatal(err)
		}
		if m, err := p.store.Verify(t.Context(), p.url("2.db")); err != nil || m.Forged || m.Signature == nil || m.Signature.Key != key.Fingerprint() {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if err := p.store.SignManifest(t.Context(), p.url("1.db"), digest); err != nil {
		t.Error(err)
	}
	if m, err := p.store.ReadManifest(t.Context(), p.url("1.db")); err != nil || !reflect.DeepEqual(m.Signature, other.Signature) {
		t.Errorf("what is signed was signed again: %+v, %v", m, err)
	}
	if err := p.store.SignManifest(t.Context(), p.url("3.db"), digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("absent: %v", err)
	}
}

// testAdoptSigns signs what is adopted, where there is a key.
func testAdoptSigns(t *testing.T, p place) {
	_, key := backuptest.NewKeyFile(t)
	p.store.Key = key
	if err := p.bucket(t).WriteAll(t.Context(), "foreign.db", backuptest.Snapshot(4096), nil); err != nil {
		t.Fatal(err)
	}
	m, err := p.store.Adopt(t.Context(), p.url("foreign.db"), &bytes.Buffer{}, func(m *Manifest) error {
		m.Namespace, m.Name = "shop", "orders"
		return nil
	})
	if err != nil || m.Signature == nil {
		t.Fatalf("%+v, %v", m, err)
	}
	if got, err := p.store.Verify(t.Context(), p.url("foreign.db")); err != nil || !reflect.DeepEqual(got, m) || got.Forged {
		t.Errorf("%+v, %v, want %+v", got, err, m)
	}
}
