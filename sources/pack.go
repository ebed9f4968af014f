package sources

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// checkPack adds up what the objects of a pack say they will become, before any
// of them does: a gigabyte of zeros travels as one megabyte.
func checkPack(ctx context.Context, raw []byte, limits Limits) error {
	scanner := packfile.NewScanner(boundReader{bytes.NewReader(raw), ctx})
	_, count, err := scanner.Header()
	if err != nil {
		return damaged("what the server sent", err)
	}
	if int64(count) > int64(limits.Objects) {
		return tooMuch("the commit has %d objects and at most %d are read", count, limits.Objects)
	}
	left := limits.UnpackedBytes
	for range count {
		size, err := nextSize(scanner, left)
		if err != nil {
			return damaged("what the server sent", err)
		}
		left -= size
		if left < 0 {
			return tooMuch("the commit unpacks to more than %d bytes", limits.UnpackedBytes)
		}
	}
	return nil
}

// nextSize is the size of the next object of a pack. Of a delta it is the size
// of the delta and of what the delta makes, which only the delta's own first
// bytes tell. It inflates nothing that is larger than the bytes left.
func nextSize(scanner *packfile.Scanner, left int64) (int64, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, err
	}
	switch {
	case header.Length < 0:
		return 0, packfile.ErrLengthOverflow
	case header.Length > left || !header.Type.IsDelta():
		return header.Length, nil
	}
	var start prefix
	if _, _, err := scanner.NextObject(&start); err != nil {
		return 0, err
	}
	target, err := start.deltaTarget()
	if err != nil || target > left {
		return left + 1, err
	}
	return header.Length + target, nil
}

// prefix keeps the first bytes written to it and lets the others go.
type prefix struct {
	data [2 * binary.MaxVarintLen64]byte
	n    int
}

func (p *prefix) Write(data []byte) (int, error) {
	p.n += copy(p.data[p.n:], data)
	return len(data), nil
}

// deltaTarget reads the second of the two sizes a delta begins with.
func (p *prefix) deltaTarget() (int64, error) {
	_, n := binary.Uvarint(p.data[:p.n])
	if n <= 0 {
		return 0, errors.New("a delta without a size")
	}
	size, n := binary.Uvarint(p.data[n:p.n])
	if n <= 0 || int64(size) < 0 {
		return 0, errors.New("a delta without a size")
	}
	return int64(size), nil
}

func unpack(ctx context.Context, raw []byte) (*memory.Storage, error) {
	stored := memory.NewStorage()
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(boundReader{bytes.NewReader(raw), ctx}), stored)
	if err != nil {
		return nil, damaged("what the server sent", err)
	}
	if _, err := parser.Parse(); err != nil {
		return nil, damaged("what the server sent", err)
	}
	return stored, nil
}

// boundReader lets a context end work on bytes that are already here.
type boundReader struct {
	*bytes.Reader
	ctx context.Context
}

func (r boundReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
