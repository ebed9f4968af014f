package tlsmodes

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/schema/release"
)

const (
	// patience bounds one question to a member.
	patience = 3 * time.Second
	// grace is how long a member has to hand over the leadership, and to end.
	grace = time.Second
	// longest is when a cluster is given up. What a member proposes when it starts is lost where
	// the first URL of the leader does not answer, and etcd repeats it after 7 s.
	longest = time.Minute
)

// cluster are members that are processes, each with an address of its own.
type cluster struct {
	*testing.T
	version, binary, dir string
	// more are flags of all members.
	more    []string
	secrets map[string]*corev1.Secret
	members []*member
}

// member is one process, again and again.
type member struct {
	name, ip, volume string
	id               uint64
	how              listens
	// initial and joins are for its first start.
	initial string
	joins   bool
	process *exec.Cmd
	said    bytes.Buffer
}

// networks counts the clusters: each has addresses of its own, with the ports that members have in
// Kubernetes. All that begin with 127 are of this machine.
var networks atomic.Uint32

// start starts a cluster.
func start(t *testing.T, version string, n int, mode string, more ...string) *cluster {
	t.Helper()
	c := &cluster{T: t, version: version, binary: etcdtest.Binary(t, version), dir: t.TempDir(), more: more}
	network := freeNetwork(t, n)
	var initial []string
	for i := range n {
		m := &member{name: fmt.Sprint("orders-", i), ip: fmt.Sprint(network, i+1), volume: t.TempDir(), how: listens{own: mode}}
		c.members = append(c.members, m)
		initial = append(initial, m.name+"="+m.url(peerURL{mode, peerPort}))
	}
	c.secrets = etcdtest.Certificates(t, clustertest.Orders(clustertest.SetReplicas(int32(n))), time.Now())
	c.mount()
	for _, m := range c.members {
		m.initial = strings.Join(initial, ",")
		c.Cleanup(func() { c.end(m) })
		c.launch(m)
	}
	c.awaitHealth()
	return c
}

// freeNetwork is what n free addresses begin with.
func freeNetwork(t *testing.T, n int) string {
	t.Helper()
	for range 250 {
		network := fmt.Sprintf("127.%d.%d.", 1+os.Getpid()%250, networks.Add(1)%250)
		free := true
		for i := range n {
			for _, port := range []string{clientPort, peerPort, secondPort} {
				l, err := net.Listen("tcp", net.JoinHostPort(fmt.Sprint(network, i+1), port))
				if free = free && err == nil; err == nil {
					_ = l.Close()
				}
			}
		}
		if free {
			return network
		}
	}
	t.Fatal("no addresses are free on loopback")
	return ""
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// mount writes the Secrets as files. The certificates name pods, and these members are called by
// their addresses: so each is signed again, with those.
func (c *cluster) mount() {
	c.Helper()
	for leaf, authority := range map[string]string{"orders-server": "orders-ca", "orders-peer": "orders-peer-ca"} {
		s, ca := c.secrets[leaf], c.secrets[authority]
		pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
		c.must(err)
		by, err := tls.X509KeyPair(ca.Data["ca.crt"], ca.Data["ca.key"])
		c.must(err)
		template := *pair.Leaf
		template.SerialNumber, template.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 1)} // whom they call from
		for _, m := range c.members {
			template.IPAddresses = append(template.IPAddresses, net.ParseIP(m.ip))
		}
		der, err := x509.CreateCertificate(rand.Reader, &template, by.Leaf, pair.Leaf.PublicKey, by.PrivateKey)
		c.must(err)
		s.Data[corev1.TLSCertKey] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		for key, text := range s.Data {
			path := filepath.Join(c.dir, leaf, key)
			c.must(os.MkdirAll(filepath.Dir(path), 0o700))
			c.must(os.WriteFile(path, text, 0o600))
		}
	}
}

func (m *member) url(u peerURL) string { return u.scheme + "://" + net.JoinHostPort(m.ip, u.port) }

func (m *member) urls(all []peerURL) (urls []string) {
	for _, u := range all {
		urls = append(urls, m.url(u))
	}
	return urls
}

// base is where a member is listed that is new.
func (m *member) base() string { return m.url(m.how.peers()[0]) }

// launch starts the process of a member.
func (c *cluster) launch(m *member) {
	c.Helper()
	var clients []string
	for _, mode := range m.how.clients() {
		clients = append(clients, m.url(peerURL{mode, clientPort}))
	}
	state := "new"
	if m.joins {
		state = "existing"
	}
	args := []string{
		"--name=" + m.name, "--data-dir=" + filepath.Join(m.volume, "data"),
		"--listen-client-urls=" + strings.Join(clients, ","), "--advertise-client-urls=" + clients[0],
		"--listen-peer-urls=" + strings.Join(m.urls(m.how.peers()), ","), "--initial-advertise-peer-urls=" + m.base(),
		"--initial-cluster=" + m.initial, "--initial-cluster-state=" + state, "--initial-cluster-token=" + c.Name(),
		"--heartbeat-interval=100", "--election-timeout=1000", "--strict-reconfig-check=true",
	}
	if m.how.encrypts() {
		in := func(secret, key string) string { return filepath.Join(c.dir, secret, key) }
		args = append(args,
			"--cert-file="+in("orders-server", "tls.crt"), "--key-file="+in("orders-server", "tls.key"), "--trusted-ca-file="+in("orders-server", "ca.crt"), "--client-cert-auth=true",
			"--peer-cert-file="+in("orders-peer", "tls.crt"), "--peer-key-file="+in("orders-peer", "tls.key"), "--peer-trusted-ca-file="+in("orders-peer", "ca.crt"), "--peer-client-cert-auth=true")
	}
	v, err := release.Parse(strings.TrimPrefix(c.version, "v"))
	c.must(err)
	flags, findings := release.Flags(v, release.Settings{})
	if len(findings) > 0 {
		c.Fatal(findings)
	}
	m.process = exec.Command(c.binary, slices.Concat(args, flags, c.more)...)
	m.process.Stdout, m.process.Stderr = &m.said, &m.said
	c.must(m.process.Start())
}

