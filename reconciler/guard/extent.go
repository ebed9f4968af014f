package guard

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// extent is how far a log goes: the highest term that its member has voted or followed in, and
// the index of the last entry. What a member has applied never leaves its log again, so that
// both only rise.
type extent struct{ term, index uint64 }

// reaches reports whether a log that goes so far is no older than a note about it.
func (e extent) reaches(f Floor) bool { return e.term >= f.Term && e.index >= f.Index }

// readExtent reads how far the log goes whose files have the names, oldest first. The newest tells,
// unless it has only just begun: what comes first in it is not always the term.
func readExtent(dir string, names []string) (extent, error) {
	var end extent
	for i := len(names) - 1; i >= 0 && end.term == 0; i-- {
		e, err := readFile(filepath.Join(dir, names[i]))
		if err != nil {
			return end, err
		}
		end = extent{term: e.term, index: max(end.index, e.index)}
	}
	return end, nil
}

// readFile reads one file of a log. Its name has the index of the first entry that it may have.
func readFile(path string) (extent, error) {
	var sequence, first uint64
	_, _ = fmt.Sscanf(filepath.Base(path), "%016x-%016x.wal", &sequence, &first) // another name tells nothing
	f, err := os.Open(path)
	if err != nil {
		return extent{}, err
	}
	defer func() { _ = f.Close() }()
	end := extent{index: max(first, 1) - 1}
	if err := end.read(bufio.NewReaderSize(f, 1<<16)); err != nil && !errors.Is(err, io.EOF) {
		return extent{}, err
	}
	return end, nil
}

// maxPrefix is more than what comes before the data of an entry, in bytes.
const maxPrefix = 64

// read goes over the records of a file until its end: that of the file, the zeros that etcd writes ahead,
// or a record of which a crash has left half. That one was not synced, and nobody was told of it.
func (e *extent) read(r *bufio.Reader) error {
	for {
		head, err := r.Peek(8)
		if err != nil {
			return err
		}
		size, padding := frame(head)
		if size == 0 || size > math.MaxInt32 {
			return nil
		}
		_, _ = r.Discard(len(head))
		prefix, err := r.Peek(int(min(size, maxPrefix)))
		if err != nil || !e.take(prefix) {
			return err
		}
		if _, err := r.Discard(int(size + padding)); err != nil {
			return err
		}
	}
}

// take notes what a record says, of which it has the beginning. It returns false for none.
func (e *extent) take(record []byte) bool {
	kind, data := leadingNumbers(record)
	says, _ := leadingNumbers(data)
	switch kind[1] {
	case entryRecord: // its type, term and index; it may take the place of one that never counted
		if says[3] == 0 {
			return false
		}
		e.index = says[3]
	case stateRecord: // the term, the vote, and what is committed
		e.term = says[1]
	case snapshotRecord: // the index and term of what the leader has sent, or of what was saved beside the log
		e.index = max(e.index, says[1])
	}
	return kind[1] != 0
}

// leadingNumbers are the numbers among the fields 1 to 3 at the beginning of a protobuf message, and what follows
// the length of the first field of bytes.
func leadingNumbers(text []byte) (numbers [4]uint64, rest []byte) {
	for len(text) > 0 {
		tag, n := binary.Uvarint(text)
		value, m := binary.Uvarint(text[max(n, 0):])
		if n <= 0 || m <= 0 {
			return numbers, nil
		}
		text = text[n+m:]
		switch {
		case tag&7 == 2:
			return numbers, text
		case tag&7 != 0 || tag>>3 > 3:
			return numbers, nil
		}
		numbers[tag>>3] = value
	}
	return numbers, nil
}
