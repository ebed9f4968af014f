package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// API sends requests to the REST API of a code host, with credentials that are
// read again for each: a token as bearerToken or password, or a GitHub App. Its
// methods may be called concurrently.
type API struct {
	origin  *httpOrigin
	timeout time.Duration
}

// Request is one request to an API.
type Request struct {
	Method string
	// Path is escaped, begins with a slash, and may carry a query.
	Path string
	// ETag makes the answer 304 where nothing has changed since the one that had it.
	ETag string
	// Body is sent as JSON; nil for none.
	Body any
}

// Answer is what came back. Beside an error, it is the server's refusal.
type Answer struct {
	// Status is 304 for something that has not changed; 0 where nothing came.
	Status int
	Header http.Header
	Body   []byte
}

const (
	// maxAnswerBytes bounds an answer: a page of a hundred pull requests with long
	// descriptions has some four of them.
	maxAnswerBytes = 16 * mib
	// limitPause is how long a server is left alone that says "too much" without
	// saying for how long.
	limitPause = time.Minute
)

// NewAPI checks the address. It does not connect and reads no file. timeout bounds
// one request, besides its context.
func NewAPI(address string, auth Auth, caFile string, timeout time.Duration) (*API, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("forge URL: it cannot be parsed; give it in the form https://host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("forge URL: it carries user information or a query; give the address alone, and the token as a file")
	}
	if err := auth.check(); err != nil {
		return nil, err
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return &API{origin: &httpOrigin{url: u, auth: auth, caFile: caFile}, timeout: timeout}, nil
}

// App is the GitHub App that the credentials are of, "" where they are a token.
func (a *API) App(ctx context.Context) (string, error) {
	found, err := a.origin.auth.read(ctx)
	return found[keyApp], err
}

// Call sends a request. during is what it is for, as in "list the pull requests".
// An answer other than success or 304 is an error, one of this package's kinds
// where it has a kind; no error holds a secret.
func (a *API) Call(ctx context.Context, during string, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	answer, err := a.call(ctx, r)
	if err != nil {
		return answer, explain(ctx, during+" at "+a.origin.url.Host, err)
	}
	return answer, nil
}

func (a *API) call(ctx context.Context, r Request) (Answer, error) {
	found, err := a.origin.auth.read(ctx)
	if err != nil {
		return Answer{}, err
	}
	if a.origin.url.Scheme == "http" && found.areSecret() {
		return Answer{}, unauthenticated("over http the token could be read on the network, so it is not sent", "use https")
	}
	conns, err := a.origin.connections(found)
	if err != nil {
		return Answer{}, err
	}
	token, err := a.origin.authorization(ctx, found, conns.own)
	if err != nil {
		return Answer{}, err
	}
	if token.password == "" {
		return Answer{}, unauthenticated("there is no token", "give one as bearerToken or password, or a GitHub App")
	}
	token.user = "" // each of them takes it as a bearer's
	secrets := slices.Concat(found.secrets(), disguises("", token.password), proxySecrets())
	req, err := a.request(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	token.add(req)
	client := &http.Client{Transport: conns.own, CheckRedirect: stay}
	res, err := client.Do(req)
	var known *failure
	if errors.As(err, &known) { // of the proxy
		return Answer{}, known
	}
	if err != nil {
		return Answer{}, unreachable(scrub(transportReason(err), secrets), "check the address, the network and the server")
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized {
		a.origin.app.drop()
	}
	return readAnswer(res, secrets)
}

func (a *API) request(ctx context.Context, r Request) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, a.origin.url.String()+r.Path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "quorate")
	req.Header.Set("Accept", "application/json")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.ETag != "" {
		req.Header.Set("If-None-Match", r.ETag)
	}
	return req, nil
}

// stay follows a redirect within the server only, such as that of a repository
// that was renamed, and never one that would lose what is sent.
func stay(req *http.Request, via []*http.Request) error {
	if len(via) > maxHops || !sameOrigin(req.URL, via[0].URL) || req.Method != via[0].Method {
		return errors.New("it redirects to where quorate does not follow")
	}
	return nil
}

func readAnswer(res *http.Response, secrets []string) (Answer, error) {
	answer := Answer{Status: res.StatusCode, Header: res.Header}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return answer, unreachable("its answer ended early ("+scrub(err.Error(), secrets)+")", "see whether it lasts")
	case len(body) > maxAnswerBytes:
		return answer, &failure{
			why:   fmt.Sprintf("its answer has more than %d bytes", maxAnswerBytes),
			next:  "check that the URL is that of the Git provider's API",
			kinds: []error{ErrTooLarge},
		}
	}
	answer.Body = body
	if res.StatusCode >= 200 && res.StatusCode <= 299 || res.StatusCode == http.StatusNotModified {
		return answer, nil
	}
	return answer, apiRefusal(answer, secrets)
}

// apiRefusal is an answer that is no success.
func apiRefusal(a Answer, secrets []string) error {
	said := strings.TrimSpace(fmt.Sprintf("the server answered %d %s", a.Status, http.StatusText(a.Status)))
	if wait, limited := limitedFor(a); limited {
		f := unreachable(fmt.Sprintf("%s: too many requests", said), fmt.Sprintf("quorate retries after %s", wait))
		f.after = wait
		return f
	}
	switch a.Status {
	case http.StatusUnauthorized:
		return unauthenticated(said, "check that the token is valid")
	case http.StatusForbidden:
		return unauthenticated(said, "give the token the right to do this")
	case http.StatusNotFound, http.StatusGone:
		return notFound(said, "check the repository's URL, and that the token may see it")
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		return &failure{why: said + wordsOf(a.Body, secrets), next: "see whether it lasts"}
	}
	f := unreachable(said, "check the server")
	f.after = retryAfter(a.Header)
	return f
}

// limitedFor reports whether the server wants to be asked less, and how long it is to
// be left alone: as long as it says, or until the time that it names by its own
// clock.
//
//	GitHub   429 or 403 with Retry-After, or X-RateLimit-Remaining: 0 and X-RateLimit-Reset
//	GitLab   429 with Retry-After, RateLimit-Reset
//	Gitea    429
func limitedFor(a Answer) (time.Duration, bool) {
	spent := a.Header.Get("X-RateLimit-Remaining") == "0" || a.Header.Get("Retry-After") != ""
	if a.Status != http.StatusTooManyRequests && (a.Status != http.StatusForbidden || !spent) {
		return 0, false
	}
	if after := retryAfter(a.Header); after > 0 {
		return after, true
	}
	for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
		at, err := strconv.ParseInt(a.Header.Get(name), 10, 64)
		now, dateErr := http.ParseTime(a.Header.Get("Date"))
		if err == nil && dateErr == nil {
			return min(max(time.Unix(at, 0).Sub(now), time.Second), time.Hour), true
		}
	}
	return limitPause, true
}

// wordsOf is the server's reason, fit to be shown, or "".
func wordsOf(body []byte, secrets []string) string {
	var said struct {
		Message any `json:"message"`
	}
	if json.Unmarshal(body, &said) != nil || said.Message == nil {
		return ""
	}
	text, err := json.Marshal(said.Message)
	if plain, is := said.Message.(string); is {
		text = []byte(plain)
	}
	if err != nil {
		return ""
	}
	return " (" + scrub(string(text), secrets) + ")"
}