// end kills a member at the end of its test, with the last of what it said where that failed.
func (c *cluster) end(m *member) {
	etcdtest.Kill(m.process)
	if lines := strings.Split(m.said.String(), "\n"); c.Failed() {
		c.Logf("%s said last:\n%s", m.name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}

// stop ends a member as a kubelet does, whose patience is short here: etcd gives watches 7 s to end,
// and they do not.
func (c *cluster) stop(m *member) {
	c.Helper()
	c.must(m.process.Process.Signal(syscall.SIGTERM))
	impatient := time.AfterFunc(grace, func() { _ = m.process.Process.Kill() }) // it may have ended
	defer impatient.Stop()
	_ = m.process.Wait() // it ends by a signal
}

// dial makes a client of some members, in a mode.
func (c *cluster) dial(mode string, members ...*member) *clientv3.Client {
	c.Helper()
	config := clientv3.Config{Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second}
	for _, m := range members {
		config.Endpoints = append(config.Endpoints, m.url(peerURL{mode, clientPort}))
	}
	if mode == secure {
		config.TLS = c.certificate()
	}
	client, err := clientv3.New(config)
	c.must(err)
	return client
}

// certificate is that of quorate's own client.
func (c *cluster) certificate() *tls.Config {
	c.Helper()
	config, err := certs.ClientTLS(c.secrets["orders-client"], "localhost")
	c.must(err)
	return config
}

// ask asks one member, as long as it takes.
func (c *cluster) ask(m *member, do func(context.Context, *clientv3.Client) error) {
	c.Helper()
	client := c.dial(m.how.own, m)
	defer func() { _ = client.Close() }()
	c.eventually("ask "+m.name, func() error {
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		defer cancel()
		return do(ctx, client)
	})
}

// eventually tries until there is no error.
func (c *cluster) eventually(what string, try func() error) {
	c.Helper()
	var err error
	for until := time.Now().Add(longest); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	c.Fatalf("%s: %v", what, err)
}

// awaitHealth waits until members answer as quorate wants it before each step.
func (c *cluster) awaitHealth(without ...*member) {
	c.Helper()
	c.eventually("be healthy", func() error {
		views := map[string]bool{}
		for _, m := range c.members {
			if slices.Contains(without, m) {
				continue
			}
			view, err := c.view(m)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			views[view] = true
		}
		if len(views) != 1 {
			return fmt.Errorf("members see different things: %v", views)
		}
		return nil
	})
}

// view is the leader and the list as a voter sees them that answers a linearizable read.
func (c *cluster) view(m *member) (string, error) {
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	client := c.dial(m.how.own, m)
	defer func() { _ = client.Close() }()
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err == nil && (status.IsLearner || status.Leader == 0) {
		err = errors.New("it is a learner, or follows no leader")
	}
	if err == nil {
		m.id = status.Header.MemberId
		_, err = client.Get(ctx, "any")
	}
	if err != nil {
		return "", err
	}
	list, err := client.MemberList(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("leader %x of %s", status.Leader, initialCluster(list.Members)), nil
}

// initialCluster is a member list as etcd wants it of a new member.
func initialCluster(members []*pb.Member) string {
	var all []string
	for _, m := range members {
		for _, url := range m.PeerURLs {
			all = append(all, m.Name+"="+url)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// restart starts a member as it is to listen from now on. One that listens so stays.
func (c *cluster) restart(m *member, how listens) {
	c.Helper()
	if m.how == how {
		return
	}
	c.stop(m)
	m.how = how
	c.launch(m)
}

// move has the list say where a member is reached.
func (c *cluster) move(m *member, urls []peerURL) {
	c.Helper()
	c.ask(c.members[0], func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberUpdate(ctx, m.id, m.urls(urls))
		return err
	})
}

// do takes a step with some members, by default all. The last place restarts first, as the last pod does.
func (c *cluster) do(s step, members ...*member) {
	c.Helper()
	if members == nil {
		members = c.members
	}
	for _, m := range slices.Backward(members) {
		switch {
		case s.restart.own != "":
			c.restart(m, s.restart)
		case s.list != nil:
			c.move(m, s.list)
		default:
			continue
		}
		c.awaitHealth()
	}
}

// replace removes a member that is lost with its volume, and adds it again as a learner, listed where a
// member that listens so is reached first.
func (c *cluster) replace(m *member, how listens) {
	c.Helper()
	other := c.members[0]
	if m == other {
		other = c.members[1]
	}
	etcdtest.Kill(m.process)
	c.ask(other, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberRemove(ctx, m.id)
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return nil
		}
		return err
	})
	m.how, m.joins, m.volume = how, true, c.TempDir()
	c.ask(other, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberAddAsLearner(ctx, []string{m.base()})
		if errors.Is(err, rpctypes.ErrPeerURLExist) {
			err = nil
		}
		list, listErr := client.MemberList(ctx)
		if err = errors.Join(err, listErr); err != nil {
			return err
		}
		for _, l := range list.Members {
			if slices.Contains(l.PeerURLs, m.base()) {
				m.id, l.Name = l.ID, m.name
			}
		}
		m.initial = initialCluster(list.Members)
		return nil
	})
	c.launch(m)
	c.ask(other, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberPromote(ctx, m.id)
		return err
	})
	c.awaitHealth()
}
