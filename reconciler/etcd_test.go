package reconciler

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// The releases that the tests talk to.
const (
	nextEtcd  = "v3.7.3"
	newEtcd   = "v3.6.16"
	olderEtcd = "v3.5.35"
	oldEtcd   = "v3.4.34"
)

var (
	nextEtcdBinary  = sync.OnceValues(func() (string, error) { return etcdBinary(nextEtcd, "go.etcd.io/etcd/server/v3", "QUORATE_ETCD_NEXT") })
	olderEtcdBinary = sync.OnceValues(func() (string, error) {
		return etcdBinary(olderEtcd, "go.etcd.io/etcd/server/v3", "QUORATE_ETCD_OLDER")
	})
	newEtcdBinary = sync.OnceValues(func() (string, error) { return etcdBinary(newEtcd, "go.etcd.io/etcd/server/v3", "QUORATE_ETCD") })
	oldEtcdBinary = sync.OnceValues(func() (string, error) { return etcdBinary(oldEtcd, "go.etcd.io/etcd", "QUORATE_ETCD_OLD") })
)

// etcdBinary is a release of etcd: the one that the environment names, else one
// that is built once and kept in the user's cache.
func etcdBinary(version, pkg, env string) (string, error) {
	if path := os.Getenv(env); path != "" {
		return exec.LookPath(path)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "quorate", "bin")
	path := filepath.Join(bin, "etcd-"+version)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	// What has the final name is whole.
	draft := fmt.Sprintf("%s.%d", path, os.Getpid())
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", draft, pkg)
	build.Dir = filepath.Join("..", "test", "sandbox", "etcd", version)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build etcd %s in %s: %w\n%s", version, build.Dir, err, out)
	}
	return path, os.Rename(draft, path)
}

// etcdServers are running members of one cluster, and how they are dialled.
type etcdServers struct {
	*testing.T
	clients   *Clients
	endpoints []Endpoint
	// client is the Secret of the clients' certificate, nil in clear text.
	client    *corev1.Secret
	processes []*exec.Cmd
	start     []func() *exec.Cmd
	// initial are the members as etcd's initial-cluster wants them, path and args
	// what all of them are started with.
	initial []string
	path    string
	args    []string
	// volumes are the directories in which the members have their data.
	volumes []string
}

// startEtcd starts a cluster of n members on loopback that ends with the test.
// With TLS the clients' side has the certificates that quorate issues. The
// peers' side is in clear text: its certificates carry no addresses.
func startEtcd(t *testing.T, binary func() (string, error), n int, secure bool, args ...string) *etcdServers {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &etcdServers{T: t, clients: NewClients(), path: path}
	t.Cleanup(func() { s.clients.Forget("shop/orders") })
	c := ordersCluster(setReplicas(int32(n)))
	peers := make([]string, n)
	for i := range n {
		peers[i] = "http://" + backuptest.FreeAddress(t)
		s.initial = append(s.initial, MemberName(c, i)+"="+peers[i])
	}
	var secrets map[string]*corev1.Secret
	if secure {
		secrets, _ = issueCertificates(t, c, nil, time.Now())
		args = append(args, serverTLSFlags(t, secrets["orders-server"])...)
		s.client = secrets["orders-client"]
	}
	s.args = append([]string{
		"--initial-cluster-token=" + t.Name(), "--logger=zap", "--log-level=error",
		// Nothing outlives the test, and a slow disk must not cost an election.
		"--heartbeat-interval=100", "--election-timeout=1000",
	}, args...)
	for i := range n {
		s.add(c, i, peers[i], secrets["orders-client"], "--initial-cluster="+strings.Join(s.initial, ","))
	}
	s.await("every member to be well", func(r plan.Round) bool { return len(r.Members) == n && troubleOf(r) == "" })
	return s
}

