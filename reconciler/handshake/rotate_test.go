package handshake

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/needs"
)

// rotated are three real members, with TLS on both ports, whose files are what Secrets hold.
type rotated struct {
	*testing.T
	c       schema.EtcdCluster
	binary  string
	secrets map[string]*corev1.Secret
	members []*member
	dir     string
}

// member is a member, and the ports at which it listens.
type member struct {
	name, client, peer, data string
	process                  *exec.Cmd
	log                      *os.File
}

const domain = "cluster.local"

func startRotated(t *testing.T, version string) *rotated {
	t.Helper()
	r := &rotated{
		T: t, c: clustertest.Orders(clustertest.SetReplicas(3)), binary: etcdtest.Binary(t, version), dir: t.TempDir(),
	}
	r.secrets = etcdtest.Certificates(t, r.c, time.Now())
	for i := range int32(3) {
		r.members = append(r.members, &member{name: naming.Member(r.c.Metadata.Name, i), client: backuptest.FreeAddress(t), peer: backuptest.FreeAddress(t), data: t.TempDir()})
	}
	r.mount()
	for _, m := range r.members {
		r.start(m, "")
	}
	r.healthy()
	return r
}

// mount writes the files of the Secrets, as kubelets do. The certificates of peers name pods, and
// these members are called by their address: so each is signed again, by its own authority, with that.
func (r *rotated) mount() {
	r.Helper()
	for name, s := range r.secrets {
		data := maps.Clone(s.Data)
		if name == "orders-peer" {
			data[corev1.TLSCertKey] = r.onLoopback(s)
		}
		for key, text := range data {
			path := filepath.Join(r.dir, name, key)
			r.must(os.MkdirAll(filepath.Dir(path), 0o700))
			r.must(os.WriteFile(path+".new", text, 0o600))
			r.must(os.Rename(path+".new", path))
		}
	}
}

func (r *rotated) onLoopback(s *corev1.Secret) []byte {
	r.Helper()
	pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	r.must(err)
	for _, name := range []string{"orders-peer-ca", "orders-peer-ca-next"} {
		if r.secrets[name] == nil {
			continue
		}
		ca, err := tls.X509KeyPair(r.secrets[name].Data["ca.crt"], r.secrets[name].Data["ca.key"])
		r.must(err)
		if pair.Leaf.CheckSignatureFrom(ca.Leaf) != nil {
			continue
		}
		template := *pair.Leaf
		template.SerialNumber, template.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 1)}
		der, err := x509.CreateCertificate(rand.Reader, &template, ca.Leaf, pair.Leaf.PublicKey, ca.PrivateKey)
		r.must(err)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	r.Fatal("no authority has signed orders-peer")
	return nil
}

func (r *rotated) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// start starts a member that trusts what a Secret holds; "" is from before the first change.
func (r *rotated) start(m *member, trust string) {
	r.Helper()
	var initial []string
	for _, o := range r.members {
		initial = append(initial, o.name+"=https://"+o.peer)
	}
	in := func(secret, key string) string { return filepath.Join(r.dir, secret, key) }
	clients, peers := in("orders-server", "ca.crt"), in("orders-peer", "ca.crt")
	if trust != "" {
		clients, peers = in(trust, naming.TrustedClientsKey), in(trust, naming.TrustedPeersKey)
	}
	if m.log == nil {
		var err error
		m.log, err = os.Create(filepath.Join(r.TempDir(), m.name+".log"))
		r.must(err)
		r.Cleanup(func() {
			etcdtest.Kill(m.process)
			if text, _ := os.ReadFile(m.log.Name()); r.Failed() {
				r.Logf("%s said:\n%s", m.name, text)
			}
			_ = m.log.Close()
		})
	}
	m.process = exec.Command(r.binary, "--name="+m.name, "--data-dir="+filepath.Join(m.data, "data"),
		"--listen-client-urls=https://"+m.client, "--advertise-client-urls=https://"+m.client,
		"--listen-peer-urls=https://"+m.peer, "--initial-advertise-peer-urls=https://"+m.peer,
		"--initial-cluster="+strings.Join(initial, ","), "--initial-cluster-token="+r.Name(), "--logger=zap", "--log-level=error",
		"--heartbeat-interval=100", "--election-timeout=1000",
		"--cert-file="+in("orders-server", "tls.crt"), "--key-file="+in("orders-server", "tls.key"), "--trusted-ca-file="+clients, "--client-cert-auth=true",
		"--peer-cert-file="+in("orders-peer", "tls.crt"), "--peer-key-file="+in("orders-peer", "tls.key"), "--peer-trusted-ca-file="+peers, "--peer-client-cert-auth=true",
		"--unsafe-no-fsync=true")
	m.process.Stderr = m.log
	r.must(m.process.Start())
}

