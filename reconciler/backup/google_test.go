package backup

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// 606: the daemon's own identity at Google may come, or change, while quorate runs: it is
// looked for each time. One with a key signs URLs with that, and one of a federation by
// Google's IAM, as the account that it stands for.
func TestTheIdentityAtGoogleMayComeLater(t *testing.T) {
	certificate := backuptest.NewCertificate(t)
	signed := make(chan string, 1)
	iam := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed <- r.Header.Get("Authorization") + " " + r.URL.Path
		_, _ = io.WriteString(w, `{"keyId": "1", "signedBlob": "c2lnbmVk"}`)
	}))
	pair, err := tls.LoadX509KeyPair(certificate.CertFile, certificate.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	iam.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	iam.StartTLS()
	defer iam.Close()
	g := backuptest.StartGoogleItself(t, certificate, iam.Listener.Addr().String())

	identity := filepath.Join(t.TempDir(), "identity.json")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", identity)
	const object = "gs://backups/k.db"
	save := func() error {
		_, err := Store{Drivers: drivers}.Save(t.Context(), object, bytes.NewReader(backuptest.Snapshot(1<<20)), Manifest{})
		return err
	}
	backuptest.WantError(t, save(), "no credentials for the store were found")
	become := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(identity, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	become(g.Secret["credentials.json"])
	if err := save(); err != nil {
		t.Fatal(err)
	}
	if _, err := (Store{Drivers: drivers}).Verify(t.Context(), object); err != nil {
		t.Error(err)
	}
	wantSignedAs(t, object, "backups@test.iam.gserviceaccount.com")

	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{"access_token": "federated", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": 3600}
		if strings.HasSuffix(r.URL.Path, ":generateAccessToken") {
			answer = map[string]any{"accessToken": "impersonated", "expireTime": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer tokens.Close()
	subject := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(subject, []byte("of the pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	federated, err := json.Marshal(map[string]any{
		"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": tokens.URL, "credential_source": map[string]string{"file": subject},
		"service_account_impersonation_url": tokens.URL + "/v1/projects/-/serviceAccounts/etcd@test.iam.gserviceaccount.com:generateAccessToken",
	})
	if err != nil {
		t.Fatal(err)
	}
	become(federated)
	wantSignedAs(t, object, "etcd@test.iam.gserviceaccount.com")
	select {
	case got := <-signed:
		if got != "Bearer impersonated /v1/projects/-/serviceAccounts/etcd@test.iam.gserviceaccount.com:signBlob" {
			t.Error(got)
		}
	default:
		t.Error("IAM was not asked to sign")
	}
}

// wantSignedAs wants the URL of an object to be signed as an account.
func wantSignedAs(t *testing.T, objectURL, account string) {
	t.Helper()
	text, err := Store{Drivers: drivers}.Sign(t.Context(), objectURL, time.Hour)
	if err != nil {
		t.Error(err)
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Host != "storage.googleapis.com" || u.Query().Get("GoogleAccessId") != account || u.Query().Get("Signature") == "" {
		t.Errorf("%s, %v: it is not signed as %s", text, err, account)
	}
}
