package checks_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/checks"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// server is a real one that counts its requests.
type server struct {
	*httptest.Server
	asked atomic.Int32
}

// serve starts one.
func serve(t *testing.T, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// host is the one to allow.
func (s *server) host(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// clock is one that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// httpCheck is a check of a URL, with time enough on a busy machine.
func httpCheck(u string) schema.UpgradeCheck {
	return schema.UpgradeCheck{Name: "smoke", HTTP: &schema.HTTPCheck{URL: u}, Timeout: &metav1.Duration{Duration: 30 * time.Second}}
}

// hasty gives a check half a second, where no answer comes.
func hasty(c schema.UpgradeCheck) schema.UpgradeCheck {
	c.Timeout = &metav1.Duration{Duration: 500 * time.Millisecond}
	return c
}

// subject is a cluster with checks.
func subject(name string, all ...schema.UpgradeCheck) checks.Subject {
	s := checks.Subject{Key: "shop/" + name}
	s.Spec.Version, s.Spec.Upgrade.Checks = "3.6.16", all
	return s
}

// untilNo asks until a check says no.
func untilNo(all []state.Check) bool {
	for _, c := range all {
		if c.Problem != "" {
			return true
		}
	}
	return false
}

// ask asks one check once.
func ask(t *testing.T, check schema.UpgradeCheck, hosts ...string) state.Check {
	t.Helper()
	all := checks.New(hosts, nil, time.Now).Ask(t.Context(), []checks.Subject{subject("orders", check)}, untilNo)
	if len(all) != 1 || all[0].Name != check.Name || all[0].Cluster != "shop/orders" || all[0].Since.IsZero() {
		t.Fatalf("answers %+v", all)
	}
	return all[0]
}

// A check by HTTP holds by its status alone, and whatever else comes of it is told and does not hold.
func TestACheckByHTTPHoldsByItsStatus(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			fmt.Fprint(w, "fine")
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/slow":
			<-r.Context().Done()
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/heavy":
			w.Header().Set("X", strings.Repeat("a", 100<<10))
		case "/endless":
			for r.Context().Err() == nil {
				fmt.Fprint(w, strings.Repeat("a", 1<<10))
			}
		default:
			http.Error(w, "secret of the body", http.StatusServiceUnavailable)
		}
	})
	wants := func(path string, status int32) schema.UpgradeCheck {
		c := httpCheck(s.URL + path)
		c.HTTP.Status = status
		return c
	}
	for name, c := range map[string]struct {
		check schema.UpgradeCheck
		want  string
	}{
		"200":                       {wants("/ok", 0), ""},
		"200 where it is written":   {wants("/ok?token=s3cret", 200), ""},
		"another status":            {wants("/empty", 204), ""},
		"200 where 204 is wanted":   {wants("/ok", 204), "HTTP 200 from URL/ok"},
		"204 where 200 is wanted":   {wants("/empty", 0), "HTTP 204 from URL/empty"},
		"an error":                  {wants("/no?token=s3cret", 0), "HTTP 503 from URL/no"},
		"an error that is wanted":   {wants("/no", 503), ""},
		"a redirect":                {wants("/moved", 0), "HTTP 302 from URL/moved, and quorate follows no redirect"},
		"a redirect that is wanted": {wants("/moved", 302), ""},
		"no answer in time":         {hasty(wants("/slow?token=s3cret", 0)), "no answer from URL/slow within 500ms"},
		"a connection that is cut":  {wants("/cut?token=s3cret", 0), "URL/cut cannot be reached"},
		"headers without an end":    {wants("/heavy", 0), "URL/heavy cannot be reached"},
		"a body without an end":     {wants("/endless", 0), ""},
	} {
		got := ask(t, c.check, s.host(t))
		if want := strings.ReplaceAll(c.want, "URL", s.URL); got.Problem != want {
			t.Errorf("%s: %q, want %q", name, got.Problem, want)
		}
		if told := got.Problem + got.Detail; strings.Contains(told, "s3cret") || strings.Contains(told, "secret of the body") {
			t.Errorf("%s: it tells %s", name, told)
		}
	}
}

