// Package etcdtest runs real etcd members on loopback, for the tests of whoever talks
// to them.
package etcdtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Member is one running member.
type Member struct {
	// Name of the member, Host that its certificate carries, Address of its client
	// listener, and Volume that its data is on.
	Name, Host, Address, Volume string

	s       *Servers
	args    []string
	process *exec.Cmd
}

// Servers are the running members of the cluster shop/orders. They end with the test.
type Servers struct {
	*testing.T
	// Path of the binary.
	Path    string
	Members []*Member
	// Secret with the certificate of clients; nil in clear text.
	Secret *corev1.Secret
	// Initial are the members as etcd's initial-cluster wants them.
	Initial []string

	args []string
}

// Start starts a cluster of n members, and waits until all follow one leader. With TLS
// the clients' side has the certificates that quorate issues. The peers' side is in
// clear text: its certificates carry no addresses.
func Start(t *testing.T, version string, n int, secure bool, args ...string) *Servers {
	t.Helper()
	s := &Servers{T: t, Path: Binary(t, version)}
	c := clustertest.Orders(clustertest.SetReplicas(int32(n)))
	peers := make([]string, n)
	for i := range n {
		peers[i] = "http://" + backuptest.FreeAddress(t)
		s.Initial = append(s.Initial, naming.Member(c.Metadata.Name, int32(i))+"="+peers[i])
	}
	if secure {
		secrets := Certificates(t, c, time.Now())
		args = append(args, tlsFlags(t, secrets["orders-server"])...)
		s.Secret = secrets["orders-client"]
	}
	s.args = append([]string{
		"--initial-cluster-token=" + t.Name(), "--logger=zap", "--log-level=error",
		// Nothing outlives the test, and a slow disk must not cost an election.
		"--heartbeat-interval=100", "--election-timeout=1000",
	}, args...)
	for i := range n {
		s.Add(c, i, peers[i], "--initial-cluster="+strings.Join(s.Initial, ","))
	}
	for _, m := range s.Members {
		s.awaitLeader(m)
	}
	return s
}

// Certificates are the Secrets that quorate issues for a new cluster, by name.
func Certificates(t *testing.T, c schema.EtcdCluster, now time.Time) map[string]*corev1.Secret {
	t.Helper()
	issued, err := certs.Issue(c, "cluster.local", nil, now)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]*corev1.Secret{}
	for _, s := range issued {
		secrets[s.Name] = s
	}
	return secrets
}

// tlsFlags are etcd's flags for its client port.
func tlsFlags(t *testing.T, secret *corev1.Secret) []string {
	t.Helper()
	dir := t.TempDir()
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, naming.AuthorityCertKey} {
		if err := os.WriteFile(filepath.Join(dir, key), secret.Data[key], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{
		"--cert-file=" + filepath.Join(dir, corev1.TLSCertKey), "--key-file=" + filepath.Join(dir, corev1.TLSPrivateKeyKey),
		"--trusted-ca-file=" + filepath.Join(dir, naming.AuthorityCertKey), "--client-cert-auth=true",
	}
}

// Add starts the member with that ordinal.
func (s *Servers) Add(c schema.EtcdCluster, ordinal int, peer string, args ...string) *Member {
	s.Helper()
	name := naming.Member(c.Metadata.Name, int32(ordinal))
	m := &Member{s: s, Name: name, Host: naming.MemberHost(c, name), Address: backuptest.FreeAddress(s.T), Volume: s.TempDir()}
	scheme := "http://"
	if s.Secret != nil {
		scheme = "https://"
	}
	m.args = append([]string{
		"--name=" + m.Name, "--data-dir=" + filepath.Join(m.Volume, guard.DataDir), "--listen-client-urls=" + scheme + m.Address,
		"--advertise-client-urls=" + scheme + m.Host + ":2379", "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
	}, slices.Concat(s.args, args)...)
	s.Members = append(s.Members, m)
	m.Start()
	return m
}

// Register adds a member whose process the test itself looks after.
func (s *Servers) Register(name, host, address string) *Member {
	m := &Member{s: s, Name: name, Host: host, Address: address}
	s.Members = append(s.Members, m)
	return m
}

// Start starts the member, again after it has ended.
func (m *Member) Start() {
	m.s.Helper()
	cmd := exec.Command(m.s.Path, m.args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		m.s.Fatal(err)
	}
	m.process = cmd
	m.s.Cleanup(func() {
		Kill(cmd)
		if m.s.Failed() {
			m.s.Logf("%s said:\n%s", m.Name, &said)
		}
	})
}

// Kill ends the member as a power cut would.
func (m *Member) Kill() { Kill(m.process) }

// Signal sends its process a signal.
func (m *Member) Signal(sig os.Signal) error { return m.process.Process.Signal(sig) }

// Pause stops its process until resume is called. It is stopped when Pause returns: a signal is sent before all
// threads have seen it, and one of them may still answer.
func (m *Member) Pause() (resume func()) {
	m.s.Helper()
	if err := m.Signal(syscall.SIGSTOP); err != nil {
		m.s.Fatal(err)
	}
	for !m.stopped() {
		if m.s.Context().Err() != nil {
			m.s.Fatalf("%s does not stop", m.Name)
		}
		time.Sleep(time.Millisecond)
	}
	return func() {
		m.s.Helper()
		if err := m.Signal(syscall.SIGCONT); err != nil {
			m.s.Fatal(err)
		}
	}
}

// stopped reports whether each thread of its process has stopped, by /proc.
func (m *Member) stopped() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", m.process.Process.Pid))
	if err != nil {
		return false
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return false // it has just ended
		}
		// The state follows the name, which is in parentheses.
		if _, rest, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return true
}

// Wait waits until its process has ended.
func (m *Member) Wait() error { return m.process.Wait() }

// Kill ends a process that a test started. A second time does nothing.
func Kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// Secure reports whether the member wants TLS.
func (m *Member) Secure() bool { return m.s.Secret != nil }

// TLS is how a client dials the member; nil in clear text.
func (m *Member) TLS() (*tls.Config, error) {
	if m.s.Secret == nil {
		return nil, nil
	}
	return certs.ClientTLS(m.s.Secret, m.Host)
}

// Client is a client of the member alone, which ends with the test.
func (m *Member) Client() *clientv3.Client {
	m.s.Helper()
	config, err := m.TLS()
	if err != nil {
		m.s.Fatal(err)
	}
	scheme := "http://"
	if config != nil {
		scheme = "https://"
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{scheme + m.Address}, TLS: config, Logger: zap.NewNop()})
	if err != nil {
		m.s.Fatal(err)
	}
	m.s.Cleanup(func() { _ = c.Close() })
	return c
}

// Put writes a key through the first member.
func (s *Servers) Put(key, value string) error {
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
	defer cancel()
	c := s.Members[0].Client()
	defer func() { _ = c.Close() }()
	_, err := c.Put(ctx, key, value)
	return err
}

// MustPut is a Put that must not fail.
func (s *Servers) MustPut(key, value string) {
	s.Helper()
	if err := s.Put(key, value); err != nil {
		s.Fatal(err)
	}
}

// awaitLeader waits until the member follows a leader and answers a read.
func (s *Servers) awaitLeader(m *Member) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	c := m.Client()
	defer func() { _ = c.Close() }()
	for {
		status, err := c.Status(ctx, c.Endpoints()[0])
		if err == nil && status.Leader == 0 {
			err = fmt.Errorf("%s follows no leader", m.Name)
		}
		if err == nil {
			_, err = c.Get(ctx, "key")
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			s.Fatalf("wait for %s: %v", m.Name, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
