package sources

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// hello is what a server says first: what it can do and, where it does not speak
// protocol 2, every reference that it has.
type hello struct {
	v2   bool
	caps map[string]string
	refs map[string]plumbing.Hash // nil in protocol 2
}

// fetches reports whether a server lists a word behind the fetch of protocol 2, or
// has the capability of protocol 0.
func (h hello) fetches(word string) bool {
	if !h.v2 {
		_, has := h.caps[word]
		return has
	}
	for w := range strings.FieldsSeq(h.caps["fetch"]) {
		if w == word {
			return true
		}
	}
	return false
}

// readHello understands both protocols. A server of protocol 2 may have the
// title of an older one in front.
func readHello(r io.Reader) (hello, error) {
	packets := &pktReader{r: r}
	kind, text, err := packets.line()
	if err == nil && strings.HasPrefix(text, "# service=") {
		if kind, _, err = packets.line(); err == nil && kind == pktFlush {
			kind, text, err = packets.line()
		}
	}
	if err == nil && text == "version 1" {
		kind, text, err = packets.line()
	}
	switch {
	case err != nil:
		return hello{}, err
	case text == "version 2":
		return readCapabilities(packets)
	}
	return readAdvertisement(packets, kind, text)
}

func readCapabilities(packets *pktReader) (hello, error) {
	h := hello{v2: true, caps: map[string]string{}}
	for {
		kind, text, err := packets.line()
		switch {
		case err != nil:
			return hello{}, err
		case kind != pktData:
			return h, h.check()
		}
		name, value, _ := strings.Cut(text, "=")
		h.caps[name] = value
	}
}

// readAdvertisement reads the references of protocol 0. The first one has the
// capabilities behind it.
func readAdvertisement(packets *pktReader, kind int, first string) (hello, error) {
	h := hello{caps: map[string]string{}, refs: map[string]plumbing.Hash{}}
	text, caps, _ := strings.Cut(first, "\x00")
	for word := range strings.FieldsSeq(caps) {
		name, value, _ := strings.Cut(word, "=")
		h.caps[name] = value
	}
	for kind == pktData {
		hash, name, ok := strings.Cut(text, " ")
		switch {
		case hash == "shallow":
		case !ok || !plumbing.IsHash(hash):
			return hello{}, errors.New("its list of references is not Git's")
		case name != "capabilities^{}":
			h.refs[name] = plumbing.NewHash(hash)
		}
		var err error
		if kind, text, err = packets.line(); err != nil {
			return hello{}, err
		}
	}
	return h, h.check()
}

// check refuses what go-git cannot read.
func (h hello) check() error {
	if format := h.caps["object-format"]; format != "" && format != "sha1" {
		if format != "sha256" {
			format = "another kind" // a server's own words are not repeated here
		}
		return &failure{
			why:   fmt.Sprintf("the repository has objects of the format %s, and quorate reads sha1 only", format),
			next:  "use a repository of the format sha1",
			kinds: []error{ErrUnreachable},
		}
	}
	return nil
}

// command begins a request of protocol 2.
func (h hello) command(name string) *message {
	m := &message{}
	m.line("command=%s", name)
	if h.caps["object-format"] != "" {
		m.line("object-format=sha1")
	}
	m.delim()
	return m
}

// listRequest asks for the references with a prefix.
func (h hello) listRequest(prefix string) []byte {
	m := h.command("ls-refs")
	m.line("peel")
	m.line("ref-prefix %s", prefix)
	m.flush()
	return m.Bytes()
}

// readList reads what a listRequest gave. What a tag with a message of its own names
// stands behind the tag's name and ^{}, as in protocol 0.
func readList(r io.Reader) (map[string]plumbing.Hash, error) {
	packets, refs := &pktReader{r: r}, map[string]plumbing.Hash{}
	for {
		kind, text, err := packets.line()
		switch {
		case err != nil:
			return nil, err
		case kind != pktData:
			return refs, nil
		}
		fields := strings.Fields(text)
		if len(fields) < 2 || !plumbing.IsHash(fields[0]) {
			return nil, errors.New("its list of references is not Git's")
		}
		refs[fields[1]] = plumbing.NewHash(fields[0])
		for _, attribute := range fields[2:] {
			if peeled, is := strings.CutPrefix(attribute, "peeled:"); is {
				refs[fields[1]+peeledSuffix] = plumbing.NewHash(peeled)
			}
		}
	}
}

