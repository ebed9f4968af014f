package backuptest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quorate/quorate/test/needs"
)

// Google is a running server of Google Cloud Storage's API with the bucket
// "backups".
type Google struct {
	// Secret is the data of a Secret that reaches it: the key of a service account
	// for which a server on loopback gives out tokens.
	Secret map[string][]byte
	// Address is where it listens.
	Address string

	*Process
}

// StartGoogle starts a server that speaks TLS and ends with the test.
func StartGoogle(t *testing.T, c Certificate) *Google {
	t.Helper()
	return startGoogle(t, c, "")
}

// StartGoogleItself starts one that answers as storage.googleapis.com, and has every
// connection of this process to a host of Google's end there, or at iam for its IAM.
func StartGoogleItself(t *testing.T, c Certificate, iam string) *Google {
	t.Helper()
	g := startGoogle(t, c, "storage.googleapis.com")
	transport, was := c.Transport(t), http.DefaultTransport
	transport.TLSClientConfig.ServerName = "localhost" // as its certificate says
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch address {
		case "storage.googleapis.com:443":
			address = g.Address
		case "iamcredentials.googleapis.com:443":
			address = iam
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	http.DefaultTransport = transport
	t.Cleanup(func() { http.DefaultTransport = was })
	return g
}

// startGoogle starts a server that is public under a host, its own address by default.
func startGoogle(t *testing.T, c Certificate, public string) *Google {
	t.Helper()
	binary := needs.Server(t, "fake-gcs-server")
	g := &Google{Address: FreeAddress(t), Secret: map[string][]byte{"credentials.json": serviceAccount(t), "ca.crt": c.CA}}
	host, port, _ := net.SplitHostPort(g.Address)
	g.Process = Start(t, g.Address, nil, binary, "-backend", "filesystem", "-filesystem-root", t.TempDir(), "-scheme", "https", "-host", host, "-port", port,
		"-external-url", "https://"+g.Address, "-public-host", cmp.Or(public, g.Address), "-cert-location", c.CertFile, "-private-key-location", c.KeyFile, "-log-level", "error")
	client := http.Client{Transport: c.Transport(t)}
	resp, err := client.Post("https://"+g.Address+"/storage/v1/b?project=test", "application/json", bytes.NewReader([]byte(`{"name":"backups"}`)))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the bucket is not made: %s", resp.Status)
	}
	return g
}

// URL is the object URL of a key in the bucket.
func (g *Google) URL(key string) string {
	return "gs://backups/" + key + "?endpoint=" + "https://" + g.Address + "/storage/v1/"
}

// serviceAccount is the key file of a service account whose tokens a server of this
// test gives out.
func serviceAccount(t *testing.T) []byte {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "` + Secret + `", "token_type": "Bearer", "expires_in": 3600}`))
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "test", "private_key_id": "1", "client_email": "backups@test.iam.gserviceaccount.com", "token_uri": tokens.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return account
}
