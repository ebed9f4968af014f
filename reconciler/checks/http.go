package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/quorate/quorate/schema"
)

var (
	errHost    = errors.New("--check-hosts does not name it")
	errAddress = errors.New("quorate asks no address that only the machine itself, or its neighbours, reach")
)

// controlFor judges the address behind a name, after it was resolved and before anything is sent to
// it. Who rules over a name in DNS, or over a Service, does not choose the machines around quorate.
func controlFor(name string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return errAddress
		}
		ip := at.Addr().Unmap().WithZone("")
		literal, err := netip.ParseAddr(name)
		named := name == "localhost" || err == nil && literal == ip
		switch {
		case ip.IsLinkLocalUnicast(), ip.IsMulticast(), ip.IsUnspecified(), isMetadata(ip),
			ip.IsLoopback() && !named:
			return errAddress
		}
		return nil
	}
}

// isMetadata reports whether clouds hand out credentials at an address that is none of the link.
func isMetadata(ip netip.Addr) bool {
	return slices.Contains([]string{"fd00:ec2::254", "fd20:ce::254", "100.100.100.200"}, ip.String())
}

// request is a GET, or an error that tells no more of the URL than is known.
func request(ctx context.Context, u *url.URL) (*http.Request, error) {
	host, err := schema.CheckHost(u.Scheme, u.Host)
	if err != nil {
		return nil, err
	}
	named := u.Host
	u.Host, u.User = host, nil
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Host = named // as the author wrote it: servers tell their sites apart by that
	r.Header.Set("User-Agent", "quorate")
	return r, nil
}

// getHTTP asks for a URL, and reads no more than the status.
func (a *Asker) getHTTP(ctx context.Context, c schema.HTTPCheck, patience time.Duration) (problem, detail string) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "its URL cannot be read", ""
	}
	shown := shownURL(u)
	response, problem, detail := a.do(ctx, u, shown, patience)
	if problem != "" {
		return problem, detail
	}
	defer response.Body.Close()
	if want := int(cmp.Or(c.Status, schema.DefaultCheckStatus)); response.StatusCode != want {
		return badStatus(response, shown), ""
	}
	return "", ""
}

// do sends a request. What goes wrong is told without the URL's query.
func (a *Asker) do(ctx context.Context, u *url.URL, shown string, patience time.Duration) (response *http.Response, problem, detail string) {
	r, err := request(ctx, u)
	if err == nil {
		response, err = a.client.Do(r)
	}
	switch {
	case err == nil:
		return response, "", ""
	case errors.Is(err, errHost), errors.Is(err, errAddress):
		return nil, shown + " may not be asked", cause(err)
	}
	problem, detail = unreached(ctx, err, shown, patience)
	return nil, problem, detail
}

// unreached says why there is no answer, or not all of it.
func unreached(ctx context.Context, err error, shown string, patience time.Duration) (problem, detail string) {
	var network net.Error
	if ctx.Err() != nil || errors.As(err, &network) && network.Timeout() {
		return fmt.Sprintf("no answer from %s within %s", shown, patience), ""
	}
	return shown + " cannot be reached", cause(err)
}

// cause is an error without the request, which has the whole URL.
func cause(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// badStatus is an answer with a status that is not wanted.
func badStatus(r *http.Response, shown string) string {
	if r.StatusCode >= 300 && r.StatusCode < 400 {
		return fmt.Sprintf("HTTP %d from %s, and quorate follows no redirect", r.StatusCode, shown)
	}
	return fmt.Sprintf("HTTP %d from %s", r.StatusCode, shown)
}

// shownURL is a URL without what may be a secret.
func shownURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return shown.String()
}
