package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// What etcd sends as a snapshot:
//
//	bolt database file | sha256 of it, 32 bytes
//
// The file is a multiple of 512 bytes. Its first page is a meta page, with
// bolt's magic number after a page header of 16 bytes, little-endian on every
// platform that etcd supports.
const (
	snapshotUnit    = 512
	boltMagicOffset = 16
	boltMagic       = 0xED0CDAED
)

// snapshotError says that the snapshot stream itself is bad. err is why reading
// it failed, nil when it was read to its end and found damaged.
type snapshotError struct {
	text string
	err  error
}

func (e *snapshotError) Error() string {
	if e.err == nil {
		return e.text
	}
	return e.text + ": " + e.err.Error()
}

func (e *snapshotError) Unwrap() error { return e.err }

// snapshotSum is what was measured of a whole snapshot stream.
type snapshotSum struct {
	size   int64
	sha256 string
}

// snapshotReader passes a snapshot stream on and checks it on the way. In place
// of the end of a bad stream it returns a *snapshotError, so that who reads it
// never takes the stream for whole.
type snapshotReader struct {
	r     io.Reader
	check snapshotCheck
	// sum is set when a good stream has ended, err when a bad one has.
	sum snapshotSum
	err *snapshotError
}

func newSnapshotReader(r io.Reader) *snapshotReader {
	return &snapshotReader{r: r, check: snapshotCheck{hash: sha256.New()}}
}

func (s *snapshotReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.check.add(p[:n])
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		s.sum, s.err = s.check.finish()
	default:
		s.err = &snapshotError{fmt.Sprintf("the snapshot stream broke after %d bytes", s.check.size), err}
	}
	if s.err != nil {
		return n, s.err
	}
	return n, io.EOF
}

// snapshotCheck hashes a stream but for its last 32 bytes, which it holds back:
// only the end of the stream tells which bytes are the checksum.
type snapshotCheck struct {
	hash hash.Hash
	head []byte
	tail []byte
	size int64
}

// add takes the next bytes of the stream. It keeps no reference to p.
func (c *snapshotCheck) add(p []byte) {
	c.size += int64(len(p))
	if want := boltMagicOffset + 4 - len(c.head); want > 0 {
		c.head = append(c.head, p[:min(want, len(p))]...)
	}
	if len(p) >= sha256.Size {
		c.hash.Write(c.tail)
		c.hash.Write(p[:len(p)-sha256.Size])
		c.tail = append(c.tail[:0], p[len(p)-sha256.Size:]...)
		return
	}
	c.tail = append(c.tail, p...)
	if extra := len(c.tail) - sha256.Size; extra > 0 {
		c.hash.Write(c.tail[:extra])
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
}

// finish judges the whole stream. It may be called once.
func (c *snapshotCheck) finish() (snapshotSum, *snapshotError) {
	body := c.hash.Sum(nil)
	c.hash.Write(c.tail)
	sum := snapshotSum{c.size, hex.EncodeToString(c.hash.Sum(nil))}
	switch {
	case c.size == 0:
		return sum, &snapshotError{text: "the snapshot stream is empty"}
	case c.size%snapshotUnit != sha256.Size || c.size < snapshotUnit:
		return sum, &snapshotError{text: fmt.Sprintf("the snapshot stream is cut short: %d bytes are not whole pages and a checksum of %d bytes", c.size, sha256.Size)}
	case !bytes.Equal(body, c.tail):
		return sum, &snapshotError{text: "the snapshot stream is damaged: its sha256 is not the one that etcd appended"}
	case !c.isBolt():
		return sum, &snapshotError{text: "the snapshot stream is not a bolt database: its first page is no meta page"}
	}
	return sum, nil
}

// isBolt reports whether the first page is a meta page of bolt's.
func (c *snapshotCheck) isBolt() bool {
	return len(c.head) == boltMagicOffset+4 && binary.LittleEndian.Uint32(c.head[boltMagicOffset:]) == boltMagic
}
