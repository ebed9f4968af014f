package sources

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
)

// packOf writes a pack byte by byte, so that its headers can lie.
func packOf(count uint32, entries ...[]byte) []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), count)
	for _, entry := range entries {
		pack = append(pack, entry...)
	}
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

const (
	blobType     = 3
	refDeltaType = 7
)

// entryOf is one object with the size it claims and, of a delta, its base.
func entryOf(kind byte, claims uint64, base, content []byte) []byte {
	first := kind<<4 | byte(claims&0x0f)
	entry := []byte{first}
	if claims >>= 4; claims > 0 {
		entry[0] |= 0x80
		entry = binary.AppendUvarint(entry, claims)
	}
	var body bytes.Buffer
	w := zlib.NewWriter(&body)
	_, _ = w.Write(content)
	_ = w.Close()
	return append(append(entry, base...), body.Bytes()...)
}

func deltaOf(from, to uint64) []byte {
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, from), to)
	return entryOf(refDeltaType, uint64(len(delta)), make([]byte, 20), delta)
}

func TestCheckPackAddsUpWhatObjectsWillBecome(t *testing.T) {
	limits := Limits{UnpackedBytes: 100, Objects: 3}.withDefaults()
	blob := entryOf(blobType, 40, nil, make([]byte, 40))
	for name, tc := range map[string]struct {
		pack []byte
		kind error
	}{
		"as much as may be":           {packOf(2, blob, blob), nil},
		"too much together":           {packOf(3, blob, blob, blob), ErrTooLarge},
		"one object too large":        {packOf(1, entryOf(blobType, 1<<30, nil, nil)), ErrTooLarge},
		"a small delta that stays":    {packOf(2, blob, deltaOf(40, 50)), nil},
		"a small delta that explodes": {packOf(2, blob, deltaOf(40, 1<<30)), ErrTooLarge},
		"a delta beyond all sizes":    {packOf(2, blob, deltaOf(40, 1<<63)), ErrUnreachable},
		"a delta without sizes":       {packOf(1, entryOf(refDeltaType, 0, make([]byte, 20), nil)), ErrUnreachable},
		"more objects than allowed":   {packOf(1 << 31), ErrTooLarge},
		"fewer objects than claimed":  {packOf(3, blob), ErrUnreachable},
		"more content than claimed":   {packOf(2, entryOf(blobType, 1, nil, make([]byte, 1<<20)), blob), ErrUnreachable},
		"no pack":                     {[]byte("<html>"), ErrUnreachable},
		"nothing":                     {nil, ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkPack(t.Context(), tc.pack, limits)
			if !errors.Is(err, tc.kind) {
				t.Errorf("got error %v, want %v", err, tc.kind)
			}
		})
	}
}

// A gigabyte of zeros in a megabyte is refused before it becomes one, and so is
// one that says it is small.
func TestBombIsRefusedInLittleMemory(t *testing.T) {
	var body bytes.Buffer
	w, err := zlib.NewWriterLevel(&body, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, mib)
	for range 1 << 10 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if body.Len() > 8*mib {
		t.Fatalf("the bomb has %d bytes", body.Len())
	}
	for name, claims := range map[string]uint64{"honest": 1 << 30, "lying": 100} {
		head := entryOf(blobType, claims, nil, nil)
		head = head[:len(head)-len(entryOf(blobType, 0, nil, nil))+1] // without the empty content
		pack := packOf(1, append(head, body.Bytes()...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := checkPack(t.Context(), pack, Limits{}.withDefaults())
		if err == nil {
			_, err = unpack(t.Context(), pack)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 16*mib {
			t.Errorf("%s: %v, %d bytes allocated", name, err, used)
		}
	}
}

func TestUnpackingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pack := packOf(1, entryOf(blobType, 5, nil, []byte("hello")))
	if err := checkPack(ctx, pack, Limits{}.withDefaults()); err == nil {
		t.Error("checkPack continued")
	}
	if _, err := unpack(ctx, pack); err == nil {
		t.Error("unpack continued")
	}
}

func FuzzCheckPack(f *testing.F) {
	f.Add(packOf(2, entryOf(blobType, 5, nil, []byte("hello")), deltaOf(5, 6)))
	f.Fuzz(func(t *testing.T, pack []byte) {
		if checkPack(t.Context(), pack, Limits{UnpackedBytes: mib, Objects: 100}.withDefaults()) == nil {
			_, _ = unpack(t.Context(), pack) // must not panic
		}
	})
}
