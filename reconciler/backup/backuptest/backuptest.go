// Package backuptest has what tests of backups need: real object stores on
// loopback, and snapshots of any size.
package backuptest

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"
)

// Snapshot makes a snapshot stream of about size bytes, as etcd sends it: a bolt
// database by its first page, and the checksum.
func Snapshot(size int) []byte {
	const page, magicOffset, magic = 512, 16, 0xED0CDAED
	body := make([]byte, size/page*page)
	for i := range body {
		body[i] = byte(i * 7 >> 3)
	}
	binary.LittleEndian.PutUint32(body[magicOffset:], magic)
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

// WantError wants an error of one line that has all of the texts.
func WantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q lacks %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error has several lines: %q", err)
	}
}
