package checks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
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

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 1 << 20

// result is what /api/v1/query answers.
type result struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Warnings  []string `json:"warnings"`
	Data      struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
}

// query asks a Prometheus.
func (a *Asker) query(ctx context.Context, c schema.PrometheusCheck, patience time.Duration) (problem, detail string) {
	base, err := url.Parse(c.URL)
	if err != nil {
		return "its URL cannot be read", ""
	}
	shown, u := shownURL(base), base.JoinPath("api", "v1", "query")
	u.RawQuery = url.Values{"query": {c.Query}, "timeout": {patience.String()}}.Encode()
	response, problem, detail := a.do(ctx, u, shown, patience)
	if problem != "" {
		return problem, detail
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return unreached(ctx, err, shown, patience)
	}
	if len(text) > maxAnswer {
		return "the answer of " + shown + " has more than 1 MiB: aggregate in the query", ""
	}
	var r result
	err = json.Unmarshal(text, &r)
	switch {
	case response.StatusCode != http.StatusOK && slices.Contains([]string{"bad_data", "execution", "timeout", "canceled", "internal", "unavailable"}, r.ErrorType):
		return fmt.Sprintf("%s (%s)", badStatus(response, shown), r.ErrorType), ""
	case response.StatusCode != http.StatusOK:
		return badStatus(response, shown), ""
	case err != nil || r.Status != "success":
		return "the answer of " + shown + " is not that of a Prometheus", ""
	case len(r.Warnings) > 0:
		return "the answer of " + shown + " has warnings, and may be incomplete", ""
	}
	return judge(r, shown)
}

// judge says why the result of a query is not 1.
func judge(r result, shown string) (problem, detail string) {
	strange := fmt.Sprintf("the query of %s must return a scalar or an instant vector", shown)
	var values [][2]any
	switch r.Data.Type {
	case "scalar":
		values = make([][2]any, 1)
		if json.Unmarshal(r.Data.Result, &values[0]) != nil {
			return strange, ""
		}
	case "vector":
		var series []struct {
			Value [2]any `json:"value"` // none of a histogram
		}
		if json.Unmarshal(r.Data.Result, &series) != nil {
			return strange, ""
		}
		for _, s := range series {
			values = append(values, s.Value)
		}
	default:
		return strange, ""
	}
	if len(values) == 0 {
		return "the query of " + shown + " has no result", ""
	}
	for _, v := range values {
		text, _ := v[1].(string)
		switch number, err := strconv.ParseFloat(text, 64); {
		case err != nil:
			return strange, "one of " + strconv.Itoa(len(values)) + " series is no number"
		case number != 1:
			return "the query of " + shown + " is not 1", fmt.Sprintf("one of %d values is %s", len(values), strconv.FormatFloat(number, 'g', 6, 64))
		}
	}
	return "", ""
}