// What cannot be reached does not hold, and the error is told apart, as it may differ each time.
func TestAServerThatIsGoneDoesNotHold(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	s.Close()
	got := ask(t, httpCheck(s.URL+"/healthz?token=s3cret"), s.host(t))
	if got.Problem != s.URL+"/healthz cannot be reached" || !strings.Contains(got.Detail, "connection refused") || strings.Contains(got.Detail, "s3cret") {
		t.Errorf("%q, %q", got.Problem, got.Detail)
	}
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	if got := ask(t, httpCheck(tls.URL), strings.TrimPrefix(tls.URL, "https://")); !strings.Contains(got.Problem, "cannot be reached") || !strings.Contains(got.Detail, "certificate") {
		t.Errorf("a certificate that nobody trusts: %q, %q", got.Problem, got.Detail)
	}
}

// A request has nothing of quorate's own, and the server sees the name that the file has.
func TestARequestSendsNoCredentials(t *testing.T) {
	var got *http.Request
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
	})
	_, port, err := net.SplitHostPort(s.host(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if c := ask(t, httpCheck("http://LOCALHOST.:"+port+"/a%2Fb?c=d"), "localhost:"+port); c.Problem != "" {
			t.Fatalf("%s, %s", c.Problem, c.Detail)
		}
	}
	if got.Method != http.MethodGet || got.RequestURI != "/a%2Fb?c=d" || got.Host != "LOCALHOST.:"+port || got.ContentLength != 0 {
		t.Errorf("%s %s of %s, %d bytes", got.Method, got.RequestURI, got.Host, got.ContentLength)
	}
	for name := range got.Header {
		if name != "User-Agent" && name != "Connection" {
			t.Errorf("it sends %s", name)
		}
	}
}

// No host is asked that was not allowed, whatever a file or a redirect says.
func TestNoOtherHostIsAsked(t *testing.T) {
	other := serve(t, func(http.ResponseWriter, *http.Request) {})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	for name, c := range map[string]struct {
		check schema.UpgradeCheck
		hosts []string
		want  string
	}{
		"none is allowed":      {httpCheck(other.URL + "/?token=s3cret"), nil, other.URL + "/ may not be asked"},
		"another is":           {httpCheck(other.URL), []string{s.host(t)}, other.URL + " may not be asked"},
		"a query of another":   {schema.UpgradeCheck{Name: "smoke", Prometheus: &schema.PrometheusCheck{URL: other.URL, Query: "up"}}, []string{s.host(t)}, other.URL + " may not be asked"},
		"redirected":           {httpCheck(s.URL), []string{s.host(t), other.host(t)}, "HTTP 307 from " + s.URL + ", and quorate follows no redirect"},
		"a query redirected":   {schema.UpgradeCheck{Name: "smoke", Prometheus: &schema.PrometheusCheck{URL: s.URL, Query: "up"}}, []string{s.host(t), other.host(t)}, "HTTP 307 from " + s.URL + ", and quorate follows no redirect"},
		"the cloud's metadata": {httpCheck("http://169.254.169.254/latest"), []string{"169.254.169.254:80"}, "http://169.254.169.254/latest may not be asked"},
		"of nothing":           {schema.UpgradeCheck{Name: "smoke"}, nil, "it asks nothing that this quorate knows"},
	} {
		if got := ask(t, c.check, c.hosts...); got.Problem != c.want {
			t.Errorf("%s: %q, want %q", name, got.Problem, c.want)
		}
	}
	if n := other.asked.Load(); n != 0 {
		t.Errorf("the other one was asked %d times", n)
	}
}

// Many clusters that wait ask a server no more often than one.
func TestOneAnswerIsForAllThatWait(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	c := newClock()
	a := checks.New([]string{s.host(t)}, nil, c.now)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := a.Ask(t.Context(), []checks.Subject{subject("orders", httpCheck(s.URL))}, untilNo); len(got) != 1 || got[0].Problem != "" {
				t.Errorf("answers %+v", got)
			}
		})
	}
	all.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	for _, step := range []struct {
		wait time.Duration
		want int32
	}{{10*time.Second - 1, 1}, {1, 2}, {-time.Hour, 3}} { // the last one by a clock that was set back
		c.pass(step.wait)
		a.Ask(t.Context(), []checks.Subject{subject("orders", httpCheck(s.URL))}, untilNo)
		if n := s.asked.Load(); n != step.want {
			t.Errorf("after %s: asked %d times, want %d", step.wait, n, step.want)
		}
	}
}

