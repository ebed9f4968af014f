package sources_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
)

// dirOf is a directory like a mounted Secret.
func dirOf(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range files {
		write(tb, filepath.Join(dir, name), content)
	}
	return dir
}

func secretOf(files map[string]string) func(context.Context) (map[string][]byte, error) {
	return func(context.Context) (map[string][]byte, error) {
		data := map[string][]byte{}
		for name, content := range files {
			data[name] = []byte(content)
		}
		return data, nil
	}
}

func TestCredentialsAreNotSentInClear(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serve(t, u)
	srv.first(func(_ http.ResponseWriter, r *http.Request) bool {
		t.Errorf("a request was made: %s", r.URL)
		return false
	})
	err := refused(t, open(t, sources.Config{URL: srv.repo(), Auth: sources.Auth{PasswordFile: secretFile(t, secret)}}),
		sources.ErrAuthentication, "could be read on the network", "use https")
	wantNoSecret(t, err, "x-access-token")
}

func TestCredentialsThatCannotBeUsedAreErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		auth sources.Auth
		says string
	}{
		"no directory":      {sources.Auth{Dir: "/nonexistent"}, "directory /nonexistent"},
		"an empty file":     {sources.Auth{Dir: dirOf(t, map[string]string{"password": ""})}, "password is empty"},
		"no Secret":         {sources.Auth{Secret: func(context.Context) (map[string][]byte, error) { return nil, errors.New("read Secret a/b: not found") }}, "read Secret a/b: not found"},
		"two ways":          {sources.Auth{Secret: secretOf(map[string]string{"password": secret, "bearerToken": secret})}, "bearerToken and password"},
		"half a cert":       {sources.Auth{Secret: secretOf(map[string]string{"tls.key": secret})}, "both tls.crt and tls.key"},
		"a bad cert":        {sources.Auth{Secret: secretOf(map[string]string{"tls.key": secret, "tls.crt": "x"})}, "in PEM"},
		"a bad CA":          {sources.Auth{Secret: secretOf(map[string]string{"ca.crt": "x"})}, "ca.crt of the credentials holds no PEM"},
		"an app's ID alone": {sources.Auth{Secret: secretOf(map[string]string{"githubAppID": "1"})}, "githubAppInstallationID"},
		"an app's bad key":  {sources.Auth{Secret: secretOf(map[string]string{"githubAppID": "1", "githubAppInstallationID": "2", "githubAppPrivateKey": secret})}, "not an RSA key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, sources.Config{URL: "https://git.example.com/x", Auth: tc.auth}).Fetch(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v, want %q", err, tc.says)
			}
			wantNoSecret(t, err, "x-access-token")
		})
	}
}

// clientCert is a self-signed certificate and its key in PEM.
func clientCert(t *testing.T, name string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	key = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(cert))
	return cert, key, pool
}

func TestClientCertificateIsShownAndReloaded(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	cert, key, pool := clientCert(t, "quorate")
	other, otherKey, _ := clientCert(t, "other")
	srv := serveTLSWith(t, u, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	dir := dirOf(t, map[string]string{"ca.crt": srv.caPEM(), "tls.crt": other, "tls.key": otherKey})
	repo := open(t, sources.Config{URL: srv.repo(), Auth: sources.Auth{Dir: dir}})
	refused(t, repo, sources.ErrUnreachable)
	write(t, filepath.Join(dir, "tls.crt"), cert)
	write(t, filepath.Join(dir, "tls.key"), key)
	wantPaths(t, fetch(t, repo), "a.yaml")
	if err := os.Remove(filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	refused(t, repo, sources.ErrAuthentication, "both tls.crt and tls.key")
}

// githubApp answers for GitHub, and checks the proof as GitHub does.
func githubApp(t *testing.T, key *rsa.PublicKey, given *atomic.Int64) func(http.ResponseWriter, *http.Request) bool {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v3/app/installations/22/access_tokens" {
			want := basic("x-access-token", fmt.Sprintf("ghs_%d", given.Load()))
			if r.Header.Get("Authorization") != want {
				http.Error(w, "no", http.StatusUnauthorized)
				return true
			}
			return false
		}
		proof := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		head, signature, _ := cut(proof)
		sum := sha256.Sum256([]byte(head))
		sig, err := base64.RawURLEncoding.DecodeString(signature)
		if err != nil || rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) != nil {
			http.Error(w, "bad proof "+proof, http.StatusUnauthorized)
			return true
		}
		_, body, _ := strings.Cut(head, ".")
		claims := struct {
			Iss      string
			Iat, Exp int64
		}{}
		raw, _ := base64.RawURLEncoding.DecodeString(body)
		if json.Unmarshal(raw, &claims) != nil || claims.Iss != "11" || claims.Exp-claims.Iat > 600 {
			t.Errorf("claims %s", raw)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": "ghs_%d"}`, given.Add(1))
		return true
	}
}

// cut splits a token before its last part.
func cut(token string) (head, last string, ok bool) {
	i := strings.LastIndex(token, ".")
	if i < 0 {
		return token, "", false
	}
	return token[:i], token[i+1:], true
}

func TestGitHubAppGetsItsToken(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"PKCS#1": {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)},
		"PKCS#8": {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serveTLS(t, u)
			given := &atomic.Int64{}
			srv.first(githubApp(t, &key.PublicKey, given))
			repo := open(t, sources.Config{URL: srv.repo(), Auth: sources.Auth{Secret: secretOf(map[string]string{
				"githubAppID": "11", "githubAppInstallationID": "22", "githubAppBaseURL": srv.URL + "/api/v3",
				"githubAppPrivateKey": string(pem.EncodeToMemory(block)), "ca.crt": srv.caPEM(),
			})}})
			for range 3 {
				wantPaths(t, fetch(t, repo), "a.yaml")
			}
			if n := given.Load(); n != 1 {
				t.Errorf("three fetches took %d tokens", n)
			}
			given.Add(1) // the token is no longer good
			refused(t, repo, sources.ErrAuthentication, "401")
			wantPaths(t, fetch(t, repo), "a.yaml")
		})
	}
}
