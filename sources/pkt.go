package sources

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The packets that mark the parts of a message. go-git's own scanner knows the
// first of them only.
const (
	pktData  = -1
	pktFlush = 0 // the end of a message
	pktDelim = 1 // the end of a section
	pktEnd   = 2 // the end of a response

	pktHead = 4
	maxPkt  = 65520
)

// pktReader reads Git's framing: four hex digits with the length, and the data.
type pktReader struct {
	r   io.Reader
	buf [maxPkt]byte
}

// next is the next packet. What it gives stays valid until the next call. A
// message that ends in its middle is an error, and so is one in which the server
// says that something is wrong.
func (p *pktReader) next() (kind int, data []byte, err error) {
	if err := p.fill(p.buf[:pktHead]); err != nil {
		return 0, nil, err
	}
	size, err := strconv.ParseUint(string(p.buf[:pktHead]), 16, 16)
	switch {
	case err != nil || size == 3 || size > maxPkt:
		return 0, nil, errors.New("it is not made of Git's packets")
	case size < pktHead:
		return int(size), nil, nil
	}
	data = p.buf[pktHead:size]
	if err := p.fill(data); err != nil {
		return 0, nil, err
	}
	if text, said := bytes.CutPrefix(data, []byte("ERR ")); said {
		return 0, nil, serverSaid(text)
	}
	return pktData, data, nil
}

// line is the next packet as text, without the line end.
func (p *pktReader) line() (kind int, text string, err error) {
	kind, data, err := p.next()
	return kind, string(bytes.TrimSuffix(data, []byte("\n"))), err
}

func (p *pktReader) fill(data []byte) error {
	_, err := io.ReadFull(p.r, data)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// serverError is an error in the server's own words.
type serverError struct{ text string }

func (e *serverError) Error() string { return "the server says: " + e.text }

func serverSaid(text []byte) error { return &serverError{text: oneLine(string(text))} }

// message is what is sent to a server.
type message struct{ bytes.Buffer }

func (m *message) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(m, "%04x%s\n", len(text)+pktHead+1, text)
}

func (m *message) flush() { m.WriteString("0000") }
func (m *message) delim() { m.WriteString("0001") }

// sideband takes the pack out of the packets that it shares with the server's
// remarks.
type sideband struct {
	packets *pktReader
	first   []byte // a packet that has been read already; nil for none
	left    []byte
	ended   bool
	// remarks of the server are kept here; nil for nowhere.
	remarks io.Writer
}

// The first byte of a packet says whose it is.
const (
	bandPack    = 1
	bandRemarks = 2
	bandError   = 3
)

// Read implements io.Reader.
func (s *sideband) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		if err := s.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *sideband) more() error {
	if s.ended {
		return io.EOF
	}
	kind, data, err := s.next()
	switch {
	case err != nil:
		return err
	case kind != pktData:
		s.ended = true
	case len(data) == 0:
		return errors.New("it has an empty packet in its pack")
	case data[0] == bandPack:
		s.left = data[1:]
	case data[0] == bandRemarks:
		if s.remarks != nil {
			_, _ = s.remarks.Write(data[1:])
		}
	case data[0] == bandError:
		return serverSaid(data[1:])
	default:
		return errors.New("it has something else among its pack")
	}
	return nil
}

func (s *sideband) next() (kind int, data []byte, err error) {
	if data = s.first; data != nil {
		s.first = nil
		return pktData, data, nil
	}
	return s.packets.next()
}
