package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// stored is a directory with three backups, of which the second newest is encrypted
// and the oldest was spoiled on its disk.
func stored(t *testing.T) (url func(string) string, key *age.X25519Identity) {
	t.Helper()
	dir := t.TempDir()
	url = func(name string) string { return "file://" + dir + "/orders/" + name + "?root=" + dir }
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	save := func(name string, recipients []string, hours int, revision int64) {
		m := backup.Manifest{
			Namespace: "shop", Name: "orders", ClusterID: "c1", EtcdVersion: "3.6.16", Revision: revision,
			Reason: "schedule nightly", Time: noon.Add(time.Duration(hours) * time.Hour),
		}
		if _, err := (backup.Store{Recipients: recipients}).Save(t.Context(), url(name), bytes.NewReader(backuptest.Snapshot(64<<10)), m); err != nil {
			t.Fatal(err)
		}
	}
	save("spoiled.db", nil, -1, 99)
	save("encrypted.db", []string{key.Recipient().String()}, 0, 99)
	save("good.db", nil, 0, 100)
	path := filepath.Join(dir, "orders", "spoiled.db")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[5000] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	err = backup.Store{}.Annotate(t.Context(), url("good.db"), func(m *backup.Manifest) { m.Drill = backup.Drill{Result: backup.DrillPassed} })
	if err != nil {
		t.Fatal(err)
	}
	return url, key
}

