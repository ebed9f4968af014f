package etcds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"sync"
	"time"
)

// The ways in which a call is disturbed.
const (
	failed     = "error"             // it is not done, and fails at once
	timeout    = "timeout"           // it is not done, and not answered
	unanswered = "done-not-answered" // it is done, and not answered
	late       = "done-much-later"   // it is not answered, and done some time after
	another    = "another-member"    // another member answers
	old        = "old-answer"        // the answer is an earlier one
	hangs      = "hangs"             // from then on the member answers nothing for a while
)

const (
	// lateness is how long a call takes that is done much later, and hangsLasts how long a
	// member hangs: longer than quorate waits for an answer.
	lateness, hangsLasts = 6 * time.Second, 8 * time.Second
	// age is how old an old answer is at least.
	age = 2 * time.Second
	// patience is how long a call may wait for ever.
	patience = 30 * time.Second
)

// line is what quorate's calls go through. It counts them, and disturbs one.
type line struct {
	mu sync.Mutex
	// at is the call to disturb, as its name says, and how is how.
	at, how string
	// on is true while calls are counted.
	on      bool
	counted map[string]int
	// names are the calls in their order, and hit says when the one to disturb came.
	names []string
	hit   time.Time
	doors []*door
}

// door is where quorate finds one member.
type door struct {
	line *line
	// address is the door's, and member that of the member behind it.
	address, member string
	server          *http.Server

	mu sync.Mutex
	// silent is until when the member hangs.
	silent time.Time
	// said are the answers so far, by what was asked.
	said map[string][]*answer
}

// answer is one answer of a member.
type answer struct {
	at              time.Time
	status          int
	header, trailer http.Header
	body            []byte
}

// open opens the door at an address, to the member at another.
func (l *line) open(address, member string) (*door, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	d := &door{line: l, address: address, member: member, said: map[string][]*answer{}}
	d.server = &http.Server{Handler: d, Protocols: new(http.Protocols), ReadHeaderTimeout: patience}
	d.server.Protocols.SetHTTP1(true)
	d.server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = d.server.Serve(listener) }() // until it is closed
	l.doors = append(l.doors, d)
	return d, nil
}

// count counts a call, and returns how to disturb it, "" for not at all.
func (l *line) count(call string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on {
		return ""
	}
	l.counted[call]++
	name := fmt.Sprintf("%s-%d", call, l.counted[call])
	l.names = append(l.names, name)
	if name != l.at {
		return ""
	}
	l.hit = time.Now()
	return l.how
}

// arm lets calls be counted, or not any more.
func (l *line) arm(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = on
}

// seen is what was counted so far.
func (l *line) seen() (names []string, hit time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.names...), l.hit
}

// ServeHTTP answers one call of quorate's, which is one of gRPC, or a plain GET.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was given up
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	how := d.line.count(path.Base(r.URL.Path))
	if how == hangs {
		d.hang()
	}
	switch {
	case d.hanging() || how == timeout:
		<-ctx.Done()
	case how == failed:
		refuse(w, r)
	case how == late:
		go d.later(r, asked)
		<-ctx.Done()
	case how == unanswered:
		_, _ = d.ask(ctx, d.member, r, asked)
		<-ctx.Done()
	default:
		d.answer(ctx, w, r, asked, how)
	}
}

func (d *door) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, asked []byte, how string) {
	member := d.member
	if how == another {
		member = d.other()
	}
	a, err := d.ask(ctx, member, r, asked)
	if err != nil {
		refuse(w, r)
		return
	}
	if how == old {
		a = d.earlier(r, asked, a)
	}
	d.keep(r, asked, a)
	a.write(w)
}

func (d *door) hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent = time.Now().Add(hangsLasts)
}

func (d *door) hanging() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.silent)
}

// later does a call long after it was given up.
func (d *door) later(r *http.Request, asked []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), lateness+patience)
	defer cancel()
	time.Sleep(lateness)
	_, _ = d.ask(ctx, d.member, r, asked)
}

// other is where another member is.
func (d *door) other() string {
	for _, o := range d.line.doors {
		if o != d {
			return o.member
		}
	}
	return d.member
}

// keep keeps an answer that was given.
func (d *door) keep(r *http.Request, asked []byte, a *answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := r.URL.Path + string(asked)
	d.said[key] = append(d.said[key], a)
}

// earlier is the newest answer to the same question that is old enough, or the one of now.
func (d *door) earlier(r *http.Request, asked []byte, now *answer) *answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.said[r.URL.Path+string(asked)] {
		if now.at.Sub(a.at) < age {
			break
		}
		now = &answer{a.at, a.status, a.header, a.trailer, a.body}
	}
	return now
}

// isRPC reports whether a call is one of gRPC.
func isRPC(r *http.Request) bool { return r.Header.Get("Content-Type") == "application/grpc" }

// refuse answers that the member cannot be reached.
func refuse(w http.ResponseWriter, r *http.Request) {
	if !isRPC(r) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", "14")
	w.Header().Set("Grpc-Message", "transport is closing")
	w.WriteHeader(http.StatusOK)
}

// transports are how members are reached: by HTTP/2 in clear text for gRPC, and else as usual.
func transports() (rpc, plain *http.Transport) {
	rpc, plain = &http.Transport{Protocols: new(http.Protocols)}, &http.Transport{}
	rpc.Protocols.SetUnencryptedHTTP2(true)
	return rpc, plain
}

var rpcWay, plainWay = transports() // connections are kept

// ask asks a member, and reads the whole answer.
func (d *door) ask(ctx context.Context, member string, r *http.Request, asked []byte) (*answer, error) {
	next := r.Clone(ctx)
	next.RequestURI, next.URL.Scheme, next.URL.Host = "", "http", member
	next.Body, next.ContentLength = io.NopCloser(bytes.NewReader(asked)), int64(len(asked))
	way := plainWay
	if isRPC(r) {
		way = rpcWay
	}
	response, err := way.RoundTrip(next)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	return &answer{time.Now(), response.StatusCode, response.Header, response.Trailer, body}, nil
}

// write writes an answer down the line.
func (a *answer) write(w http.ResponseWriter) {
	for key, values := range a.header {
		w.Header()[key] = values
	}
	for key, values := range a.trailer {
		w.Header()[http.TrailerPrefix+key] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // quorate may have given up
}