func serverTLSFlags(t *testing.T, secret *corev1.Secret) []string {
	t.Helper()
	dir := t.TempDir()
	var flags []string
	for flag, key := range map[string]string{"cert-file": corev1.TLSCertKey, "key-file": corev1.TLSPrivateKeyKey, "trusted-ca-file": authorityCertKey} {
		path := filepath.Join(dir, key)
		if err := os.WriteFile(path, secret.Data[key], 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--"+flag+"="+path)
	}
	return append(flags, "--client-cert-auth")
}

// add starts one member.
func (s *etcdServers) add(c schema.EtcdCluster, i int, peer string, client *corev1.Secret, args ...string) {
	s.Helper()
	e := Endpoint{Member: MemberName(c, i), Host: memberHost(c, MemberName(c, i)), Address: backuptest.FreeAddress(s.T), Incarnation: "1"}
	scheme := "http://"
	if client != nil {
		scheme = "https://"
		e.TLS = func() (*tls.Config, error) { return ClientTLS(client, e.Host) }
	}
	s.volumes = append(s.volumes, s.TempDir())
	args = append([]string{
		"--name=" + e.Member, "--data-dir=" + filepath.Join(s.volumes[i], guard.DataDir), "--listen-client-urls=" + scheme + e.Address,
		"--advertise-client-urls=" + scheme + e.Host + ":2379", "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
	}, slices.Concat(s.args, args)...)
	start := func() *exec.Cmd {
		cmd := exec.Command(s.path, args...)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() {
			if kill(cmd); s.Failed() {
				s.Logf("%s said:\n%s", e.Member, &said)
			}
		})
		return cmd
	}
	s.endpoints, s.processes, s.start = append(s.endpoints, e), append(s.processes, start()), append(s.start, start)
}

// kill ends a process that this test started. A second time does nothing.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func (s *etcdServers) round(deep bool) plan.Round {
	return s.clients.Round(s.Context(), "shop/orders", s.endpoints, deep)
}

// await looks until a round is as wanted.
func (s *etcdServers) await(what string, wanted func(plan.Round) bool) plan.Round {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r := s.round(false)
		if wanted(r) {
			return r
		}
		select {
		case <-ctx.Done():
			s.Fatalf("waited for %s; the last look was %+v", what, r)
		case <-tick.C:
		}
	}
}

// troubleOf is the first problem of a round, that there is no leader included.
func troubleOf(r plan.Round) string {
	if r.Problem != "" {
		return r.Problem
	}
	for _, m := range r.Members {
		if m.Problem != "" {
			return m.Name + ": " + m.Problem
		}
		if m.Leader == "" || m.Leader != r.Members[0].Leader {
			return m.Name + " follows nobody, or another leader"
		}
	}
	return ""
}

// target is the member behind one of the endpoints.
func (s *etcdServers) target(r plan.Round, e Endpoint) Target {
	s.Helper()
	return Target{Endpoint: e, ClusterID: r.ClusterID, ID: memberOf(s.T, r, e.Member).ID}
}

// leader is the leader, and another member.
func (s *etcdServers) leader(r plan.Round) (leader, other Target) {
	s.Helper()
	for _, e := range s.endpoints {
		if m := s.target(r, e); m.ID == memberOf(s.T, r, e.Member).Leader {
			leader = m
		} else {
			other = m
		}
	}
	return leader, other
}