// reading is a client that reads its Secret at each handshake, as it has taken it up last.
func (r *rotated) reading(app *atomic.Pointer[corev1.Secret]) *clientv3.Client {
	r.Helper()
	config := &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection does, by what is trusted then
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			now, err := certs.ClientTLS(app.Load(), "localhost")
			if err != nil {
				return nil, err
			}
			return &now.Certificates[0], nil
		},
		VerifyConnection: func(shown tls.ConnectionState) error {
			now, err := certs.ClientTLS(app.Load(), "localhost")
			if err == nil {
				_, err = shown.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: now.RootCAs, DNSName: "localhost"})
			}
			return err
		},
	}
	var endpoints []string
	for _, m := range r.members {
		endpoints = append(endpoints, "https://"+m.client)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: config, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	r.must(err)
	r.Cleanup(func() { _ = c.Close() })
	return c
}

// client is a client with what the Secret of clients says now.
func (r *rotated) client(members ...*member) *clientv3.Client {
	r.Helper()
	config, err := certs.ClientTLS(r.secrets["orders-client"], "localhost")
	r.must(err)
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, "https://"+m.client)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: config, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	r.must(err)
	r.Cleanup(func() { _ = c.Close() })
	return c
}

// healthy waits until each member answers a linearizable read.
func (r *rotated) healthy() {
	r.Helper()
	for _, m := range r.members {
		c := r.client(m)
		var err error
		for range 300 {
			ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
			_, err = c.Get(ctx, "any")
			cancel()
			if err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			r.Fatalf("%s is not healthy: %v", m.name, err)
		}
		_ = c.Close()
	}
}

// roll restarts one member after the other, and waits for its health: they trust what a Secret holds.
func (r *rotated) roll(trust string) {
	r.Helper()
	for _, m := range slices.Backward(r.members) {
		r.must(m.process.Process.Signal(syscall.SIGTERM))
		_ = m.process.Wait()
		r.start(m, trust)
		r.healthy()
	}
}

// write is what the API server does with Secrets, and kubelets after it.
func (r *rotated) write(all ...*corev1.Secret) {
	r.Helper()
	for _, s := range all {
		r.secrets[s.Name] = s
	}
	r.mount()
}

// ask asks all members, and returns what they do on each port in short.
func (r *rotated) ask() []string {
	r.Helper()
	q := Question{Cluster: r.c, ClusterDomain: domain, Secrets: r.secrets, Now: time.Now()}
	for _, m := range r.members {
		q.Members = append(q.Members, Member{Name: m.name, IP: "127.0.0.1", Host: naming.MemberHost(r.c, m.name), ClientPort: port(r.T, m.client), PeerPort: port(r.T, m.peer)})
	}
	var answers []string
	for _, h := range Ask(r.Context(), q) {
		text := h.Port + " by " + string(h.By)
		for _, by := range slices.Sorted(maps.Keys(h.Refuses)) {
			text += ", refuses " + string(by)
		}
		if h.Problem != "" {
			text += ", " + h.Problem
		}
		if !slices.Contains(answers, text) {
			answers = append(answers, text)
		}
	}
	return answers
}

// expect wants all members to do the same, on each port.
func (r *rotated) expect(when string, want ...string) {
	r.Helper()
	if got := r.ask(); !slices.Equal(got, want) {
		r.Errorf("%s: %q, want %q", when, got, want)
	}
}

