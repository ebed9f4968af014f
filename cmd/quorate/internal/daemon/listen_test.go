package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// 481: what would be less protected than its flags let one believe is refused.
func TestListenersThatProtectNothingAreRefused(t *testing.T) {
	at := func(listen string, auth Auth) Endpoint { return Endpoint{Listen: listen, Auth: auth} }
	for name, c := range map[string]struct {
		l    Listeners
		want string
	}{
		"nothing":                       {Listeners{}, ""},
		"a certificate without a key":   {Listeners{Metrics: at(":8443", AuthNone), CertFile: "tls.crt"}, "belong together"},
		"a key without a certificate":   {Listeners{Metrics: at(":8443", AuthNone), KeyFile: "tls.key"}, "belong together"},
		"a certificate for nothing":     {Listeners{CertFile: "tls.crt", KeyFile: "tls.key"}, "--listen stays plain HTTP"},
		"a certificate for loopback":    {Listeners{Page: at("[::1]:8081", AuthNone), Metrics: at("localhost:8443", AuthNone), Webhook: "127.0.0.2:1", CertFile: "tls.crt", KeyFile: "tls.key"}, "beyond loopback"},
		"tokens at the health":          {Listeners{Metrics: at("", AuthToken)}, "--metrics-auth=token needs --metrics-listen"},
		"tokens of metrics in clear":    {Listeners{Metrics: at(":8443", AuthToken)}, "--metrics-auth=token would let tokens pass the network in clear"},
		"tokens of the page in clear":   {Listeners{Page: at("10.0.0.1:8081", AuthToken)}, "or an address of loopback to --page-listen"},
		"tokens by a name in clear":     {Listeners{Page: at("pod.example.com:8081", AuthToken)}, "in clear"},
		"tokens on loopback":            {Listeners{Metrics: at("127.0.0.1:8443", AuthToken), Page: at("[::1]:8081", AuthToken)}, ""},
		"tokens by TLS":                 {Listeners{Metrics: at(":8443", AuthToken), CertFile: "tls.crt", KeyFile: "tls.key"}, ""},
		"webhooks that anyone may call": {Listeners{Webhook: ":9443"}, "--webhook-secret-file"},
	} {
		if err := c.l.check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	secretless := front{kube: fake.NewClientset(), log: quiet()}
	if err := secretless.open(Listeners{Health: "127.0.0.1:0", Webhook: "127.0.0.1:0"}, nil, nil, nil); err == nil {
		t.Error("it begins to listen without a check")
	}
}

// mayScrape is an API server that knows two accounts, of which one may get /metrics.
func mayScrape() *fake.Clientset {
	kube := fake.NewClientset()
	kube.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		review.Status.Authenticated = review.Spec.Token == "prometheus" || review.Spec.Token == "other"
		review.Status.User.Username = review.Spec.Token
		return true, review, nil
	})
	kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asked := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && asked.Path == api.MetricsPath && asked.Verb == "get"
		return true, review, nil
	})
	return kube
}

// client trusts one CA, and makes a new connection for each request.
func client(t *testing.T, ca []byte, newest uint16) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: newest}}}
}

