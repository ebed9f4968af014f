package sources

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/time/rate"
)

// Webhook takes what a code host sends when something was pushed. It believes
// nothing from it: a sender that knows the secret may make the next poll
// start now, and that is all.
type Webhook struct {
	// Secret is read for each call, so that it may change.
	Secret func() (string, error)
	// Wake makes the next poll start now.
	Wake func()

	limit *rate.Limiter
}

const (
	// maxHookBytes bounds a call. It is summed up as it comes and kept nowhere.
	maxHookBytes = 8 * mib
	// hooksPerSecond and hookBurst bound the calls of everybody together.
	hooksPerSecond = 2
	hookBurst      = 20
)

// NewWebhook takes the secret from a file.
func NewWebhook(secretFile string, wake func()) *Webhook {
	return &Webhook{
		Secret: func() (string, error) { return readSecret("webhook secret", secretFile) },
		Wake:   wake,
		limit:  rate.NewLimiter(hooksPerSecond, hookBurst),
	}
}

// ServeHTTP implements http.Handler.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.limit.Allow() {
		http.Error(w, "too many calls", http.StatusTooManyRequests)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	secret, err := h.Secret()
	if err != nil {
		http.Error(w, "the secret cannot be read", http.StatusServiceUnavailable)
		return
	}
	whole, payload := hmac.New(sha256.New, []byte(secret)), &formPayload{sum: hmac.New(sha256.New, []byte(secret)), name: len("payload=")}
	var tooLong *http.MaxBytesError
	switch _, err := io.Copy(io.MultiWriter(whole, payload), http.MaxBytesReader(w, r.Body, maxHookBytes)); {
	case errors.As(err, &tooLong):
		http.Error(w, "too long", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "cut off", http.StatusBadRequest)
		return
	}
	if !knows(r.Header, secret, whole.Sum(nil), payload.sum.Sum(nil)) {
		http.Error(w, "not signed with the secret", http.StatusUnauthorized)
		return
	}
	h.Wake()
	w.WriteHeader(http.StatusAccepted)
}

// knows reports whether the sender knows the secret: GitLab sends the secret itself, the
// others an HMAC of the call, or where that is a form, of what it carries: Gitea signs
// before it makes a form of it. Nothing is compared byte by byte.
//
//	GitHub, Bitbucket   X-Hub-Signature-256, X-Hub-Signature: sha256=HEX
//	Gitea, Forgejo      X-Gitea-Signature, X-Forgejo-Signature: HEX
//	others              X-Signature: sha256=HEX
func knows(header http.Header, secret string, sums ...[]byte) bool {
	if token := header.Get("X-Gitlab-Token"); token != "" {
		given, wanted := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(secret))
		return subtle.ConstantTimeCompare(given[:], wanted[:]) == 1
	}
	for _, name := range []string{"X-Hub-Signature-256", "X-Hub-Signature", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Signature"} {
		given, err := hex.DecodeString(strings.TrimPrefix(header.Get(name), "sha256="))
		if err == nil && slices.ContainsFunc(sums, func(sum []byte) bool { return hmac.Equal(given, sum) }) {
			return true
		}
	}
	return false
}

// formPayload sums up what the one field of a form holds, as it comes. What is no such
// form gets a sum that no sender signs.
type formPayload struct {
	sum  hash.Hash
	name int    // bytes of the field's name that are still to come
	code []byte // an escape that has begun
}

func (p *formPayload) Write(form []byte) (int, error) {
	plain := make([]byte, 0, len(form))
	for _, b := range form {
		switch {
		case p.name > 0:
			p.name--
		case len(p.code) > 0 || b == '%':
			p.code = append(p.code, b)
			if len(p.code) == len("%20") {
				plain, _ = hex.AppendDecode(plain, p.code[1:])
				p.code = p.code[:0]
			}
		case b == '+':
			plain = append(plain, ' ')
		default:
			plain = append(plain, b)
		}
	}
	_, _ = p.sum.Write(plain) // a hash takes everything
	return len(form), nil
}