func port(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// load is a client that writes all the time, and one that watches what it writes.
type load struct {
	r       *rotated
	app     atomic.Pointer[corev1.Secret]
	acked   []string
	failed  int
	stop    context.CancelFunc
	written chan struct{}
	seen    chan map[string]bool
	last    atomic.Pointer[string]
}

func (r *rotated) load() *load {
	l := &load{r: r, written: make(chan struct{}), seen: make(chan map[string]bool, 1)}
	l.takeUp()
	client := r.reading(&l.app)
	ctx, stop := context.WithCancel(r.Context())
	l.stop = stop
	watching := make(chan struct{})
	go func() {
		seen := map[string]bool{}
		// One watch from the first revision to the end: the client opens it again where a member stops.
		watch := client.Watch(r.Context(), "load/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithCreatedNotify())
		for w := range watch {
			if w.Created {
				close(watching)
			}
			for _, e := range w.Events {
				seen[string(e.Kv.Key)] = true
				if end := l.last.Load(); end != nil && string(e.Kv.Key) == *end {
					l.seen <- seen
					return
				}
			}
		}
		l.seen <- seen
	}()
	<-watching
	go func() {
		defer close(l.written)
		for n := 0; ctx.Err() == nil; n++ {
			key := fmt.Sprintf("load/%06d", n)
			for ctx.Err() == nil {
				each, cancel := context.WithTimeout(r.Context(), 2*time.Second)
				_, err := client.Put(each, key, "x")
				cancel()
				if err == nil {
					l.acked = append(l.acked, key)
					break
				}
				l.failed++
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	return l
}

// takeUp has the clients read their Secret again.
func (l *load) takeUp() { l.app.Store(l.r.secrets["orders-client"]) }

// end ends the load and wants each write that was acknowledged to be there, and to have been watched.
func (l *load) end() {
	l.r.Helper()
	l.stop()
	<-l.written
	end := "load/end"
	l.last.Store(&end)
	c := l.r.client(l.r.members...)
	_, err := c.Put(l.r.Context(), end, "x")
	l.r.must(err)
	got, err := c.Get(l.r.Context(), "load/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	l.r.must(err)
	there := map[string]bool{}
	for _, kv := range got.Kvs {
		there[string(kv.Key)] = true
	}
	var seen map[string]bool
	select {
	case seen = <-l.seen:
	case <-time.After(30 * time.Second):
		l.r.Fatal("the watch has not come to the last write")
	}
	for _, key := range l.acked {
		if !there[key] {
			l.r.Errorf("%s was acknowledged, and is gone", key)
		}
		if !seen[key] {
			l.r.Errorf("%s was acknowledged, and not watched", key)
		}
	}
	if len(l.acked) < 100 {
		l.r.Errorf("only %d writes were acknowledged", len(l.acked))
	}
	l.r.Logf("%d writes acknowledged, %d attempts failed", len(l.acked), l.failed)
}

// 571: real members go through all phases of a change of their authorities, and of another one, with
// what quorate issues: no acknowledged write is lost, a watch misses none, and in the end the authorities
// from before are refused, by members and by clients.
func TestRealMembersChangeTheirAuthorities(t *testing.T) {
	needs.Long(t)
	for version, words := range map[string][]string{etcdtest.V35: {"2026-12"}, etcdtest.V36: {"2026-12", "2027-01"}} {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // they mostly wait for members to restart
			r := startRotated(t, version)
			l := r.load()
			trust := ""
			for _, word := range words {
				trust = r.change(l, word, trust)
			}
			l.end()
		})
	}
}

// change changes the authorities as the planner does, and returns what members trust in the end.
func (r *rotated) change(l *load, word, before string) string {
	r.Helper()
	old := maps.Clone(r.secrets)
	r.c.Spec.TLS.Rotate = word
	next, err := certs.NextAuthorities(r.c, domain, r.secrets, time.Now())
	r.must(err)
	r.write(next...)
	status := certs.Check(r.c, domain, r.secrets, time.Now())
	r.write(certs.Bundles(r.c, domain, r.secrets, state.BundleBoth)...)
	both, err := certs.Trust(r.c, domain, r.secrets, status.Rotation.Both)
	r.must(err)
	r.write(both)
	r.expect("before members restart", "client by present, refuses next", "peer by present, refuses next")
	r.roll(both.Name)
	r.expect("members trust both", "client by present", "peer by present")
	l.takeUp()
	issued, err := certs.IssueBy(r.c, domain, r.secrets, state.ByNext, time.Now())
	r.must(err)
	r.write(issued...)
	r.expect("all is issued anew, and nobody restarted", "client by next", "peer by next")
	l.takeUp()
	alone, err := certs.Trust(r.c, domain, r.secrets, status.Rotation.New)
	r.must(err)
	r.write(alone)
	r.roll(alone.Name)
	r.expect("members trust the next ones alone", "client by next, refuses present", "peer by next, refuses present")
	update, create, remove := certs.Retire(r.c, domain, r.secrets, state.ByNext)
	r.write(slices.Concat(update, create)...)
	for _, name := range append(remove, both.Name, before) {
		delete(r.secrets, name)
	}
	if status := certs.Check(r.c, domain, r.secrets, time.Now()); len(status.Problems)+len(status.Missing) > 0 || status.Rotation.Word != word || len(status.Rotation.Next) > 0 {
		r.Errorf("at the end: %q, missing %q, %+v", status.Problems, status.Missing, status.Rotation)
	}
	r.refused(old)
	return alone.Name
}

// refused wants nobody to trust authorities from before any more.
func (r *rotated) refused(old map[string]*corev1.Secret) {
	r.Helper()
	for _, m := range r.members {
		for _, peers := range []bool{false, true} {
			shown, err := certs.Throwaway(r.c, domain, old, peers, state.ByPresent, time.Now())
			r.must(err)
			pair, err := tls.X509KeyPair(shown.Data[corev1.TLSCertKey], shown.Data[corev1.TLSPrivateKeyKey])
			r.must(err)
			address := m.client
			if peers {
				address = m.peer
			}
			var refused *RefusedError
			if _, err := Show(r.Context(), address, "localhost", pair); !errors.As(err, &refused) {
				r.Errorf("%s takes a certificate of the authority from before at %s: %v", m.name, address, err)
			}
		}
		config, err := certs.ClientTLS(old["orders-client"], "localhost")
		r.must(err)
		conn, err := tls.Dial("tcp", m.client, config)
		var unknown x509.UnknownAuthorityError
		if err == nil {
			_ = conn.Close()
		}
		if !errors.As(err, &unknown) {
			r.Errorf("a client that trusts the authority from before takes %s for one: %v", m.name, err)
		}
	}
}
