package sources_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/test/needs"
)

// sshServer is a real OpenSSH server on loopback, which lets one key in.
type sshServer struct {
	address, user, dir string
	root               string
	credentials        string // a directory as Auth.Dir wants it
}

func (s *sshServer) repo() string {
	return "ssh://" + s.user + "@" + s.address + filepath.Join(s.root, "etcd.git")
}

// serveSSH starts sshd. An old one lets no variable through, so that Git speaks
// protocol 0.
func serveSSH(tb testing.TB, u *upstream, old bool) *sshServer {
	tb.Helper()
	if old {
		return serveSSHWith(tb, u, "")
	}
	return serveSSHWith(tb, u, "AcceptEnv GIT_PROTOCOL\n")
}

// setEnv is a line of sshd's configuration, of which the first one counts. Each has a home of its own: a shell reads
// the user's .bashrc at each login, which may take longer than all else, and Git the user's settings.
func setEnv(variables ...string) string {
	return "SetEnv \"" + strings.Join(variables, "\" \"") + "\"\n"
}

// serveSSHWith starts sshd with more in its configuration.
func serveSSHWith(tb testing.TB, u *upstream, config string) *sshServer {
	tb.Helper()
	sshd := needs.Program(tb, "sshd")
	me, err := user.Current()
	if err != nil {
		tb.Fatal(err)
	}
	s := &sshServer{user: me.Username, dir: tb.TempDir(), credentials: tb.TempDir(), root: u.root}
	for _, key := range []string{filepath.Join(s.dir, "host"), filepath.Join(s.credentials, "identity")} {
		s.keygen(tb, key)
	}
	move(tb, filepath.Join(s.credentials, "identity.pub"), filepath.Join(s.dir, "authorized"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.address = listener.Addr().String()
	listener.Close()
	s.knowHost(tb, "host.pub")
	s.start(tb, sshd, fmt.Sprintf(`ListenAddress %s
HostKey %s/host
AuthorizedKeysFile %s/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
LogLevel ERROR
%s%s`, s.address, s.dir, s.dir, config, setEnv("HOME="+s.dir)))
	return s
}

// keygen makes a key without a passphrase.
func (s *sshServer) keygen(tb testing.TB, path string, args ...string) {
	tb.Helper()
	args = append([]string{"-q", "-t", "ed25519", "-f", path, "-C", "test"}, args...)
	if len(args) == 7 {
		args = append(args, "-N", "")
	}
	if out, err := exec.Command(needs.Program(tb, "ssh-keygen"), args...).CombinedOutput(); err != nil {
		tb.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
}

// knowHost writes the server's key, or another one, into known_hosts.
func (s *sshServer) knowHost(tb testing.TB, key string) {
	tb.Helper()
	host, port, _ := net.SplitHostPort(s.address)
	text, err := os.ReadFile(filepath.Join(s.dir, key))
	if err != nil {
		tb.Fatal(err)
	}
	write(tb, filepath.Join(s.credentials, "known_hosts"), fmt.Sprintf("[%s]:%s %s", host, port, text))
}

func (s *sshServer) start(tb testing.TB, sshd, config string) {
	tb.Helper()
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	file := filepath.Join(s.dir, "config")
	write(tb, file, config)
	var said bytes.Buffer
	cmd := exec.Command(sshd, "-D", "-e", "-f", file)
	cmd.Stderr = &said
	cmd.Env = append(os.Environ(), gitEnv()...)
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for range 500 {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
			tb.Fatalf("sshd ended: %s", said.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	tb.Fatal("sshd does not listen")
}

func TestSSHWantsAKeyAndKnownHosts(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{"a.yaml": "a"})
	srv := serveSSH(t, u, false)
	repo := open(t, sources.Config{URL: srv.repo(), Auth: sources.Auth{Dir: srv.credentials}})
	hosts, key := filepath.Join(srv.credentials, "known_hosts"), filepath.Join(srv.credentials, "identity")
	good, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	srv.keygen(t, filepath.Join(srv.dir, "other"))
	srv.keygen(t, filepath.Join(srv.dir, "locked"), "-N", secret)

	wantPaths(t, fetch(t, repo), "a.yaml")
	srv.knowHost(t, "other.pub")
	refused(t, repo, sources.ErrAuthentication, "the server's key is not the one in known_hosts")
	write(t, hosts, "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8aUZl7V1gU4bXSr3fGbgZBKBoZiDDqUYPCNPbQ7qmK\n")
	refused(t, repo, sources.ErrAuthentication, "known_hosts has no key of "+srv.address)
	write(t, hosts, "# nothing\n")
	refused(t, repo, sources.ErrAuthentication, "known_hosts has no key of "+srv.address)
	if err := os.Remove(hosts); err != nil {
		t.Fatal(err)
	}
	refused(t, repo, sources.ErrAuthentication, "no known_hosts")

	srv.knowHost(t, "host.pub")
	copyFile(t, filepath.Join(srv.dir, "other"), key)
	refused(t, repo, sources.ErrAuthentication, "does not accept the SSH key of user "+srv.user)
	write(t, key, secret)
	wantNoSecret(t, refused(t, repo, sources.ErrAuthentication, "SSH key cannot be read"), "")
	copyFile(t, filepath.Join(srv.dir, "locked"), key)
	refused(t, repo, sources.ErrAuthentication, "has a passphrase")
	copyFile(t, filepath.Join(srv.dir, "locked.pub"), filepath.Join(srv.dir, "authorized"))
	write(t, filepath.Join(srv.credentials, "password"), "wrong")
	refused(t, repo, sources.ErrAuthentication, "its passphrase is another one")
	write(t, filepath.Join(srv.credentials, "password"), secret)
	wantPaths(t, fetch(t, repo), "a.yaml")

	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	refused(t, repo, sources.ErrAuthentication, "no SSH key")
	write(t, key, string(good))
}

func copyFile(tb testing.TB, from, to string) {
	tb.Helper()
	write(tb, to, readFile(tb, from))
}

// The deadline holds for a server that takes the connection and says nothing,
// which is where an SSH handshake hangs.
func TestHangingSSHServerIsBoundedByTheContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	srv := serveSSH(t, newUpstream(t), false)
	srv.address = listener.Addr().String()
	srv.knowHost(t, "host.pub")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	snapshot, err := open(t, sources.Config{URL: srv.repo(), Auth: sources.Auth{Dir: srv.credentials}}).Fetch(ctx)
	wantRefusal(t, snapshot, err, sources.ErrUnreachable, "no complete answer in time")
}
