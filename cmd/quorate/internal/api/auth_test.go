package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// guarded is a handler behind a guard, with an API server that knows three tokens, two of
// accounts that may get something.
type guarded struct {
	*Guard
	kube *fake.Clientset
	away bool
}

func newGuarded() *guarded { return newGuardedAt(ReadPath, ReadRole) }

// newGuardedAt guards for those who may get a path.
func newGuardedAt(asked, role string) *guarded {
	g := &guarded{kube: fake.NewClientset()}
	g.kube.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		if g.away {
			return true, nil, errors.New("the API server is away")
		}
		review.Status.Authenticated = slices.Contains([]string{"viewer", "other", "prometheus"}, review.Spec.Token)
		review.Status.User.Username = review.Spec.Token
		return true, review, nil
	})
	g.kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		path := review.Spec.NonResourceAttributes
		may := map[string]string{"viewer": ReadPath, "prometheus": MetricsPath}
		review.Status.Allowed = may[review.Spec.User] == path.Path && path.Verb == "get"
		return true, review, nil
	})
	g.Guard = NewGuard(g.kube, asked, role, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	return g
}

// ask makes one request with credentials.
func (g *guarded) ask(ctx context.Context, authorize func(r *http.Request)) *httptest.ResponseRecorder {
	r, to := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), httptest.NewRecorder()
	authorize(r)
	g.ServeHTTP(to, r)
	return to
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func password(token string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("anyone", token) }
}

// 223: with --page-auth=token nobody is let in but who has a token whose account may read.
func TestOnlyWhoMayReadIsLetIn(t *testing.T) {
	g := newGuarded()
	for name, c := range map[string]struct {
		authorize func(*http.Request)
		want      int
	}{
		"nothing":           {func(*http.Request) {}, http.StatusUnauthorized},
		"an empty token":    {bearer(""), http.StatusUnauthorized},
		"an unknown token":  {bearer("stale"), http.StatusUnauthorized},
		"a huge token":      {bearer(strings.Repeat("viewer", maxToken)), http.StatusUnauthorized},
		"another account":   {bearer("other"), http.StatusForbidden},
		"a viewer":          {bearer("viewer"), http.StatusTeapot},
		"a viewer, again":   {bearer("viewer"), http.StatusTeapot},
		"a viewer, browser": {password("viewer"), http.StatusTeapot},
		"another, browser":  {password("other"), http.StatusForbidden},
	} {
		got := g.ask(t.Context(), c.authorize)
		if got.Code != c.want || (got.Code == http.StatusUnauthorized) != (got.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
		if body := got.Body.String(); strings.Contains(body, "viewerviewer") || strings.Contains(body, "stale") {
			t.Errorf("%s: the answer has the token: %s", name, body)
		}
	}
}

// 223: an API server that is away lets nobody in, is asked seldom, and is asked again
// when what it said is a minute old.
func TestTheGuardFailsClosedAndAsksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		for range 100 {
			g.ask(t.Context(), bearer("viewer"))
		}
		if n := len(g.kube.Actions()); n != 2 {
			t.Errorf("one account was asked for by %d calls", n)
		}
		g.away = true
		if got := g.ask(t.Context(), bearer("viewer")); got.Code != http.StatusTeapot {
			t.Errorf("within a minute: %d", got.Code)
		}
		time.Sleep(verdictAge)
		if got := g.ask(t.Context(), bearer("viewer")); got.Code != http.StatusServiceUnavailable {
			t.Errorf("after a minute: %d %s", got.Code, got.Body)
		}
		g.away = false
		g.kube.ClearActions()
		busy := 0
		for i := range 500 {
			if got := g.ask(t.Context(), bearer(strings.Repeat("x", i+1))); got.Code == http.StatusServiceUnavailable {
				busy++
			}
		}
		if n := len(g.kube.Actions()); n > reviewBurst || busy < 480 {
			t.Errorf("500 unknown tokens were asked for by %d calls, %d were sent away", n, busy)
		}
	})
}

// 480: each path has its own readers, and who is turned away is told which role to bind.
func TestEachPathHasItsOwnReaders(t *testing.T) {
	for _, c := range []struct {
		path, role, token string
		want              int
	}{
		{ReadPath, ReadRole, "viewer", http.StatusTeapot},
		{ReadPath, ReadRole, "prometheus", http.StatusForbidden},
		{MetricsPath, MetricsRole, "prometheus", http.StatusTeapot},
		{MetricsPath, MetricsRole, "viewer", http.StatusForbidden},
	} {
		got := newGuardedAt(c.path, c.role).ask(t.Context(), bearer(c.token))
		if says := strings.Contains(got.Body.String(), "may not get "+c.path+": bind the ClusterRole "+c.role); got.Code != c.want || says != (c.want == http.StatusForbidden) {
			t.Errorf("%s reads %s: %d %s", c.token, c.path, got.Code, got.Body)
		}
	}
}

// 480: guessing tokens keeps no one from reading who has read before, however
// many verdicts are kept meanwhile.
func TestWhoWasLetInDoesNotWaitBehindGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded()
		if got := g.ask(t.Context(), bearer("viewer")); got.Code != http.StatusTeapot {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		for i := range maxVerdicts {
			g.ask(t.Context(), bearer("guess-"+strconv.Itoa(i)))
			time.Sleep(time.Second / reviewRate) // so that each is reviewed, and kept
		}
		if n := len(g.verdicts); n > maxVerdicts {
			t.Errorf("%d verdicts are kept", n)
		}
		for i := range 100 {
			g.ask(t.Context(), bearer("more-"+strconv.Itoa(i)))
		}
		if got := g.ask(t.Context(), bearer("other")); got.Code != http.StatusServiceUnavailable {
			t.Errorf("a token that was never seen has its turn: %d", got.Code)
		}
		if got := g.ask(t.Context(), bearer("viewer")); got.Code != http.StatusTeapot {
			t.Errorf("who was let in is sent away: %d %s", got.Code, got.Body)
		}
	})
}