// quorateSays runs the command line.
func quorateSays(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = execute(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// 102, 106, 111: a person sees what there is, newest first, and whether it is what
// etcd sent.
func TestSnapshotVerify(t *testing.T) {
	url, key := stored(t)
	m := backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1", EtcdVersion: "3.6.16", Revision: 98}
	_, err := backup.Store{}.Save(t.Context(), url("drilled.db"), bytes.NewReader(backuptest.Snapshot(64<<10)), m)
	if err := errors.Join(err, backup.Store{}.Annotate(t.Context(), url("drilled.db"), func(m *backup.Manifest) {
		m.Drill = backup.Drill{Result: "etcd does not start on it"}
	})); err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	keyFile := func(k *age.X25519Identity) string {
		path := filepath.Join(t.TempDir(), "key.txt")
		if err := os.WriteFile(path, []byte("# created by age-keygen\n"+k.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"good":               {[]string{url("good.db")}, 0, "the checksum that etcd appended are right"},
		"encrypted":          {[]string{url("encrypted.db")}, 0, "what is in it was not looked at; give --identity"},
		"decrypted":          {[]string{url("encrypted.db"), "--identity", keyFile(key)}, 0, "it was decrypted; size, sha256 and"},
		"with another's key": {[]string{url("encrypted.db"), "--identity", keyFile(other)}, 1, "not for the private key that was given"},
		"spoiled":            {[]string{url("spoiled.db")}, 1, "this backup cannot be restored"},
		"absent":             {[]string{url("absent.db")}, 1, "no backup is stored there"},
		"no key file":        {[]string{url("good.db"), "--identity", "/nowhere"}, 1, "read --identity: "},
		"no URL":             {nil, 1, "takes one object URL, and 0 were given"},
		"a secret in it":     {[]string{"s3://user:hunter2@b/k.db"}, 1, "it contains credentials"},
		"no credentials":     {[]string{url("good.db"), "--credentials", "/nowhere"}, 1, "read --credentials: "},
		"bad by a drill":     {[]string{url("drilled.db")}, 1, "a restore drill has found it bad: etcd does not start on it; rely on another backup"},
	} {
		status, stdout, stderr := quorateSays(t, append([]string{"snapshot", "verify"}, c.args...)...)
		if status != c.status || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stdout+stderr, "AGE-SECRET") || strings.Contains(stderr, "hunter2") || strings.Count(stderr, "\n") > 1 {
			t.Errorf("%s: status %d\n%s%s", name, status, stdout, stderr)
		}
	}
	_, stdout, _ := quorateSays(t, "snapshot", "verify", "-o", "json", url("encrypted.db"))
	var said struct {
		SnapshotChecked bool
		Manifest        backup.Manifest
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || said.SnapshotChecked || said.Manifest.Revision != 99 {
		t.Errorf("%v: %s", err, stdout)
	}
}

func TestSnapshotList(t *testing.T) {
	url, _ := stored(t)
	status, stdout, stderr := quorateSays(t, "snapshot", "list", url(""))
	lines := regexp.MustCompile(`(?m)^(\S+) +shop/orders +3\.6\.16 +(\d+) +6\d(?:\.\d+)?Ki +(read back|restored) +unsigned +schedule nightly +\S+/(\w+)\.db$`).FindAllStringSubmatch(stdout, -1)
	var order []string
	for _, l := range lines {
		order = append(order, l[4]+" "+l[2]+" "+l[3])
	}
	if got := strings.Join(order, ", "); status != 0 || got != "good 100 restored, encrypted 99 read back, spoiled 99 read back" {
		t.Errorf("status %d, %s\n%s%s", status, got, stdout, stderr)
	}
	status, stdout, _ = quorateSays(t, "snapshot", "list", "-o", "json", url(""))
	var list []backup.Manifest
	if err := json.Unmarshal([]byte(stdout), &list); status != 0 || err != nil || len(list) != 3 || list[0].Revision != 100 {
		t.Errorf("status %d, %v: %s", status, err, stdout)
	}
	// One that cannot be read is told, and hides no other.
	broken := strings.TrimPrefix(strings.Split(url("good.db"), "?")[0], "file://") + backup.ManifestSuffix
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := quorateSays(t, "snapshot", "list", url("")); status != 1 || strings.Count(stdout, ".db") != 2 || !strings.Contains(stderr, "is not valid JSON") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	status, stdout, _ = quorateSays(t, "snapshot", "list", "file://"+t.TempDir()+"/none/")
	if status != 0 || stdout != "there are no backups\n" {
		t.Errorf("status %d, %s", status, stdout)
	}
}

// Who may write to the store writes no lines of a table, and moves no cursor, by what a manifest says.
func TestWhatAManifestSaysIsOneLine(t *testing.T) {
	dir := t.TempDir()
	url := func(name string) string { return "file://" + dir + "/" + name + "?root=" + dir }
	const text = "x\ty\n2026-11-20T12:00:00Z\x1b[2J"
	m := backup.Manifest{Namespace: text, Name: text, ClusterID: text, EtcdVersion: text, Reason: text, Revision: 98}
	_, err := backup.Store{}.Save(t.Context(), url("odd.db"), bytes.NewReader(backuptest.Snapshot(64<<10)), m)
	if err := errors.Join(err, backup.Store{}.Annotate(t.Context(), url("odd.db"), func(m *backup.Manifest) { m.Drill = backup.Drill{Result: text} })); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		verb, url           string
		status, lines, errs int
	}{{"list", url(""), 0, 2, 0}, {"verify", url("odd.db"), 1, 4, 1}} {
		status, out, errs := quorateSays(t, "snapshot", c.verb, c.url)
		if status != c.status || strings.ContainsAny(out+errs, "\x1b\t") || strings.Count(out, "\n") != c.lines || strings.Count(errs, "\n") != c.errs || !strings.Contains(out, "x y 2026") {
			t.Errorf("%s ends with %d:\n%q\n%q", c.verb, status, out, errs)
		}
	}
}

// A store's credentials are read as a pod mounts a Secret.
func TestStoreFlags(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"..data", "..2026"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"access-key-id": "a", "secret-access-key": "b", ".hidden": "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st, err := (&storeFlags{credentials: dir, ca: filepath.Join(dir, "access-key-id")}).store()
	if err != nil || len(st.Credentials) != 2 || string(st.Credentials["secret-access-key"]) != "b" || string(st.CA) != "a" {
		t.Errorf("%d keys, %v", len(st.Credentials), err)
	}
}
