package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/manifest"
)

// A person sees whose signature a manifest has, if any, and a script learns of one that
// does not match.
func TestSnapshotsShowSignatures(t *testing.T) {
	dir := t.TempDir()
	_, key := backuptest.NewKeyFile(t)
	url := func(name string) string { return "file://" + dir + "/" + name + "?root=" + dir }
	for i, name := range []string{"unsigned.db", "signed.db", "forged.db"} {
		store := backup.Store{Key: key}
		if name == "unsigned.db" {
			store.Key = nil
		}
		m := backup.Manifest{Namespace: "shop", Name: "orders", Revision: 41, Time: time.Date(2026, 11, 20, 12-i, 0, 0, 0, time.UTC)}
		if _, err := store.Save(t.Context(), url(name), bytes.NewReader(backuptest.Snapshot(4096)), m); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "forged.db"+backup.ManifestSuffix)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(text, []byte("41"), []byte("42"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{"unsigned.db": "unsigned", "signed.db": "signed by " + key.Fingerprint(), "forged.db": "signature does not match"}
	status, list, stderr := quorateSays(t, "snapshot", "list", url("any"))
	if status != 0 || !strings.Contains(list, "SIGNATURE") {
		t.Errorf("status %d\n%s%s", status, list, stderr)
	}
	_, asJSON, _ := quorateSays(t, "snapshot", "list", "-o=json", url("any"))
	var shown []struct {
		Object, SignatureState string
		Revision               int64
		Signature              *struct{ Key string }
	}
	if err := json.Unmarshal([]byte(asJSON), &shown); err != nil || len(shown) != 3 {
		t.Fatalf("%v: %s", err, asJSON)
	}
	for i, name := range []string{"unsigned.db", "signed.db", "forged.db"} {
		if line := strings.Split(list, "\n")[1+i]; !strings.Contains(line, states[name]) || !strings.HasSuffix(line, "/"+name) {
			t.Errorf("%s: %s", name, line)
		}
		if s := shown[i]; s.SignatureState != states[name] || (s.Signature == nil) != (name == "unsigned.db") || s.Revision == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		status, stdout, stderr := quorateSays(t, "snapshot", "verify", url(name))
		if !strings.Contains(stdout, "\n  "+states[name]+"\n") || (status == 0) != (name != "forged.db") || status != 0 && !strings.Contains(stderr, "/forged.db: the manifest does not match its signature: it was changed after it was signed; look at who else writes to the store") {
			t.Errorf("%s: status %d\n%s%s", name, status, stdout, stderr)
		}
		_, asJSON, _ := quorateSays(t, "snapshot", "verify", "-o=json", url(name))
		var said struct {
			Manifest struct{ SignatureState string }
		}
		if err := json.Unmarshal([]byte(asJSON), &said); err != nil || said.Manifest.SignatureState != states[name] {
			t.Errorf("%s: %v: %s", name, err, asJSON)
		}
	}
}

// What is adopted is signed where a key is given; else the sentence says what a restore needs.
func TestAdoptSigns(t *testing.T) {
	keyFile, key := backuptest.NewKeyFile(t)
	secret, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	database := bareDatabase(t, "key", "meta")
	adopt := func(args ...string) (m backup.Manifest, out string) {
		url := inFile(t, "orders.db", database)
		status, stdout, stderr := quorateSays(t, append([]string{"snapshot", "adopt", "--namespace=shop", "--name=orders", "--etcd-version=3.6.16", url}, args...)...)
		if status != 0 {
			t.Fatalf("status %d\n%s%s", status, stdout, stderr)
		}
		m, err := backup.Store{}.Verify(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		return m, stdout
	}
	m, out := adopt()
	if m.Signature != nil || !strings.Contains(out, "\n  unsigned\n") || !strings.Contains(out, `spec.source.acceptUnsigned: "`+m.SHA256+`"`) {
		t.Errorf("%+v\n%s", m, out)
	}
	m, out = adopt("--signing-key-file", keyFile)
	if m.Forged || m.Signature == nil || !strings.Contains(out, "signed by "+key.Fingerprint()) || strings.Contains(out, "acceptUnsigned") {
		t.Errorf("%+v\n%s", m, out)
	}
	_, out = adopt("--signing-key-file", keyFile, "-o=json")
	if !strings.Contains(out, `"signatureState": "signed by `+key.Fingerprint()) || strings.Contains(out, strings.Split(string(secret), "\n")[1]) {
		t.Errorf("%s", out)
	}
	url := inFile(t, "orders.db", database)
	for file, want := range map[string]string{"/nowhere": "read --signing-key-file: open /nowhere", strings.TrimPrefix(strings.Split(url, "?")[0], "file://"): "it has no key in PEM"} {
		status, _, stderr := quorateSays(t, "snapshot", "adopt", "--namespace=shop", "--name=orders", "--etcd-version=3.6.16", url, "--signing-key-file", file)
		if _, err := (backup.Store{}).ReadManifest(t.Context(), url); status != 1 || !strings.Contains(stderr, want) || err == nil {
			t.Errorf("status %d, %s", status, stderr)
		}
	}
}

// The process of a Job says which manifest it has written, by which the daemon signs that.
func TestAJobTellsWhatItHasWritten(t *testing.T) {
	dir := t.TempDir()
	url := "file://" + dir + "/1.db?root=" + dir
	m, err := backup.Store{}.Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(4096)), backup.Manifest{Name: "orders", Time: time.Date(2026, 11, 20, 12, 0, 0, 7, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	result := filepath.Join(dir, "result")
	if err := tellWritten("", m); err != nil {
		t.Error(err)
	}
	if err := tellWritten(result, m); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "1.db"+backup.ManifestSuffix))
	if err != nil {
		t.Fatal(err)
	}
	want, err := manifest.Digest(stored)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(result); err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if err := tellWritten(dir, m); err == nil || !strings.Contains(err.Error(), "write --result: ") {
		t.Errorf("%v", err)
	}
}
