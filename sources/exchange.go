package sources

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// exchange watches the requests of one fetch: it bounds what an answer may hold
// and remembers how the last one began.
type exchange struct {
	server *url.URL
	conns  *connections
	limits Limits
	service

	status   int           // of the last answer; 0 when there was none
	isGit    bool          // whether it called itself Git's
	after    time.Duration // how long it wants to be left alone
	away     bool          // whether it was sent elsewhere, by a redirect
	overflow bool          // whether an answer was cut
}

var errOverflow = errors.New("the answer is larger than allowed")

// RoundTrip implements http.RoundTripper.
func (e *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	e.status, e.isGit, e.away = 0, false, req.Response != nil
	res, err := e.conns.to(e.server, req).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	e.status = res.StatusCode
	e.after = retryAfter(res.Header)
	e.isGit = strings.HasPrefix(res.Header.Get("Content-Type"), "application/x-git-")
	res.Body = e.bounded(req, res)
	return res, nil
}

func (e *exchange) bounded(req *http.Request, res *http.Response) io.ReadCloser {
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		// Cut without an error: it is not read.
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxRefusalBytes), res.Body}
	case req.Method == http.MethodGet:
		return &boundedBody{ReadCloser: res.Body, left: maxRefsBytes, overflow: &e.overflow}
	}
	// The list of references is smaller than this, and the pack itself is counted where it is read; what may come on top of it is
	// its framing and the server's remarks.
	most := answerBytes(e.limits)
	return &boundedBody{ReadCloser: res.Body, left: most, overflow: &e.overflow}
}

// boundedBody fails, rather than ends, where it has given what it may: a cut
// answer must not pass for a short one.
type boundedBody struct {
	io.ReadCloser
	left     int64
	overflow *bool
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		*b.overflow = true
		return 0, errOverflow
	}
	return n, err
}

// answerBytes bounds an answer of whatever kind.
func answerBytes(limits Limits) int64 {
	return max(limits.PackBytes+limits.PackBytes/16+mib, maxRefsBytes)
}

// explain turns an error into a failure. It goes by what the server answered
// rather than by the error, which often is only its consequence.
func (e *exchange) explain(err error, secrets []string) error {
	var known *failure
	switch {
	case errors.As(err, &known):
		return err
	case e.overflow, errors.Is(err, errOverflow):
		return tooMuch("the server's answer is larger than allowed")
	case errors.Is(err, errRedirect):
		return unreachable(errRedirect.Error(), "give the URL that it redirects to")
	case e.status == 0 && e.away:
		// Its name is the server's word.
		return unreachable("it redirects to a server that cannot be reached", "give the URL that it redirects to")
	case e.status == 0:
		return unreachable(scrub(transportReason(err), secrets), "check the URL, the network and the server")
	case e.status < 200 || e.status > 299:
		f := refusal(e.status, e.service)
		f.after = e.after
		return f
	case !e.isGit:
		return unreachable("the server's answer is not Git's", "check that the URL is the one to clone from")
	}
	return unreachable(fmt.Sprintf("the server's answer cannot be understood (%s)", scrub(err.Error(), secrets)),
		"see whether it lasts")
}

// retryAfter reads the header that goes with 429 and 503. Its other form, a time,
// needs clocks that agree; without it quorate chooses the pause.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

func refusal(status int, with service) *failure {
	said := strings.TrimSpace(fmt.Sprintf("the server answered %d %s", status, http.StatusText(status)))
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return unauthenticated(said, "check that the credentials are valid and may "+with.deed()+" the repository")
	case http.StatusNotFound, http.StatusGone:
		return notFound(said, "check the URL, and that the credentials may see the repository")
	}
	return unreachable(said, "check the server")
}

// transportReason leaves out the URL that net/http puts in front.
func transportReason(err error) string {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err.Error()
	}
	return err.Error()
}
