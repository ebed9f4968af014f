package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
)

// gitea is a real Gitea that speaks https, with a certificate of a private CA.
type gitea struct {
	url, dir, caFile string
	ca               []byte
	client           *http.Client
	// admin is a token that may do everything.
	admin string
}

// giteaConfig depends on nothing but this machine: user, directory, port,
// certificate, key, static files, secret.
const giteaConfig = `RUN_USER = %[1]s
RUN_MODE = prod
WORK_PATH = %[2]s
; It serves this test alone, at loopback.
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
PROTOCOL = https
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]s
DOMAIN = 127.0.0.1
ROOT_URL = https://127.0.0.1:%[3]s/
CERT_FILE = %[4]s
KEY_FILE = %[5]s
STATIC_ROOT_PATH = %[6]s
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = %[7]s
PASSWORD_COMPLEXITY = off
[webhook]
ALLOWED_HOST_LIST = loopback
[indexer]
ISSUE_INDEXER_TYPE = db
[cron.update_checker]
ENABLED = false
[actions]
ENABLED = false
`

// startGitea starts a server that ends with the test.
func startGitea(t *testing.T) *gitea {
	t.Helper()
	binary := os.Getenv("QUORATE_GITEA")
	if binary == "" {
		t.Skip("needs Gitea: `make gitea` builds it and runs this")
	}
	dir, address, certificate := t.TempDir(), backuptest.FreeAddress(t), backuptest.NewCertificate(t)
	g := &gitea{url: "https://" + address, dir: dir, caFile: filepath.Join(dir, "ca.crt"), ca: certificate.CA, client: trusting(t, certificate.CA)}
	config := filepath.Join(dir, "app.ini")
	write(t, g.caFile, string(certificate.CA))
	t.Setenv("GIT_SSL_CAINFO", g.caFile) // for the git that pushes; quorate has its own
	write(t, config, configureGitea(t, dir, address, certificate))
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, append([]string{"--config", config}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		return cmd
	}
	output(t, command("migrate"))
	said := output(t, command("admin", "user", "create", "--username", "warden", "--admin", "--email", "warden@example.com",
		"--random-password", "--access-token"))
	_, token, _ := strings.Cut(said, "Access token was successfully created... ")
	g.admin, _, _ = strings.Cut(token, "\n")
	g.serve(t, command("web"))
	for _, name := range []string{"shop", "quorate", "mallory"} {
		g.must(t, g.admin, http.MethodPost, "/admin/users", fields{
			"username": name, "email": name + "@example.com", "password": giteaPassword, "must_change_password": false,
		}, nil)
	}
	return g
}

// giteaPassword is everybody's.
const giteaPassword = "correct-horse-battery"

// fields are an object of JSON.
type fields map[string]any

func configureGitea(t *testing.T, dir, address string, certificate backuptest.Certificate) string {
	t.Helper()
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(giteaConfig, current.Username, dir, port, certificate.CertFile, certificate.KeyFile, giteaSource(t), rand.Text())
}

// giteaSource is where Gitea's source is, which has its templates.
func giteaSource(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "code.gitea.io/gitea")
	cmd.Dir, cmd.Env = filepath.Join("..", "..", "test", "sandbox", "gitea"), append(os.Environ(), "GOWORK=off")
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(output(t, cmd)), &module); err != nil {
		t.Fatal(err)
	}
	return module.Dir
}

// serve starts the server, and waits until it answers.
func (g *gitea) serve(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("Gitea said\n%s", &log)
		}
	})
	for {
		if res, err := g.client.Get(g.url + "/api/healthz"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("Gitea ended: %v", err)
		case <-t.Context().Done():
			t.Fatal("Gitea does not answer")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// call asks the API, and returns the status and the answer. as is a token, or the
// name of a user with the password.
func (g *gitea) call(t *testing.T, as, method, path string, body any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, g.url+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "token "+as)
	if as == "shop" || as == "quorate" || as == "mallory" {
		req.SetBasicAuth(as, giteaPassword)
	}
	res, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

// must asks the API for something that it has to grant, and reads the answer.
func (g *gitea) must(t *testing.T, as, method, path string, body, into any) {
	t.Helper()
	status, answer := g.call(t, as, method, path, body)
	if status > 299 {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
}

// token is a new one of a user with these rights and no others.
func (g *gitea) token(t *testing.T, user string, scopes ...string) string {
	t.Helper()
	var made struct {
		Token string `json:"sha1"`
	}
	g.must(t, user, http.MethodPost, "/users/"+user+"/tokens", fields{"name": rand.Text(), "scopes": scopes}, &made)
	return made.Token
}

// trusting is a client that trusts a CA.
func trusting(t *testing.T, ca []byte) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// output runs a command that must succeed, and returns what it says.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var failed bytes.Buffer
	cmd.Stderr = &failed
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, said, &failed)
	}
	return string(said)
}
