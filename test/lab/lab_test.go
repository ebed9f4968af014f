package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/test/freeport"
	"github.com/quorate/quorate/test/needs"
)

func TestGitServer(t *testing.T) {
	s, err := StartGitServer(t.Context(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	first, err := s.Commit(t.Context(), "one", map[string]string{"clusters/a.yaml": "version: 1\n", "b": "b"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Replace(t.Context(), "two", "clusters/a.yaml", "1", "2")
	if err != nil || first == second {
		t.Fatalf("%s, %s: %v", first, second, err)
	}
	if _, err := s.Replace(t.Context(), "three", "clusters/a.yaml", "9", "2"); err == nil {
		t.Error("replaced what is not there")
	}
	if head := remoteHead(t, s); !strings.HasPrefix(head, second) {
		t.Errorf("the server shows %q, want %s", head, second)
	}
	s.Stop()
	if out, err := exec.Command("git", "ls-remote", s.URL()).CombinedOutput(); err == nil {
		t.Errorf("a stopped server answered %s", out)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteBranch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if head := remoteHead(t, s); head != "" {
		t.Errorf("the branch is still there: %s", head)
	}
	if _, err := s.Commit(t.Context(), "back", nil); err != nil {
		t.Error(err)
	}
}

func remoteHead(t *testing.T, s *GitServer) string {
	t.Helper()
	head, err := output(exec.Command("git", "ls-remote", s.URL(), "refs/heads/"+Branch))
	if err != nil {
		t.Fatal(err)
	}
	return head
}

func TestLogWaitFor(t *testing.T) {
	l := NewLog(nil)
	go func() {
		_, _ = l.ReadFrom(strings.NewReader(`{"msg":"step started","cluster":"a/b","action":"restart b-2 3.5.21 → 3.5.35","reason":"r"}
plain text
{"msg":"on hold","kind":"Waiting","reason":"b-2 starts","remedy":"wait"}
`))
	}()
	line, next, err := l.WaitFor(t.Context(), 0, 5*time.Second, Step("restart", "b-2"))
	if err != nil || line.Reason != "r" {
		t.Fatalf("%+v, %v", line, err)
	}
	if _, _, err := l.WaitFor(t.Context(), next, 5*time.Second, Hold("b-2 starts")); err != nil {
		t.Fatal(err)
	}
	_, _, err = l.WaitFor(t.Context(), next, 10*time.Millisecond, Step())
	if err == nil || !strings.Contains(err.Error(), "Waiting hold: b-2 starts; wait") {
		t.Errorf("the error must quote the last hold: %v", err)
	}
}

func TestProgressWaitSaysWhatWasSeenLast(t *testing.T) {
	var out bytes.Buffer
	err := NewProgress(&out).Wait(t.Context(), "pods", 10*time.Millisecond, func(context.Context) (bool, string, error) {
		return false, "2 of 3 ready", nil
	})
	if err == nil || !strings.Contains(err.Error(), "2 of 3 ready") {
		t.Error(err)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("colours in what is no terminal: %q", out.String())
	}
}

func TestS3Server(t *testing.T) {
	s, err := StartS3Server(needs.Server(t, "versitygw"), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for name, value := range s.Credentials() {
		t.Setenv(name, value)
	}
	save := func(key string) error {
		_, err := backup.Store{Drivers: clouds.Drivers()}.Save(t.Context(), s.ObjectURL(key), bytes.NewReader(snapshot()), backup.Manifest{})
		return err
	}
	if err := s.SetWritable(false); err != nil {
		t.Fatal(err)
	}
	err = save("shop/a.db")
	if err == nil {
		t.Error("an unwritable bucket took a backup")
	}
	t.Log(err)
	if err := s.SetWritable(true); err != nil {
		t.Fatal(err)
	}
	if err := save("shop/b.db"); err != nil {
		t.Error(err)
	}
	s.Stop()
	if err := save("shop/c.db"); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a stopped server: %v", err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := (backup.Store{Drivers: clouds.Drivers()}).ReadManifest(t.Context(), s.ObjectURL("shop/d.db")); !errors.Is(err, backup.ErrNotFound) {
		t.Error(err)
	}
	if backups, err := s.Backups(); err != nil || !slices.Equal(backups, []string{"shop/b.db"}) {
		t.Errorf("%v, %v", backups, err)
	}
}

// snapshot is the least that passes for what etcd sends: a page with bolt's
// magic number, and its checksum.
func snapshot() []byte {
	page := make([]byte, 512)
	binary.LittleEndian.PutUint32(page[16:], 0xED0CDAED)
	sum := sha256.Sum256(page)
	return append(page, sum[:]...)
}

// patience is a client's deadline that a slow machine does not come near, where an etcd
// that is well has to answer everything.
const patience = time.Minute

func TestWriterFindsLostWrites(t *testing.T) {
	client := startEtcd(t)
	w := StartWriter(client, WriterOptions{Pace: time.Millisecond, Timeout: patience})
	t.Cleanup(w.Close)
	err := Poll(t.Context(), 20*time.Second, func(context.Context) (bool, error) {
		return w.Report().Writes.OK > 50 && w.Report().Reads.OK > 20, nil
	})
	if err != nil {
		t.Fatalf("%v: %s", err, w.Report().Writes)
	}
	r := w.Stop()
	if n, err := w.Verify(t.Context()); err != nil || n != r.Writes.OK || r.Writes.Failed+r.Reads.Failed != 0 || !r.Ended {
		t.Errorf("%d of %s: %v", n, r.Writes, err)
	}
	if _, err := client.Delete(t.Context(), w.key(7)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), w.key(8), w.value(8)); err != nil {
		t.Fatal(err)
	}
	_, err = w.Verify(t.Context())
	if err == nil || !strings.Contains(err.Error(), "write 7, ") || !strings.Contains(err.Error(), "write 8, ") {
		t.Errorf("a lost and a repeated write: %v", err)
	}
}

// A write that was answered counts, however close the end of the load is.
func TestWriterCountsWhatWasAnswered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &Writer{options: WriterOptions{Pace: time.Millisecond, Timeout: time.Second, MaxWrites: 9}}
	w.run(ctx, &w.writes, func(context.Context) error {
		cancel()
		return nil
	})
	w.run(ctx, &w.reads, func(ctx context.Context) error { return ctx.Err() })
	if r := w.Report(); r.Writes.OK != 1 || r.Reads.OK+r.Reads.Failed != 0 {
		t.Errorf("an answered write: %s; a read that was cut off: %s", r.Writes, r.Reads)
	}
}

// startEtcd runs one member on loopback, of the sandbox's binaries.
func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	binary := needs.Server(t, "etcd-v3.6.16")
	address, err := freeport.At("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--data-dir="+t.TempDir(), "--listen-client-urls=http://"+address,
		"--advertise-client-urls=http://"+address, "--listen-peer-urls=http://127.0.0.1:0")
	log, err := os.Create(filepath.Join(t.TempDir(), "etcd.log"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := startProcess(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	err = Poll(t.Context(), 20*time.Second, func(context.Context) (bool, error) {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil, nil
	})
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("etcd: %v\n%s", err, text)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
