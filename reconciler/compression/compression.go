// Package compression makes streams smaller, in bounded memory and without a goroutine of
// its own.
package compression

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Zstd is the Compression of a stored object that is a file of zstd (RFC 8878).
const Zstd = "zstd"

const (
	// zstdWindow is how far back repetitions are found. Larger ones find hardly more in
	// a database of pages, and take several times their size in memory.
	zstdWindow = 1 << 20
	// zstdMaxWindow bounds the memory that reading takes, whoever compressed the file.
	zstdMaxWindow = 8 << 20
	// zstdSample is how much is looked at to see whether compression is worth it.
	zstdSample = 1 << 20
	// zstdChunk is how much is read at a time: a block of zstd.
	zstdChunk = 128 << 10
)

// compressor reads a stream compressed. It runs in the goroutine of its reader, which
// bounds its memory, and returns an error of the stream as it is.
type compressor struct {
	r    io.Reader
	zstd *zstd.Encoder
	// plain is what is being compressed, done what is not yet read of it.
	plain []byte
	done  bytes.Buffer
	end   error
}

// Compress reads r compressed, if that is worth it: where its beginning does not shrink by
// a tenth, most of it is encrypted or compressed already, and it is read as it is.
func Compress(r io.Reader) (_ io.Reader, shrinks bool, err error) {
	head := make([]byte, zstdSample)
	n, ended, err := Fill(r, head)
	if err != nil {
		return nil, false, err
	}
	plain := io.Reader(bytes.NewReader(head[:n]))
	if !ended {
		plain = io.MultiReader(plain, r)
	}
	c := &compressor{r: plain, plain: make([]byte, zstdChunk)}
	if c.zstd, err = newEncoder(&c.done); err != nil {
		return nil, false, err
	}
	// It writes to memory, which does not fail.
	_, _ = c.zstd.Write(head[:n])
	_ = c.zstd.Flush()
	if c.done.Len() > n/10*9 {
		return plain, false, nil
	}
	c.done.Reset()
	c.zstd.Reset(&c.done)
	return c, true, nil
}

// newEncoder compresses in the goroutine of its writer, with the memory of its window.
func newEncoder(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true))
}

func (c *compressor) Read(p []byte) (int, error) {
	for c.done.Len() == 0 {
		if c.end != nil {
			return 0, c.end
		}
		var n int
		n, c.end = c.r.Read(c.plain)
		_, _ = c.zstd.Write(c.plain[:n])
		if errors.Is(c.end, io.EOF) {
			_ = c.zstd.Close()
		}
	}
	return c.done.Read(p)
}

// Decompress reads what an object with that Compression holds, with bounded memory; ""
// is an object that is not compressed. What is read is not checked.
func Decompress(stored io.Reader, compression string) (io.Reader, error) {
	switch compression {
	case "":
		return stored, nil
	case Zstd:
		return zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdMaxWindow))
	}
	return nil, fmt.Errorf("it is compressed by %q, which this quorate does not know", compression)
}

// Fill reads until the buffer is full or the stream has ended.
func Fill(r io.Reader, buffer []byte) (n int, ended bool, err error) {
	for n < len(buffer) {
		m, err := r.Read(buffer[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}