// Since is the first of the answers in a row that say the same: another answer, another spec, a time
// in which nothing was asked and a process that has forgotten begin anew.
func TestSinceWhenACheckHolds(t *testing.T) {
	var status atomic.Int32
	status.Store(http.StatusOK)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
	c := newClock()
	begun := c.now()
	a := checks.New([]string{s.host(t)}, nil, c.now)
	check := httpCheck(s.URL)
	check.For = &metav1.Duration{Duration: time.Minute}
	subject := subject("orders", check)
	for n, step := range []struct {
		what   string
		wait   time.Duration
		change func()
		since  time.Duration
	}{
		{"the first answer", 0, nil, 0},
		{"another", time.Minute, nil, 0},
		{"one just before it lapses", 2*time.Minute - 1, nil, 0},
		{"one that comes too late", 2 * time.Minute, nil, 5*time.Minute - 1},
		{"it no longer holds", 20 * time.Second, func() { status.Store(503) }, 5*time.Minute + 20*time.Second - 1},
		{"nor for another reason", 20 * time.Second, func() { status.Store(500) }, 5*time.Minute + 20*time.Second - 1},
		{"it holds again", 20 * time.Second, func() { status.Store(200) }, 6*time.Minute - 1},
		{"it still does", 20 * time.Second, nil, 6*time.Minute - 1},
		{"another commit", 0, func() { subject.Spec.Replicas++ }, 6*time.Minute + 20*time.Second - 1},
		{"forgotten", time.Second, func() { a.Forget("shop/orders") }, 6*time.Minute + 21*time.Second - 1},
		{"the clock is set back", -time.Hour, nil, -54*time.Minute + 21*time.Second - 1},
	} {
		if c.pass(step.wait); step.change != nil {
			step.change()
		}
		got := a.Ask(t.Context(), []checks.Subject{subject}, untilNo)
		if len(got) != 1 || !got[0].Since.Equal(begun.Add(step.since)) || got[0].For != time.Minute {
			t.Errorf("%d, %s: since %s, want %s, %+v", n, step.what, got[0].Since.Sub(begun), step.since, got)
		}
	}
}

// While a cluster is found whose check does not hold, no more are asked; and each answer is told.
func TestNoMoreIsAskedThanNeeded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/c3" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	var some []checks.Subject
	for i := range 20 {
		some = append(some, subject(fmt.Sprintf("c%d", i), httpCheck(fmt.Sprintf("%s/c%d", s.URL, i))))
	}
	c := newClock()
	a := checks.New([]string{s.host(t)}, nil, c.now)
	if got := a.Ask(t.Context(), some, untilNo); len(got) != 8 || got[3].Problem == "" || got[3].Cluster != "shop/c3" || got[4].Problem != "" || s.asked.Load() != 8 {
		t.Errorf("%d asked: %+v", s.asked.Load(), got)
	}
	some = append(some[:3:3], some[4:]...)
	if got := a.Ask(t.Context(), some, untilNo); len(got) != 19 || untilNo(got) || s.asked.Load() != 20 {
		t.Errorf("%d asked: %+v", s.asked.Load(), got)
	}
}

// Where nothing is asked, nothing holds.
func TestWhatIsNotAskedHasNoTime(t *testing.T) {
	check := httpCheck("http://a")
	check.For = &metav1.Duration{Duration: time.Minute}
	got := checks.Unasked([]checks.Subject{subject("orders", check, httpCheck("http://b"))})
	if want := (state.Check{Cluster: "shop/orders", Name: "smoke", For: time.Minute}); len(got) != 2 || got[0] != want || !got[1].Since.IsZero() {
		t.Errorf("%+v", got)
	}
}

// A daemon that ends is not kept by a server that hangs.
func TestAskingEndsWithItsContext(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check := httpCheck(s.URL)
	check.Timeout = &metav1.Duration{Duration: time.Hour}
	if got := checks.New([]string{s.host(t)}, nil, time.Now).Ask(ctx, []checks.Subject{subject("orders", check)}, untilNo); len(got) != 1 || got[0].Problem == "" {
		t.Errorf("%+v", got)
	}
}
