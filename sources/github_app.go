package sources

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// appToken is the token of a GitHub App's installation, which GitHub gives for an
// hour. It is kept until shortly before its end.
type appToken struct {
	mu    sync.Mutex
	of    string // what it was asked for with
	token string
	until time.Time
}

// tokenMargin is how long before its end a token is not used any more.
const tokenMargin = 5 * time.Minute

func (a *appToken) get(ctx context.Context, found credentials, conns http.RoundTripper) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := strings.Join([]string{found[keyApp], found[keyInstallation], found[keyAppKey], found[keyAppURL]}, "\n")
	now := time.Now()
	if a.of == of && now.Before(a.until) {
		return a.token, nil
	}
	token, err := askGitHub(ctx, found, conns, now)
	if err != nil {
		return "", err
	}
	// By this machine's clock, whatever GitHub's says.
	a.of, a.token, a.until = of, token, now.Add(time.Hour-tokenMargin)
	return token, nil
}

// drop forgets a token that was refused.
func (a *appToken) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token, a.until = "", time.Time{}
}

func askGitHub(ctx context.Context, found credentials, conns http.RoundTripper, now time.Time) (string, error) {
	proof, err := appProof(found, now)
	if err != nil {
		return "", err
	}
	base := cmp.Or(found[keyAppURL], "https://api.github.com")
	if u, err := url.Parse(base); err != nil || u.Scheme != "https" || u.User != nil {
		return "", unauthenticated("githubAppBaseURL is not an https URL", "give one such as https://github.example.com/api/v3")
	}
	address := fmt.Sprintf("%s/app/installations/%s/access_tokens", strings.TrimRight(base, "/"), url.PathEscape(found[keyInstallation]))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(nil))
	if err != nil {
		return "", unauthenticated("githubAppBaseURL is not an https URL", "give one such as https://github.example.com/api/v3")
	}
	req.Header.Set("Authorization", "Bearer "+proof)
	req.Header.Set("Accept", "application/vnd.github+json")
	res, err := conns.RoundTrip(req)
	if err != nil {
		return "", unreachable("GitHub gives no token for the app: "+scrub(transportReason(err), append(proxySecrets(), proof)), "check the network")
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		return "", unauthenticated(fmt.Sprintf("GitHub gives no token for the app: it answered %d", res.StatusCode),
			"check the app's ID, installation and key, and this machine's clock")
	}
	var answer struct {
		Token string `json:"token"`
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxSecretBytes)).Decode(&answer)
	if err != nil || answer.Token == "" {
		return "", unauthenticated("GitHub's answer for the app holds no token", "see whether it lasts")
	}
	return answer.Token, nil
}

// appProof is a JSON Web Token by which the app shows that it has its key. It
// begins a minute ago, for clocks that differ.
func appProof(found credentials, now time.Time) (string, error) {
	key, err := rsaKey(found[keyAppKey])
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": found[keyApp], "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix(),
	})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", unauthenticated("githubAppPrivateKey cannot sign", "give the key that GitHub made for the app")
	}
	return text + "." + encode(signature), nil
}

func rsaKey(text string) (*rsa.PrivateKey, error) {
	bad := unauthenticated("githubAppPrivateKey is not an RSA key in PEM", "give the key that GitHub made for the app")
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, bad
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	other, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, is := other.(*rsa.PrivateKey); err == nil && is {
		return key, nil
	}
	return nil, bad
}