// ask returns the answer to a client with a token; code 0 for none.
func ask(t *testing.T, c *http.Client, url, token string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// 482: metrics at a port of their own answer by TLS to those whose account may get
// /metrics, and nowhere else.
func TestMetricsHaveAnAddressOfTheirOwn(t *testing.T) {
	files := backuptest.NewCertificate(t)
	f := startFront(t, Listeners{
		Metrics: Endpoint{Listen: ":8443", Auth: AuthToken}, Webhook: ":9443", WebhookSecretFile: "secret",
		Page: Endpoint{Listen: ":8444"}, CertFile: files.CertFile, KeyFile: files.KeyFile,
	}, mayScrape(), quiet())
	trusting := client(t, files.CA, 0)
	metrics := "https://" + f.at[":8443"] + "/metrics"
	for token, want := range map[string]int{"": http.StatusUnauthorized, "stale": http.StatusUnauthorized, "other": http.StatusForbidden, "prometheus": http.StatusOK} {
		code, body := ask(t, trusting, metrics, token)
		if shown := strings.Contains(body, "quorate_test 7"); code != want || shown != (want == http.StatusOK) {
			t.Errorf("the token %q is answered %d: %s", token, code, body)
		}
	}
	for url, want := range map[string]int{
		"http://" + f.at[":8080"] + "/metrics":     http.StatusNotFound,
		"http://" + f.at[":8080"] + "/healthz":     http.StatusOK,
		"https://" + f.at[":8443"] + "/healthz":    http.StatusNotFound,
		"http://" + f.at[":8443"] + "/metrics":     http.StatusBadRequest, // it speaks TLS
		"https://" + f.at[":8444"] + "/api/v1/git": http.StatusOK,
		"http://" + f.at[":8444"] + "/api/v1/git":  http.StatusBadRequest,
		"https://" + f.at[":9443"] + "/webhook":    http.StatusMethodNotAllowed,
		"http://" + f.at[":9443"] + "/webhook":     http.StatusBadRequest,
	} {
		if code, body := ask(t, trusting, url, ""); code != want {
			t.Errorf("%s is %d, want %d: %s", url, code, want, body)
		}
	}
	if code, body := ask(t, client(t, files.CA, tls.VersionTLS11), metrics, "prometheus"); code != 0 {
		t.Errorf("TLS 1.1 is answered %d: %s", code, body)
	}
}

// 483: an address of loopback is plain HTTP, with a certificate for others as well.
func TestLoopbackIsPlainHTTP(t *testing.T) {
	files := backuptest.NewCertificate(t)
	f := startFront(t, Listeners{
		Metrics: Endpoint{Listen: ":8443"}, Page: Endpoint{Listen: "127.0.0.1:8081"}, CertFile: files.CertFile, KeyFile: files.KeyFile,
	}, fake.NewClientset(), quiet())
	if code, body := f.get("127.0.0.1:8081", "/api/v1/git"); code != http.StatusOK {
		t.Errorf("%d: %s", code, body)
	}
}

// 484: a certificate that is replaced is taken up at the next connection; one that cannot
// be used leaves the one before, and is told once.
func TestACertificateIsReplacedUnderOpenListeners(t *testing.T) {
	first, second := backuptest.NewCertificate(t), backuptest.NewCertificate(t)
	var log bytes.Buffer
	f := startFront(t, Listeners{Metrics: Endpoint{Listen: ":8443"}, CertFile: first.CertFile, KeyFile: first.KeyFile},
		fake.NewClientset(), slog.New(slog.NewTextHandler(&log, nil)))
	url := "https://" + f.at[":8443"] + "/metrics"
	serves := func(when string, c backuptest.Certificate) {
		t.Helper()
		code, body := ask(t, client(t, c.CA, 0), url, "")
		if code != http.StatusOK || !strings.Contains(body, "quorate_serving_certificate_expiry_timestamp_seconds 1.") {
			t.Errorf("%s: %d %s", when, code, body)
		}
	}
	serves("at first", first)
	text := func(file string) []byte {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write := func(file string, text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(first.CertFile, text(second.CertFile))
	serves("with the key of another one", first)
	serves("the same later", first)
	if told := strings.Count(log.String(), "TLS certificate not replaced, the one before stays in use"); told != 1 {
		t.Errorf("it is told %d times:\n%s", told, log.String())
	}
	write(first.KeyFile, text(second.KeyFile))
	serves("when both are replaced", second)
	if code, _ := ask(t, client(t, first.CA, 0), url, ""); code != 0 {
		t.Error("the old certificate is still shown")
	}
	if err := os.Remove(first.CertFile); err != nil {
		t.Fatal(err)
	}
	serves("when it is gone", second)
	if told := strings.Count(log.String(), "level=ERROR"); told != 2 || strings.Contains(log.String(), "connection failed") {
		t.Errorf("%d errors, and no failed handshake, want 2:\n%s", told, log.String())
	}
}

// 484: what cannot be used at the start ends it.
func TestACertificateMustBeUsableAtTheStart(t *testing.T) {
	a, b := backuptest.NewCertificate(t), backuptest.NewCertificate(t)
	for want, files := range map[string][2]string{
		"read --tls-cert-file":                      {filepath.Join(t.TempDir(), "none"), a.KeyFile},
		"read --tls-key-file":                       {a.CertFile, filepath.Join(t.TempDir(), "none")},
		"give a certificate and its own key in PEM": {a.CertFile, b.KeyFile},
	} {
		if _, err := openCertificate(files[0], files[1], quiet()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