// want is what is asked for of a server.
type want struct {
	commit plumbing.Hash
	// have is a commit whose history is not needed; zero for none.
	have plumbing.Hash
	// shallow leaves out the commit's own history.
	shallow bool
	// filter leaves out objects, where the server can.
	filter string
}

// fetchRequest is the want in the words that the server understands.
func (h hello) fetchRequest(w want) []byte {
	if h.v2 {
		return h.fetchV2(w)
	}
	m := &message{}
	m.line("%s", strings.Join(append([]string{"want", w.commit.String()}, h.announced()...), " "))
	if w.shallow {
		m.line("deepen 1")
	}
	if w.filter != "" {
		m.line("filter %s", w.filter)
	}
	m.flush()
	if !w.have.IsZero() {
		m.line("have %s", w.have)
	}
	m.line("done")
	return m.Bytes()
}

// announced is what a request of protocol 0 may use of what the server offers. Azure
// DevOps refuses one without multi_ack (TF401041), although a single have needs none.
func (h hello) announced() []string {
	var caps []string
	for _, c := range []string{multiAckDetailed, multiAck, "ofs-delta", "side-band-64k", "no-progress", "shallow", "filter"} {
		switch {
		case !h.fetches(c):
		case c == multiAck && h.fetches(multiAckDetailed): // one excludes the other
		default:
			caps = append(caps, c)
		}
	}
	return h.withAgent(caps)
}

// withAgent adds quorate's name where the server wants to know it.
func (h hello) withAgent(caps []string) []string {
	if _, has := h.caps["agent"]; has {
		caps = append(caps, "agent=quorate")
	}
	return caps
}

const (
	multiAck         = "multi_ack"
	multiAckDetailed = "multi_ack_detailed"
)

func (h hello) fetchV2(w want) []byte {
	m := h.command("fetch")
	m.line("no-progress")
	m.line("ofs-delta")
	if w.shallow {
		m.line("deepen 1")
	}
	if w.filter != "" {
		m.line("filter %s", w.filter)
	}
	m.line("want %s", w.commit)
	if !w.have.IsZero() {
		m.line("have %s", w.have)
	}
	m.line("done")
	m.flush()
	return m.Bytes()
}

// packIn finds the pack in the answer to a fetchRequest.
func (h hello) packIn(r io.Reader, w want) (io.Reader, error) {
	packets := &pktReader{r: r}
	if h.v2 {
		return packV2(packets)
	}
	if w.shallow { // what has no history now, up to a flush
		for kind := pktData; kind == pktData; {
			var err error
			if kind, _, err = packets.next(); err != nil {
				return nil, err
			}
		}
	}
	if !h.fetches("side-band-64k") {
		return r, lastAck(packets)
	}
	first, err := afterAcks(packets)
	if err != nil {
		return nil, err
	}
	return &sideband{packets: packets, first: first}, nil
}

// lastAck reads what a server says of the commits that are had, up to its last word:
// NAK, or an ACK without an addition. With multi_ack each common commit has a line
// of its own before it.
func lastAck(packets *pktReader) error {
	for {
		kind, text, err := packets.line()
		switch {
		case err != nil:
			return err
		case kind != pktData || !isAck(text):
			return errNoPack
		case text == nak || len(strings.Fields(text)) == 2:
			return nil
		}
	}
}

// afterAcks does the same where the pack comes in packets. It goes by these, which
// no ACK can be taken for: servers differ in how many lines they write.
func afterAcks(packets *pktReader) ([]byte, error) {
	for acks := 0; ; acks++ {
		kind, data, err := packets.next()
		switch {
		case err != nil:
			return nil, err
		case isAck(string(bytes.TrimSuffix(data, []byte("\n")))):
		case kind != pktData || acks == 0:
			return nil, errNoPack
		default:
			return data, nil
		}
	}
}

const nak = "NAK"

func isAck(text string) bool { return text == nak || strings.HasPrefix(text, "ACK ") }

var errNoPack = errors.New("it has no pack")

// packV2 leaves out the sections in front of the pack.
func packV2(packets *pktReader) (io.Reader, error) {
	for {
		kind, text, err := packets.line()
		switch {
		case err != nil:
			return nil, err
		case kind == pktData && text == "packfile":
			return &sideband{packets: packets}, nil
		case kind == pktFlush:
			return nil, errNoPack
		}
	}
}
