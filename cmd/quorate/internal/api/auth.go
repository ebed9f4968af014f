package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The non-resource URLs that an account must be allowed to get, and the ClusterRoles of
// deploy/base that allow it.
const (
	// ReadPath is that of the page and the API. It is none of Kubernetes' own: every account
	// of a cluster may get /api/v1.
	ReadPath = "/quorate"
	// ReadRole allows ReadPath.
	ReadRole = "quorate-viewer"
	// MetricsPath is what components of Kubernetes ask for as well, so that a Prometheus
	// that may scrape them may scrape quorate.
	MetricsPath = "/metrics"
	// MetricsRole allows MetricsPath.
	MetricsRole = "quorate-metrics-reader"
)

const (
	// verdictAge is how long an answer of the API server is kept, and maxVerdicts how
	// many.
	verdictAge, maxVerdicts = time.Minute, 1000
	// reviewTime is how long the API server may take.
	reviewTime = 10 * time.Second
	// maxToken bounds a token, in bytes.
	maxToken = 16 << 10
	// reviewRate and reviewBurst bound what the API server is asked in a second, and at
	// once: a client that guesses tokens must not starve the reconciler's own requests.
	reviewRate, reviewBurst = 2, 10
)

// The answers to a request that is not let in.
var (
	errNoToken  = errors.New("give a token of Kubernetes, as a bearer token or as the password of any user name: kubectl create token NAME makes one")
	errBadToken = errors.New("the token is unknown to Kubernetes, or has expired: kubectl create token NAME makes another")
	errBusy     = errors.New("too many tokens are asked for at once; try again later")
)

// Guard lets in who has a token of Kubernetes whose account may get a path. It asks the
// API server by a TokenReview and a SubjectAccessReview, and fails closed.
type Guard struct {
	kube kubernetes.Interface
	path string
	next http.Handler
	ask  *rate.Limiter
	// forbidden is what an account is told that may not get the path.
	forbidden error

	mu       sync.Mutex
	verdicts map[[sha256.Size]byte]verdict
}

// verdict is what the API server has said of a token.
type verdict struct {
	err   error
	until time.Time
}

// NewGuard guards next: who may get the path is let in, as the ClusterRole allows.
func NewGuard(kube kubernetes.Interface, path, role string, next http.Handler) *Guard {
	return &Guard{
		kube: kube, path: path, next: next, ask: rate.NewLimiter(reviewRate, reviewBurst), verdicts: map[[sha256.Size]byte]verdict{},
		forbidden: fmt.Errorf("the token's account may not get %s: bind the ClusterRole %s to it", path, role),
	}
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := g.admit(r)
	switch {
	case err == nil:
		g.next.ServeHTTP(w, r)
	case errors.Is(err, errNoToken), errors.Is(err, errBadToken):
		// A browser asks for the password itself, and sends it for events as well.
		w.Header().Set("WWW-Authenticate", `Basic realm="quorate", charset="UTF-8"`)
		WriteError(w, http.StatusUnauthorized, err)
	case errors.Is(err, g.forbidden):
		WriteError(w, http.StatusForbidden, err)
	default:
		WriteError(w, http.StatusServiceUnavailable, err)
	}
}

// admit returns why a request is not let in.
func (g *Guard) admit(r *http.Request) error {
	token := tokenOf(r)
	if token == "" || len(token) > maxToken {
		return errNoToken
	}
	key := sha256.Sum256([]byte(token))
	kept, there := g.kept(key)
	if there && time.Now().Before(kept.until) {
		return kept.err
	}
	wasIn := there && kept.err == nil
	if !wasIn && !g.ask.Allow() { // who was let in before does not wait behind those who guess tokens
		return errBusy
	}
	err := g.review(r.Context(), token)
	if err == nil || errors.Is(err, errBadToken) || errors.Is(err, g.forbidden) {
		g.keep(key, err)
	}
	return err
}

// tokenOf is the bearer token of a request, or its password.
func tokenOf(r *http.Request) string {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	_, password, _ := r.BasicAuth()
	return strings.TrimSpace(password)
}

func (g *Guard) kept(key [sha256.Size]byte) (v verdict, there bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, there = g.verdicts[key]
	return v, there
}

func (g *Guard) keep(key [sha256.Size]byte, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.verdicts) >= maxVerdicts {
		maps.DeleteFunc(g.verdicts, func(_ [sha256.Size]byte, v verdict) bool { return v.err != nil })
	}
	if len(g.verdicts) >= maxVerdicts {
		clear(g.verdicts)
	}
	g.verdicts[key] = verdict{err, time.Now().Add(verdictAge)}
}

// review asks the API server whose token it is, and what the account may do.
func (g *Guard) review(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	who, err := g.kube.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask Kubernetes for the account of a token: %w; let quorate create tokenreviews", err)
	}
	if !who.Status.Authenticated {
		return errBadToken
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range who.Status.User.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may, err := g.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who.Status.User.Username, UID: who.Status.User.UID, Groups: who.Status.User.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: g.path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("ask Kubernetes what an account may do: %w; let quorate create subjectaccessreviews", err)
	case !may.Status.Allowed:
		return g.forbidden
	}
	return nil
}
