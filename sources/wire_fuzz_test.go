package sources

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	hashA = "1111111111111111111111111111111111111111"
	hashB = "2222222222222222222222222222222222222222"
)

// lines is a message of packets, with a flush for each empty one.
func lines(texts ...string) []byte {
	m := &message{}
	for _, text := range texts {
		if text == "" {
			m.flush()
			continue
		}
		m.line("%s", text)
	}
	return m.Bytes()
}

// banded puts data into packets of a band.
func banded(band byte, data string) string { return string(band) + data }

// explained is an error as Fetch and Publish return it, after an answer of Git's.
func explained(err error) error {
	if err == nil {
		return nil
	}
	e := &exchange{service: uploadPack, status: 200, isGit: true}
	return explain(context.Background(), "fetch branch main of https://git.example.com/etcd.git", e.explain(err, nil))
}

// wantFit wants an error to be of one of the kinds, and its text to be safe in a log and
// on a terminal.
func wantFit(t *testing.T, err error, kinds ...error) {
	t.Helper()
	if err == nil {
		return
	}
	known := false
	for _, kind := range kinds {
		known = known || errors.Is(err, kind)
	}
	text := err.Error()
	strange := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	if !known || !utf8.ValidString(text) || strange >= 0 || len(text) > 1000 {
		t.Fatalf("%q is not one of %v, or repeats what a server says", text, kinds)
	}
}

// withinMemory wants a function to allocate little, whatever a server sends.
func withinMemory(t *testing.T, data []byte, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	if used, most := after.TotalAlloc-before.TotalAlloc, uint64(8*mib+64*len(data)); used > most {
		t.Fatalf("%d bytes allocated for %d bytes, and at most %d are allowed", used, len(data), most)
	}
}

// FuzzGreeting (492) reads what a server says first, and a list of references in protocol 2.
func FuzzGreeting(f *testing.F) {
	for _, seed := range [][]byte{
		lines("# service=git-upload-pack", "", hashA+" HEAD\x00multi_ack side-band-64k symref=HEAD:refs/heads/main", hashA+" refs/heads/main", hashB+" refs/tags/v1", hashA+" refs/tags/v1^{}", ""),
		lines("version 1", hashA+" refs/heads/main\x00 shallow filter object-format=sha1", "shallow "+hashB, ""),
		lines("# service=git-upload-pack", "", "version 2", "agent=git/2.39.5", "ls-refs=unborn", "fetch=shallow wait-for-done filter", "object-format=sha1", ""),
		lines("0000000000000000000000000000000000000000 capabilities^{}\x00report-status object-format=sha256", ""),
		lines(hashA+" HEAD symref-target:refs/heads/main", hashB+" refs/tags/v1 peeled:"+hashA, ""),
		lines("ERR \x1b[2Jaccess denied\r\n\u202e"),
		[]byte("fff0" + strings.Repeat("a", 100)), []byte("0003"), []byte("HTTP/1.1 400 Bad Request\r\n"), nil,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		withinMemory(t, data, func() {
			h, err := readHello(&bounded{r: bytes.NewReader(data), left: maxRefsBytes})
			wantFit(t, explained(err), ErrUnreachable)
			if err == nil {
				readRequests(t, h)
			}
			_, err = readList(&bounded{r: bytes.NewReader(data), left: maxRefsBytes})
			wantFit(t, explained(err), ErrUnreachable)
		})
	})
}

// readRequests wants requests to be packets of words that quorate knows, whatever the
// server offers.
func readRequests(t *testing.T, h hello) {
	t.Helper()
	w := want{commit: plumbing.NewHash(hashA), have: plumbing.NewHash(hashB), shallow: true, filter: "tree:0"}
	for _, request := range [][]byte{h.fetchRequest(w), h.listRequest("refs/heads/main")} {
		if len(request) > 1000 {
			t.Fatalf("a request has %d bytes", len(request))
		}
		left := bytes.NewReader(request)
		for packets := (&pktReader{r: left}); left.Len() > 0; {
			_, text, err := packets.line()
			if err != nil || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("%q has a packet %q, %v", request, text, err)
			}
		}
	}
}

