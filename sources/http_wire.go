package sources

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// httpWire is one conversation over HTTP. Each request is independent, so what
// the server said in an earlier conversation spares asking what it can do: then
// a poll of an unchanged branch is a single request.
type httpWire struct {
	origin        *httpOrigin
	service       service
	client        *http.Client
	watch         *exchange
	authorization authorization
	secrets       []string

	met *greeting // in this conversation
}

const maxHops = 5

var errRedirect = errors.New("it redirects to where quorate does not follow: only to http or https, never from https to http, and not without end")

// greet gives what the server said, in this conversation or in an earlier one.
func (w *httpWire) greet(ctx context.Context) (hello, error) {
	if w.met == nil && w.service == uploadPack {
		w.met = w.origin.recall()
	}
	if w.met != nil {
		return w.met.hello, nil
	}
	address := w.origin.url.JoinPath("info/refs")
	address.RawQuery = "service=" + string(w.service)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return hello{}, err
	}
	res, err := w.do(req)
	if err != nil {
		return hello{}, err
	}
	defer res.Body.Close()
	said, err := readHello(res.Body)
	if err != nil {
		return hello{}, err
	}
	w.met = &greeting{hello: said, base: baseOf(res.Request.URL)}
	// A redirect is for one conversation: remembered, a single answer of whoever sits on
	// the way would move the daemon for as long as it lives.
	redirected := res.Request.Response != nil
	if said.v2 && w.service == uploadPack && !redirected {
		w.origin.remember(w.met)
	}
	return said, nil
}

// baseOf is where the repository is in this conversation: redirects of its first request
// lead there.
func baseOf(address *url.URL) *url.URL {
	base := *address
	base.RawQuery = ""
	base.Path = strings.TrimSuffix(base.Path, "/info/refs")
	base.RawPath = strings.TrimSuffix(base.RawPath, "/info/refs")
	return &base
}

// ask sends a request. Where the server does not want it at what was remembered
// of it, the greeting is repeated first.
func (w *httpWire) ask(ctx context.Context, request []byte) (io.ReadCloser, error) {
	remembered := w.met != nil && w.met == w.origin.recall()
	answer, err := w.post(ctx, request)
	if err != nil && remembered && ctx.Err() == nil {
		w.origin.remember(nil)
		w.met = nil
		said, err := w.greet(ctx)
		if err != nil {
			return nil, err
		}
		if !said.v2 {
			w.met = nil
			return nil, errors.New("it has changed the protocol that it speaks")
		}
		return w.post(ctx, request)
	}
	return answer, err
}

func (w *httpWire) post(ctx context.Context, request []byte) (io.ReadCloser, error) {
	address := w.met.base.JoinPath(string(w.service))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-"+string(w.service)+"-request")
	req.Header.Set("Accept", "application/x-"+string(w.service)+"-result")
	res, err := w.do(req)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// refusedError is for an answer that is not Git's; the exchange knows more.
type refusedError struct{ status int }

func (*refusedError) Error() string { return "the request is refused" }

func (w *httpWire) do(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", "git/quorate")
	req.Header.Set("Git-Protocol", "version=2")
	if sameOrigin(req.URL, w.origin.url) {
		w.authorization.add(req)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusUnauthorized {
		w.origin.app.drop()
	}
	if res.StatusCode < 200 || res.StatusCode > 299 || !w.watch.isGit {
		res.Body.Close()
		return nil, &refusedError{res.StatusCode}
	}
	return res, nil
}

// follow goes where the server points to, and takes the credentials nowhere else
// than to the server they are for. A request that carries something is not sent
// on: net/http would make an empty one of it.
func (w *httpWire) follow(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	switch {
	case len(via) > maxHops, via[0].Method != http.MethodGet,
		req.URL.Scheme != "https" && req.URL.Scheme != "http",
		from.Scheme == "https" && req.URL.Scheme == "http":
		return errRedirect
	}
	if !sameOrigin(req.URL, w.origin.url) {
		req.Header.Del("Authorization")
	}
	return nil
}

// explain forgets what the server said as well: whatever went wrong, the next
// conversation begins at the beginning.
func (w *httpWire) explain(err error) error {
	w.origin.remember(nil)
	return w.watch.explain(err, w.secrets)
}

func (w *httpWire) clean(text string) string { return scrub(text, w.secrets) }

func (w *httpWire) close() {}