func memberOf(t *testing.T, r plan.Round, name string) plan.Member {
	t.Helper()
	for _, m := range r.Members {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no member %s in %+v", name, r)
	return plan.Member{}
}

// put writes a key through the first member.
func (s *etcdServers) put(key, value string) error {
	m, err := s.clients.client("shop/orders", s.endpoints[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
	defer cancel()
	_, err = m.etcd.Put(ctx, key, value)
	return err
}

func (s *etcdServers) mustPut(key, value string) {
	s.Helper()
	if err := s.put(key, value); err != nil {
		s.Fatal(err)
	}
}

func TestRealMembersWithTLS(t *testing.T) {
	s := startEtcd(t, newEtcdBinary, 3, true)
	t.Run("a round tells all there is", func(t *testing.T) { roundTellsAll(t, s) })
	t.Run("hashes of one revision are equal", func(t *testing.T) { hashesAgree(t, s) })
	t.Run("the leadership moves", func(t *testing.T) { leadershipMoves(t, s) })
	t.Run("another name in the certificate is refused", func(t *testing.T) { wrongNameIsRefused(t, s) })
	t.Run("a member that answers as another is named", func(t *testing.T) { wrongMemberIsNamed(t, s) })
	t.Run("credentials that cannot be read are a problem", func(t *testing.T) { badCredentials(t, s) })
	t.Run("a snapshot becomes a verified backup", func(t *testing.T) { snapshotIsStored(t, s) })
	t.Run("connections follow the incarnation", func(t *testing.T) { connectionsAreKept(t, s) })
	// The last two end members.
	t.Run("a member that is down is named", func(t *testing.T) { downMemberIsNamed(t, s) })
	t.Run("without a quorum there is no list", func(t *testing.T) { noQuorumNoList(t, s) })
}

func roundTellsAll(t *testing.T, s *etcdServers) {
	s.mustPut("greeting", "hello")
	r := s.await("the cluster version", func(r plan.Round) bool {
		return r.ClusterVersion == "3.6.0" && troubleOf(r) == "" &&
			!slices.ContainsFunc(r.Members, func(m plan.Member) bool { return m.StorageVersion != "3.6.0" })
	})
	if r.ClusterID == "" || len(r.Alarms) > 0 || r.Downgrading || r.Deep || time.Since(r.At) > time.Minute {
		t.Errorf("round %+v", r)
	}
	ids := map[string]bool{}
	for _, m := range r.Members {
		ids[m.ID] = true
		if m.Version != "3.6.16" || m.Learner || m.Term == 0 || m.Commit == 0 || m.Applied == 0 || m.DBSize == 0 || m.Quota == 0 ||
			m.Revision < 1 || len(m.Errors) > 0 || m.StorageVersion != "3.6.0" || m.Hash != 0 || !strings.HasPrefix(m.Name, "orders-") {
			t.Errorf("member %+v", m)
		}
	}
	if len(ids) != 3 {
		t.Errorf("IDs %v", ids)
	}
}

func hashesAgree(t *testing.T, s *etcdServers) {
	s.mustPut("greeting", "hello again")
	s.await("all to have it", func(r plan.Round) bool { return troubleOf(r) == "" })
	r := s.round(true)
	first := r.Members[0]
	for _, m := range r.Members {
		if m.Problem != "" || m.Hash == 0 || m.HashRevision < 2 || m.Hash != first.Hash || m.HashRevision != first.HashRevision || m.CompactRevision != first.CompactRevision || m.Keys != first.Keys || m.Keys == 0 {
			t.Errorf("%+v and %+v", m, first)
		}
	}
	if !r.Deep {
		t.Error("the round does not say that it was deep")
	}
}

func leadershipMoves(t *testing.T, s *etcdServers) {
	leader, other := s.leader(s.round(false))
	if err := s.clients.MoveLeader(t.Context(), "shop/orders", leader, other.ID); err != nil {
		t.Fatal(err)
	}
	s.await("the new leader", func(r plan.Round) bool { return troubleOf(r) == "" && r.Members[0].Leader == other.ID })
	if err := s.clients.MoveLeader(t.Context(), "shop/orders", other, other.ID); err != nil {
		t.Errorf("to the one that leads already: %v", err)
	}
	backuptest.WantError(t, s.clients.MoveLeader(t.Context(), "shop/orders", leader, other.ID), "move leader from "+leader.Member, "not leader")
	backuptest.WantError(t, s.clients.MoveLeader(t.Context(), "shop/orders", other, "nonsense"), "move leader to nonsense")
}

// changed are the endpoints with a change to one of them, as another cluster, so
// that no kept connection is used.
func (s *etcdServers) changed(t *testing.T, change func([]Endpoint)) plan.Round {
	t.Helper()
	endpoints := append([]Endpoint(nil), s.endpoints...)
	change(endpoints)
	defer s.clients.Forget(t.Name())
	return s.clients.Round(t.Context(), t.Name(), endpoints, false)
}

func wrongNameIsRefused(t *testing.T, s *etcdServers) {
	right, wrong := s.endpoints[1].TLS, "orders-1.orders-peers.other.svc"
	r := s.changed(t, func(e []Endpoint) {
		e[1].Host = wrong
		e[1].TLS = func() (*tls.Config, error) {
			config, err := right()
			if err == nil {
				config.ServerName = wrong
			}
			return config, err
		}
	})
	if m := memberOf(t, r, "orders-1"); !strings.Contains(m.Problem, "certificate is valid for") || m.Version != "" {
		t.Errorf("member %+v", m)
	}
	if m := memberOf(t, r, "orders-0"); m.Problem != "" {
		t.Errorf("member %+v", m)
	}
}

func wrongMemberIsNamed(t *testing.T, s *etcdServers) {
	r := s.changed(t, func(e []Endpoint) { e[2].Address = e[1].Address; e[2].Host, e[2].TLS = e[1].Host, e[1].TLS })
	want := "its pod answers as member " + memberOf(t, s.round(false), "orders-1").ID
	if m := memberOf(t, r, "orders-2"); m.Problem != want || m.Version != "" || m.Leader != "" {
		t.Errorf("member %+v, want %q", m, want)
	}
}

func badCredentials(t *testing.T, s *etcdServers) {
	r := s.changed(t, func(e []Endpoint) {
		e[0].TLS = func() (*tls.Config, error) { return nil, errors.New("the Secret is missing") }
	})
	if m := memberOf(t, r, "orders-0"); !strings.Contains(m.Problem, "dial orders-0: the Secret is missing") {
		t.Errorf("member %+v", m)
	}
	e := s.endpoints[0]
	e.TLS = func() (*tls.Config, error) { return nil, errors.New("the Secret is missing") }
	backuptest.WantError(t, s.clients.MoveLeader(t.Context(), t.Name(), Target{Endpoint: e}, "a1"), "move leader from orders-0", "the Secret is missing")
	_, err := s.clients.Snapshot(t.Context(), t.Name(), Target{Endpoint: e})
	backuptest.WantError(t, err, "snapshot of orders-0", "the Secret is missing")
}

func snapshotIsStored(t *testing.T, s *etcdServers) {
	for i := range 50 {
		s.mustPut(fmt.Sprintf("key-%d", i), strings.Repeat("v", 1000))
	}
	backUpAndOpen(t, s)
}

// backUpAndOpen stores a snapshot of a real member, verifies it, and opens it as
// the database that it is.
func backUpAndOpen(t *testing.T, s *etcdServers) {
	t.Helper()
	stream, err := s.clients.Snapshot(t.Context(), "shop/orders", s.target(s.round(false), s.endpoints[0]))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	url := "file://" + dir + "/shop/orders.db?root=" + dir
	saved, err := backup.Store{}.Save(t.Context(), url, stream, backup.Manifest{Name: "orders"})
	if err = errors.Join(err, stream.Close()); err != nil {
		t.Fatal(err)
	}
	if m, err := (backup.Store{}).Verify(t.Context(), url); err != nil || !reflect.DeepEqual(m, saved) || saved.Size < 20<<10 {
		t.Errorf("stored %+v, read %+v, %v", saved, m, err)
	}
	path := dir + "/shop/orders.db"
	if err := os.Truncate(path, saved.Size-32); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		if keys := tx.Bucket([]byte("key")); keys == nil || keys.Stats().KeyN == 0 {
			return errors.New("the database holds no keys")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func connectionsAreKept(t *testing.T, s *etcdServers) {
	e := s.endpoints[0]
	client := func() *memberClient {
		c, err := s.clients.client(t.Name(), e)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := client()
	if client() != first {
		t.Error("the connection was not kept")
	}
	e.Incarnation = "2"
	second := client()
	if second == first || first.etcd.Ctx().Err() == nil {
		t.Error("the connection to an earlier incarnation is still used, or open")
	}
	s.clients.Forget(t.Name())
	if second.etcd.Ctx().Err() == nil || client() == second {
		t.Error("the connection of a cluster that was forgotten is still used, or open")
	}
	s.clients.Forget(t.Name())
}

func downMemberIsNamed(t *testing.T, s *etcdServers) {
	t.Run("one that hangs", func(t *testing.T) {
		hung := s.processes[2].Process
		if err := hung.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		r := s.await("the others to go on", func(r plan.Round) bool { return r.Problem == "" && memberOf(t, r, "orders-0").Problem == "" })
		if m := memberOf(t, r, "orders-2"); m.Problem == "" || time.Since(begun) > 30*time.Second {
			t.Errorf("member %+v after %s", m, time.Since(begun))
		}
		if err := hung.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	})
	kill(s.processes[2])
	r := s.await("the others to go on", func(r plan.Round) bool {
		return r.Problem == "" && len(r.Members) == 3 && memberOf(t, r, "orders-0").Problem == "" && memberOf(t, r, "orders-1").Problem == ""
	})
	if m := memberOf(t, r, "orders-2"); m.Problem == "" || m.Version != "" {
		t.Errorf("member %+v", m)
	}
	// A member without a pod is in the list, too.
	all := s.endpoints
	s.endpoints = all[:2]
	if m := memberOf(t, s.round(false), "orders-2"); m.Problem != "it has no pod with an address" {
		t.Errorf("member %+v", m)
	}
	s.endpoints = all
	s.processes[2] = s.start[2]()
	s.await("the member to be back over its old connection", func(r plan.Round) bool { return troubleOf(r) == "" })
}

func noQuorumNoList(t *testing.T, s *etcdServers) {
	kill(s.processes[1])
	kill(s.processes[2])
	r := s.round(true)
	if r.Problem == "" || r.ClusterID != "" || len(r.Members) != 3 {
		t.Fatalf("round %+v", r)
	}
	// The one that is left still says how far it is; nobody confirms it.
	if m := r.Members[0]; m.ID == "" || m.Revision == 0 || m.Applied == 0 || m.Term == 0 || !strings.Contains(m.Problem, "linearizable read") {
		t.Errorf("the member that is left: %+v", m)
	}
	if m := r.Members[1]; m.ID != "" || m.Problem == "" {
		t.Errorf("a member that is gone: %+v", m)
	}
	if none := s.clients.Round(t.Context(), "shop/orders", nil, false); none.Problem != "no member has an address yet" {
		t.Errorf("a round of nobody: %+v", none)
	}
}

// The oldest release that quorate talks to, in clear text: it tells less of
// itself.
func TestRealOldMembersInClearText(t *testing.T) {
	s := startEtcd(t, oldEtcdBinary, 3, false)
	s.mustPut("greeting", "hello")
	r := s.await("the cluster version", func(r plan.Round) bool { return r.ClusterVersion == "3.4.0" && troubleOf(r) == "" })
	for _, m := range r.Members {
		if m.Version != "3.4.34" || m.StorageVersion != "" || m.Quota != 0 || m.Term == 0 || m.Commit == 0 || m.Applied == 0 {
			t.Errorf("member %+v", m)
		}
	}
	hashesAgree(t, s)
	leadershipMoves(t, s)
	backUpAndOpen(t, s)
}

func TestAlarmIsSeen(t *testing.T) {
	s := startEtcd(t, newEtcdBinary, 1, true, "--quota-backend-bytes=2097152")
	// The size is that of the last commit, so some more writes get through; and what
	// is refused may be the one that would have gone beyond the quota.
	for i := range 500 {
		// On a busy machine a write may time out, which is not what is awaited.
		if err := s.put(fmt.Sprintf("key-%d", i), strings.Repeat("v", 256<<10)); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
	}
	r := s.await("the alarm", func(r plan.Round) bool { return len(r.Alarms) > 0 })
	m := r.Members[0]
	if want := (plan.Alarm{Kind: plan.NoSpace, MemberID: m.ID}); r.Alarms[0] != want || m.Problem != "" || m.DBSize == 0 || m.Quota != 2097152 {
		t.Errorf("alarms %q, member %+v", r.Alarms, m)
	}
}

// A connection is kept for as long as the pod and the certificates are the same: one
// of an earlier pod would ask whoever has its address now.
func TestAConnectionIsOfOneIncarnation(t *testing.T) {
	c := NewClients()
	defer c.Forget("shop/orders")
	dial := func(member, incarnation string) *memberClient {
		m, err := c.client("shop/orders", Endpoint{Member: member, Address: "127.0.0.1:1", Incarnation: incarnation})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first, other := dial("orders-0", "1"), dial("orders-1", "1")
	if first == other || dial("orders-0", "1") != first {
		t.Error("the connection to a member is not kept")
	}
	if dial("orders-0", "2") == first || dial("orders-1", "1") != other {
		t.Error("the connection to an earlier pod is kept")
	}
}