// FuzzAnswer reads an answer to a fetch: what has no history, what is had, and the pack.
func FuzzAnswer(f *testing.F) {
	pack := string(packOf(2, entryOf(blobType, 5, nil, []byte("hello")), deltaOf(5, 6)))
	old, alone := lines("shallow "+hashA, "", "NAK"), lines("NAK")
	for _, seed := range []struct {
		data    []byte
		v2      bool
		shallow bool
		bands   bool
	}{
		{append(lines("acknowledgments", "NAK", "shallow-info", "shallow "+hashA, "packfile", banded(bandRemarks, "Counting"), banded(bandPack, pack)), "0000"...), true, true, true},
		{append(old, lines(banded(bandRemarks, "Azure Repos"), banded(bandPack, pack[:20]), banded(bandPack, pack[20:]), "")...), false, true, true},
		{lines("ACK "+hashA+" common", "ACK "+hashA+" ready", "NAK", "ACK "+hashA, banded(bandPack, pack), ""), false, false, true},
		{lines("ACK "+hashA+" continue", "ACK "+hashA, banded(bandError, "\x1b[31mout of memory")), false, false, true},
		{append(alone, pack...), false, false, false},
		{lines("ERR upload-pack: not our ref " + hashA), true, true, true},
		{lines(strings.Repeat("shallow ", 100), "", "ACK", "\x04?"), false, true, true},
	} {
		f.Add(seed.data, seed.v2, seed.shallow, seed.bands)
	}
	f.Fuzz(func(t *testing.T, data []byte, v2, shallow, bands bool) {
		h := hello{v2: v2, caps: map[string]string{"fetch": "shallow filter"}}
		if bands {
			h.caps["side-band-64k"] = ""
		}
		withinMemory(t, data, func() {
			s := &packSession{wire: &readyWire{h, data}, limits: Limits{PackBytes: mib, UnpackedBytes: mib, Objects: 100}.withDefaults()}
			_, err := s.fetch(t.Context(), want{commit: plumbing.NewHash(hashA), shallow: shallow, filter: "blob:none"})
			if err != nil {
				err = explain(t.Context(), "fetch", err)
			}
			wantFit(t, err, ErrUnreachable, ErrTooLarge, ErrBranchGone)
		})
	})
}

// readyWire is a server that has one answer to everything.
type readyWire struct {
	hello
	answer []byte
}

func (w *readyWire) greet(context.Context) (hello, error) { return w.hello, nil }

func (w *readyWire) ask(context.Context, []byte) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(w.answer)), nil
}

func (w *readyWire) explain(err error) error {
	return (&exchange{status: 200, isGit: true}).explain(err, nil)
}

func (w *readyWire) clean(text string) string { return scrub(text, nil) }

func (w *readyWire) close() {}

// FuzzReport reads the report of a push.
func FuzzReport(f *testing.F) {
	const ref = "refs/heads/quorate/status"
	inner := lines("unpack ok", "ng "+ref+" pre-receive hook declined", "")
	for _, seed := range []struct {
		data  []byte
		bands bool
	}{
		{lines("unpack ok", "ok "+ref, ""), false},
		{lines("unpack index-pack failed", "ng "+ref+" \x1b[2Junpacker error\u202e", ""), false},
		{lines("unpack ok", "ng "+ref+" failed to update ref", "ok refs/heads/other", ""), false},
		{lines(banded(bandRemarks, "GL-HOOK-ERR: \x1b]0;title\x07no"), banded(bandPack, string(inner)), ""), true},
		{lines(banded(bandPack, string(inner[:7])), banded(bandPack, string(inner[7:])), banded(bandError, "gone")), true},
		{lines("unpack", "ok", "ng", "what"), false},
	} {
		f.Add(seed.data, seed.bands)
	}
	f.Fuzz(func(t *testing.T, data []byte, bands bool) {
		h := hello{caps: map[string]string{}, refs: map[string]plumbing.Hash{}}
		if bands {
			h.caps["side-band-64k"] = ""
		}
		withinMemory(t, data, func() {
			said := &remarks{}
			report, err := readReport(&bounded{r: bytes.NewReader(data), left: maxReportBytes}, h, said)
			if err != nil {
				wantFit(t, explained(err), ErrUnreachable, ErrTooLarge)
				return
			}
			err = report.judge(update{ref: ref}, scrub(said.text(), nil))
			wantFit(t, err, ErrRejected, errMoved)
			if err == nil && !bands && !bytes.Contains(data, []byte("ok "+ref)) {
				t.Fatal("the push counts as done, and the report does not say so")
			}
		})
	})
}
