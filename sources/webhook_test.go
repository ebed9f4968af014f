package sources_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

// hook is a webhook that counts how often it woke.
func hook(t *testing.T, secretPath string) (call func(method, body string, headers ...string) *httptest.ResponseRecorder, woken *int) {
	t.Helper()
	woken = new(int)
	h := sources.NewWebhook(secretPath, func() { *woken++ })
	return func(method, body string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/webhook", strings.NewReader(body))
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}, woken
}

func sign(key, body string) string {
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte(body))
	return hex.EncodeToString(sum.Sum(nil))
}

func TestWebhookWakesForWhoKnowsTheSecret(t *testing.T) {
	const body = `{"ref": "refs/heads/main"}`
	old := hmac.New(sha1.New, []byte(secret))
	old.Write([]byte(body))
	for name, tc := range map[string]struct {
		header, value string
		status        int
	}{
		"GitHub":             {"X-Hub-Signature-256", "sha256=" + sign(secret, body), http.StatusAccepted},
		"Bitbucket":          {"X-Hub-Signature", "sha256=" + sign(secret, body), http.StatusAccepted},
		"Gitea":              {"X-Gitea-Signature", sign(secret, body), http.StatusAccepted},
		"Forgejo":            {"X-Forgejo-Signature", sign(secret, body), http.StatusAccepted},
		"GitLab":             {"X-Gitlab-Token", secret, http.StatusAccepted},
		"other":              {"X-Signature", "sha256=" + sign(secret, body), http.StatusAccepted},
		"nothing":            {"X-Else", "", http.StatusUnauthorized},
		"an empty signature": {"X-Signature", "sha256=", http.StatusUnauthorized},
		"another key":        {"X-Hub-Signature-256", "sha256=" + sign("other", body), http.StatusUnauthorized},
		"another body":       {"X-Hub-Signature-256", "sha256=" + sign(secret, body+" "), http.StatusUnauthorized},
		"sha1":               {"X-Hub-Signature", "sha1=" + hex.EncodeToString(old.Sum(nil)), http.StatusUnauthorized},
		"another token":      {"X-Gitlab-Token", secret + "x", http.StatusUnauthorized},
		"no hex":             {"X-Gitea-Signature", "zz", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			call, woken := hook(t, secretFile(t, secret+"\n"))
			got := call(http.MethodPost, body, tc.header, tc.value)
			if got.Code != tc.status || (*woken == 1) != (tc.status == http.StatusAccepted) {
				t.Errorf("status %d, woken %d times, want %d", got.Code, *woken, tc.status)
			}
			if strings.Contains(got.Body.String(), secret) {
				t.Errorf("the answer shows the secret: %s", got.Body)
			}
		})
	}
}

// Gitea signs what a form carries, others the form.
func TestWebhookTakesAFormThatIsSignedEitherWay(t *testing.T) {
	payload := `{"ref": "refs/heads/main", "message": "a+b=%41 ` + strings.Repeat("ü", 1<<15) + `"}`
	form := url.Values{"payload": {payload}}.Encode()
	for name, tc := range map[string]struct {
		body, header, value string
		status              int
	}{
		"what it carries": {form, "X-Gitea-Signature", sign(secret, payload), http.StatusAccepted},
		"the form":        {form, "X-Hub-Signature-256", "sha256=" + sign(secret, form), http.StatusAccepted},
		"another key":     {form, "X-Gitea-Signature", sign("other", payload), http.StatusUnauthorized},
		"cut off":         {form[:len(form)-1], "X-Gitea-Signature", sign(secret, payload), http.StatusUnauthorized},
		"more":            {form + "&a=b", "X-Gitea-Signature", sign(secret, payload), http.StatusUnauthorized},
		"no escape":       {"payload=%zz", "X-Gitea-Signature", sign(secret, "%zz"), http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			call, woken := hook(t, secretFile(t, secret))
			got := call(http.MethodPost, tc.body, tc.header, tc.value, "Content-Type", "application/x-www-form-urlencoded")
			if got.Code != tc.status || (*woken == 1) != (tc.status == http.StatusAccepted) {
				t.Errorf("status %d, woken %d times, want %d", got.Code, *woken, tc.status)
			}
		})
	}
}

func TestWebhookIsBounded(t *testing.T) {
	file := secretFile(t, secret)
	call, woken := hook(t, file)
	if got := call(http.MethodGet, ""); got.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", got.Code)
	}
	long := strings.Repeat("x", 9<<20)
	if got := call(http.MethodPost, long, "X-Signature", sign(secret, long)); got.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long call: %d", got.Code)
	}
	write(t, file, "renewed")
	if got := call(http.MethodPost, "", "X-Signature", sign("renewed", "")); got.Code != http.StatusAccepted {
		t.Errorf("the secret was renewed: %d", got.Code)
	}
	write(t, file, "")
	if got := call(http.MethodPost, "", "X-Signature", sign("", "")); got.Code != http.StatusServiceUnavailable {
		t.Errorf("an empty secret: %d", got.Code)
	}
	limited := 0
	for range 100 {
		if call(http.MethodPost, "", "X-Signature", "00").Code == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited == 0 || *woken != 1 {
		t.Errorf("%d of 100 calls were turned away, woken %d times", limited, *woken)
	}
}
