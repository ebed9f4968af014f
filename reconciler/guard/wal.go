package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// identity is whose write-ahead log it is.
type identity struct{ member, cluster uint64 }

// named is a clause that tells whose log it is, "" where there is none.
func (i *identity) named() string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf(", and a log of member %x of cluster %x", i.member, i.cluster)
}

// sameID compares an ID with one in hexadecimal, however that is written.
func sameID(id uint64, text string) bool {
	n, err := strconv.ParseUint(text, 16, 64)
	return err == nil && n == id
}

// errCorrupt says that a file was read, and is not what etcd writes.
var errCorrupt = errors.New("is damaged")

// The kinds of records in a log. Each file of it begins with a checksum and the metadata.
const (
	metadataRecord = 1
	entryRecord    = 2
	stateRecord    = 3
	crcRecord      = 4
	snapshotRecord = 5
)

// maxHeader is far more than the first two records of a file need, in bytes.
const maxHeader = 4096

// readLog reads which member wrote the log in a directory, nil when there is no log, and how
// far it goes. Each file of it begins with the first; the newest is the one that etcd cannot
// do without. etcd gives a file its name only when its beginning is on the disk, so
// a beginning that makes no sense is damage and no crash. An error that is not
// errCorrupt says that the file could not be read.
func readLog(dir string) (*identity, extent, error) {
	names, err := listDir(dir)
	if err != nil {
		return nil, extent{}, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".wal") })
	if len(names) == 0 {
		return nil, extent{}, nil
	}
	slices.Sort(names) // numbers of a fixed width
	newest := names[len(names)-1]
	id, err := readIdentity(filepath.Join(dir, newest))
	if err != nil {
		return nil, extent{}, err
	}
	end, err := readExtent(dir, names)
	return &id, end, err
}

// readIdentity reads whose a file of a log is.
func readIdentity(path string) (identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return identity{}, err
	}
	defer func() { _ = f.Close() }()
	header, err := io.ReadAll(io.LimitReader(f, maxHeader))
	if err != nil {
		return identity{}, err
	}
	id, err := parseHeader(header)
	if err != nil {
		return id, fmt.Errorf("the write-ahead log %s %w: %w", filepath.Base(path), errCorrupt, err)
	}
	return id, nil
}

// parseHeader reads the first two records of a log file: the checksum that the
// file continues from, and the metadata.
func parseHeader(header []byte) (identity, error) {
	first, rest, err := nextRecord(header)
	if err != nil {
		return identity{}, err
	}
	if first.kind != crcRecord {
		return identity{}, fmt.Errorf("it begins with a record of kind %d", first.kind)
	}
	second, _, err := nextRecord(rest)
	if err != nil {
		return identity{}, err
	}
	if second.kind != metadataRecord {
		return identity{}, fmt.Errorf("its second record is of kind %d", second.kind)
	}
	if sum := crc32.Update(first.crc, crc32.MakeTable(crc32.Castagnoli), second.data); sum != second.crc {
		return identity{}, fmt.Errorf("the checksum of its metadata is %x and should be %x", sum, second.crc)
	}
	numbers, _, err := parseFields(second.data)
	if err != nil {
		return identity{}, err
	}
	if numbers[1] == 0 || numbers[2] == 0 {
		return identity{}, errors.New("its metadata names no member or no cluster")
	}
	return identity{member: numbers[1], cluster: numbers[2]}, nil
}

// logRecord is one record of a log.
type logRecord struct {
	kind uint64
	crc  uint32
	data []byte
}

// frame is the length of a record and of what fills it up, which the eight bytes before it tell:
// the lower 56 bits are the first, and the highest bit says that the three lowest of the
// highest byte count the bytes of padding.
func frame(text []byte) (size, padding uint64) {
	length := binary.LittleEndian.Uint64(text)
	if length>>63 == 1 {
		padding = length >> 56 & 7
	}
	return length & (1<<56 - 1), padding
}

// nextRecord splits the first record off.
func nextRecord(text []byte) (record logRecord, rest []byte, err error) {
	if len(text) < 8 {
		return record, nil, errors.New("it ends within its header")
	}
	size, padding := frame(text)
	text = text[8:]
	if size+padding > uint64(len(text)) {
		return record, nil, fmt.Errorf("its header has a record of %d bytes", size)
	}
	numbers, data, err := parseFields(text[:size])
	return logRecord{kind: numbers[1], crc: uint32(numbers[2]), data: data}, text[size+padding:], err
}

// parseFields reads a protobuf message whose fields 1 and 2 are numbers and whose
// field 3 is bytes, which both of etcd's messages here are. A runtime for
// protobuf would be most of the guard's program.
func parseFields(text []byte) (numbers [3]uint64, data []byte, err error) {
	for len(text) > 0 {
		tag, n := binary.Uvarint(text)
		if n <= 0 {
			return numbers, nil, errors.New("its header is no protobuf")
		}
		value, m := binary.Uvarint(text[n:])
		text = text[n:]
		if m <= 0 {
			return numbers, nil, errors.New("its header is no protobuf")
		}
		text = text[m:]
		switch {
		case tag == 1<<3 || tag == 2<<3:
			numbers[tag>>3] = value
		case tag == 3<<3|2 && value <= uint64(len(text)):
			data, text = text[:value], text[value:]
		default:
			return numbers, nil, fmt.Errorf("its header has an unknown field %d", tag>>3)
		}
	}
	return numbers, data, nil
}
