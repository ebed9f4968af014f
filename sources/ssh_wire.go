package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshWire is one conversation over SSH. In protocol 2 it is one process of the
// server; in protocol 0 that ends after one request, and the next one needs
// another.
type sshWire struct {
	origin  *sshOrigin
	service service
	dialer  dialer
	hops    []sshHop
	secrets []string

	conn    net.Conn
	clients []*ssh.Client // one for each hop
	stop    func() bool
	process *sshProcess
	met     hello
	used    bool // whether the process has had its only request
}

// sshProcess is the service on the server.
type sshProcess struct {
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	remarks *remarks
}

func (w *sshWire) greet(ctx context.Context) (hello, error) {
	if w.process != nil {
		return w.met, nil
	}
	if err := w.connect(ctx); err != nil {
		return hello{}, err
	}
	process, err := w.start()
	if err != nil {
		return hello{}, err
	}
	w.process, w.used = process, false
	w.met, err = readHello(&bounded{r: process.out, left: maxRefsBytes})
	return w.met, err
}

func (w *sshWire) ask(ctx context.Context, request []byte) (io.ReadCloser, error) {
	if w.used && !w.met.v2 {
		w.process.end()
		w.process = nil
	}
	if _, err := w.greet(ctx); err != nil {
		return nil, err
	}
	w.used = true
	if _, err := w.process.in.Write(request); err != nil {
		return nil, err
	}
	return io.NopCloser(&bounded{r: w.process.out, left: answerBytes(w.origin.limits)}), nil
}

// connect dials and logs in, at each hop through the one before. The end of the context
// closes the connection, which ends whatever waits for it.
func (w *sshWire) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.dialer.dial(ctx, w.hops[0].address)
	if err != nil {
		return err
	}
	w.conn, w.stop = conn, context.AfterFunc(ctx, func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	for _, hop := range w.hops {
		if err := w.login(hop); err != nil {
			w.close()
			return err
		}
	}
	return conn.SetDeadline(time.Time{})
}

func (w *sshWire) login(hop sshHop) error {
	conn := w.conn
	if len(w.clients) > 0 {
		var err error
		if conn, err = w.last().Dial("tcp", hop.address); err != nil {
			return unreachable(fmt.Sprintf("the jump host does not connect to %s (%s)", hop.address, w.clean(err.Error())), "check the URL, and that the jump host forwards TCP connections there")
		}
	}
	client, channels, requests, err := ssh.NewClientConn(conn, hop.address, hop.config)
	if err != nil {
		return hop.explain(err, w.service.deed()+" the repository")
	}
	w.clients = append(w.clients, ssh.NewClient(client, channels, requests))
	return nil
}

// last is the connection to Git's server, or to the one before it.
func (w *sshWire) last() *ssh.Client { return w.clients[len(w.clients)-1] }

// start begins the service. A server that lets no variable through speaks
// protocol 0, which works as well.
func (w *sshWire) start() (*sshProcess, error) {
	session, err := w.last().NewSession()
	if err != nil {
		return nil, err
	}
	p := &sshProcess{session: session, remarks: &remarks{}}
	session.Stderr = p.remarks
	_ = session.Setenv("GIT_PROTOCOL", "version=2")
	if p.in, err = session.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = session.StdoutPipe(); err != nil {
		return nil, err
	}
	return p, session.Start(string(w.service) + " " + quote(w.origin.path))
}

// quote makes one word of a path for the server's shell.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

func (p *sshProcess) end() { _ = p.session.Close() }

// lastWords is how long a process may take to end that has nothing more to do.
const lastWords = 2 * time.Second

// await waits for the remarks, which come on a way of their own.
func (p *sshProcess) await() {
	_ = p.in.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.session.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(lastWords):
	}
	p.end()
}

func (w *sshWire) clean(text string) string { return scrub(text, w.secrets) }

func (w *sshWire) close() {
	if w.conn == nil {
		return
	}
	w.stop()
	for _, client := range slices.Backward(w.clients) {
		_ = client.Close()
	}
	_ = w.conn.Close()
	w.conn, w.clients = nil, nil
}

// explain uses what the server said besides its answer, if anything.
func (w *sshWire) explain(err error) error {
	var known *failure
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, errOverflow):
		return tooMuch("the server's answer is larger than allowed")
	case w.process == nil:
		return unreachable(scrub(err.Error(), w.secrets), "check the URL, the network and the server")
	}
	return w.said(err)
}

// said is the failure of a server that began to answer.
func (w *sshWire) said(err error) error {
	w.process.await()
	text := scrub(w.process.remarks.text(), w.secrets)
	lower := strings.ToLower(text)
	switch {
	case text == "":
		return unreachable(fmt.Sprintf("the server's answer cannot be understood (%s)", scrub(err.Error(), w.secrets)), "see whether it lasts")
	case strings.Contains(lower, "not found"), strings.Contains(lower, "not appear to be a git repository"), strings.Contains(lower, "no such"):
		return notFound("the server says: "+text, "check the URL, and that the key may see the repository")
	case strings.Contains(lower, "denied"), strings.Contains(lower, "not allowed"):
		return unauthenticated("the server says: "+text, "check that the key may "+w.service.deed()+" the repository")
	}
	return unreachable("the server says: "+text, "see whether it lasts")
}

// bounded fails, rather than ends, where it has given what it may.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, errOverflow
	}
	return n, err
}

// remarks keeps the beginning of what a server says besides its answer.
type remarks struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (r *remarks) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if room := maxRefusalBytes - r.data.Len(); room > 0 {
		r.data.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// text has no empty lines, and no line begins with the mark that hooks give to each.
func (r *remarks) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var said []string
	for line := range strings.Lines(r.data.String()) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "error:"))
		if line != "" {
			said = append(said, line)
		}
	}
	return strings.Join(said, "\n")
}
