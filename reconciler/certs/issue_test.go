package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// certificateEpoch is when the tests' certificates are issued. The handshakes
// look at it instead of the machine's clock.
var certificateEpoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// What they live for where a file does not say.
const (
	leafLifetime      = 365 * 24 * time.Hour
	authorityLifetime = 10 * leafLifetime
)

func clusterForCertificates() schema.EtcdCluster {
	return schema.EtcdCluster{
		Metadata: schema.Metadata{Name: "orders", Namespace: "shop", Labels: map[string]string{"team": "checkout", naming.LabelCluster: "no"}},
		Spec:     schema.ClusterSpec{Replicas: 3, TLS: schema.TLSSpec{Mode: schema.TLSManaged}},
	}
}

func issueCertificates(t *testing.T, c schema.EtcdCluster, existing map[string]*corev1.Secret, now time.Time) (all map[string]*corev1.Secret, names []string) {
	t.Helper()
	missing, err := Issue(c, "cluster.local", existing, now)
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]*corev1.Secret{}
	for name, s := range existing {
		all[name] = s
	}
	for _, s := range missing {
		names = append(names, s.Name)
		all[s.Name] = s
	}
	return all, names
}

// memberTLS is how an etcd member configures a port: its leaf, and the authority
// in the leaf's Secret for those that dial it.
func memberTLS(t *testing.T, leaf *corev1.Secret, serverName string) *tls.Config {
	t.Helper()
	config, err := ClientTLS(leaf, serverName)
	if err != nil {
		t.Fatal(err)
	}
	config.ClientCAs = config.RootCAs
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.Time = func() time.Time { return certificateEpoch.Add(time.Hour) }
	return config
}

// handshake connects the two over loopback, passes a byte each way, and returns
// the server's and the client's error.
func handshake(t *testing.T, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	done := make(chan error, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		conn := tls.Server(raw, server)
		defer func() { _ = conn.Close() }()
		_, err = io.CopyN(conn, conn, 1)
		done <- err
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, client)
	_, clientErr = conn.Write([]byte("x"))
	if clientErr == nil {
		_, clientErr = io.ReadFull(conn, make([]byte, 1))
	}
	_ = conn.Close()
	return <-done, clientErr
}

func TestCertificateHandshakes(t *testing.T) {
	all, _ := issueCertificates(t, clusterForCertificates(), nil, certificateEpoch)
	other := clusterForCertificates()
	other.Metadata.Name = "other"
	others, _ := issueCertificates(t, other, nil, certificateEpoch)
	server, client, peer := all["orders-server"], all["orders-client"], all["orders-peer"]
	const member = "orders-2.orders-peers.shop.svc"
	for name, tc := range map[string]struct {
		at, from *corev1.Secret
		host     string
		good     bool
	}{
		"client to service":              {server, client, "orders-client.shop.svc", true},
		"client to service with domain":  {server, client, "orders-client.shop.svc.cluster.local", true},
		"client to short service":        {server, client, "orders-client", true},
		"client to member":               {server, client, member, true},
		"client to localhost":            {server, client, "localhost", true},
		"client to 127.0.0.1":            {server, client, "127.0.0.1", true},
		"client to ::1":                  {server, client, "::1", true},
		"member to its own client port":  {server, server, "localhost", true},
		"peer to peer":                   {peer, peer, member + ".cluster.local", true},
		"client to peer port":            {peer, client, member, false},
		"server leaf to peer port":       {peer, server, member, false},
		"peer to client port":            {server, peer, member, false},
		"client to a member to come":     {server, client, "orders-6.orders-peers.shop.svc", true},
		"client to a member beyond":      {server, client, "orders-7.orders-peers.shop.svc", false},
		"client to another namespace":    {server, client, "orders-client.prod.svc", false},
		"another cluster's client":       {server, others["other-client"], "orders-client", false},
		"client leaf passing for server": {client, client, "", false},
		"another cluster's peer":         {peer, others["other-peer"], member, false},
	} {
		t.Run(name, func(t *testing.T) {
			serverErr, clientErr := handshake(t, memberTLS(t, tc.at, ""), memberTLS(t, tc.from, tc.host))
			if good := serverErr == nil && clientErr == nil; good != tc.good {
				t.Errorf("good %v, want %v: server %v, client %v", good, tc.good, serverErr, clientErr)
			}
		})
	}
}

// The peer port must refuse a client even if the client trusts whatever it finds
// there: it is the server's refusal that keeps clients out.
func TestPeerPortRefusesClients(t *testing.T) {
	all, _ := issueCertificates(t, clusterForCertificates(), nil, certificateEpoch)
	client := memberTLS(t, all["orders-client"], "orders-0.orders-peers.shop.svc")
	client.InsecureSkipVerify = true
	// A polite client sends nothing that the server did not ask for.
	client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &client.Certificates[0], nil
	}
	serverErr, _ := handshake(t, memberTLS(t, all["orders-peer"], ""), client)
	if serverErr == nil || !strings.Contains(serverErr.Error(), "unknown authority") {
		t.Errorf("server: %v", serverErr)
	}
}

func TestCertificateSecretsAreComplete(t *testing.T) {
	c := clusterForCertificates()
	all, names := issueCertificates(t, c, nil, certificateEpoch)
	if want := []string{"orders-ca", "orders-server", "orders-client", "orders-peer-ca", "orders-peer"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
	for name, s := range all {
		wantType, keys := corev1.SecretTypeTLS, []string{"ca.crt", "tls.crt", "tls.key"}
		if strings.HasSuffix(name, "-ca") {
			wantType, keys = corev1.SecretTypeOpaque, []string{"ca.crt", "ca.key"}
		}
		if s.Type != wantType || len(s.Data) != len(keys) || s.Namespace != "shop" {
			t.Errorf("%s: type %s, %d keys, namespace %s", name, s.Type, len(s.Data), s.Namespace)
		}
		for _, key := range keys {
			if len(s.Data[key]) == 0 {
				t.Errorf("%s lacks %s", name, key)
			}
		}
		if s.Labels["team"] != "checkout" || s.Labels["quorate.dev/cluster"] != "orders" || s.Labels["app.kubernetes.io/managed-by"] != "quorate" {
			t.Errorf("%s: labels %v", name, s.Labels)
		}
	}
	status := Check(c, "cluster.local", all, certificateEpoch)
	if len(status.Missing)+len(status.Problems) > 0 || !status.NotAfter.Equal(certificateEpoch.Add(leafLifetime)) {
		t.Errorf("%+v", status)
	}
	if missing, err := Issue(c, "cluster.local", all, certificateEpoch); err != nil || len(missing) != 0 {
		t.Errorf("second run: %v, %v", missing, err)
	}
}

func TestCertificateContents(t *testing.T) {
	all, _ := issueCertificates(t, clusterForCertificates(), nil, certificateEpoch)
	serials := map[string]bool{}
	for _, name := range []string{"orders-server", "orders-client", "orders-peer", "orders-ca", "orders-peer-ca"} {
		key := corev1.TLSCertKey
		if strings.HasSuffix(name, "-ca") {
			key = naming.AuthorityCertKey
		}
		cert, err := firstCertificate(all[name].Data[key])
		if err != nil {
			t.Fatal(err)
		}
		if cert.PublicKeyAlgorithm != x509.ECDSA || !cert.NotBefore.Equal(certificateEpoch.Add(-5*time.Minute)) || !cert.BasicConstraintsValid {
			t.Errorf("%s: %v from %v", name, cert.PublicKeyAlgorithm, cert.NotBefore)
		}
		if cert.IsCA != strings.HasSuffix(name, "-ca") || cert.IsCA != (cert.KeyUsage&x509.KeyUsageCertSign != 0) {
			t.Errorf("%s: authority %v, usage %v", name, cert.IsCA, cert.KeyUsage)
		}
		if serials[cert.SerialNumber.String()] || cert.SerialNumber.BitLen() < 64 {
			t.Errorf("%s: serial %v", name, cert.SerialNumber)
		}
		serials[cert.SerialNumber.String()] = true
		if name == "orders-client" && (cert.Subject.CommonName != "root" || len(cert.DNSNames)+len(cert.IPAddresses) > 0 || len(cert.ExtKeyUsage) != 1) {
			t.Errorf("client: %v %v %v", cert.Subject, cert.DNSNames, cert.ExtKeyUsage)
		}
	}
}

func TestMissingLeafIsSignedByTheExistingAuthority(t *testing.T) {
	c := clusterForCertificates()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	before := bytes.Clone(all["orders-ca"].Data[naming.AuthorityCertKey])
	delete(all, "orders-server")
	delete(all, "orders-peer")
	later := certificateEpoch.Add(24 * time.Hour)
	again, names := issueCertificates(t, c, all, later)
	if want := []string{"orders-server", "orders-peer"}; !slices.Equal(names, want) {
		t.Errorf("issued %v, want %v", names, want)
	}
	if !bytes.Equal(before, again["orders-ca"].Data[naming.AuthorityCertKey]) || !bytes.Equal(before, again["orders-server"].Data[naming.AuthorityCertKey]) {
		t.Error("the authority changed")
	}
	if status := Check(c, "cluster.local", again, later); len(status.Missing)+len(status.Problems) > 0 {
		t.Errorf("%+v", status)
	}
}

func TestLeafDoesNotOutliveItsAuthority(t *testing.T) {
	c := clusterForCertificates()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	delete(all, "orders-client")
	end := certificateEpoch.Add(authorityLifetime)
	again, _ := issueCertificates(t, c, all, end.Add(-time.Hour))
	cert, err := firstCertificate(again["orders-client"].Data[corev1.TLSCertKey])
	if err != nil || !cert.NotAfter.Equal(end) {
		t.Errorf("%v, %v, want %v", cert.NotAfter, err, end)
	}
	_, err = Issue(c, "", all, end.Add(time.Second))
	backuptest.WantError(t, err, "certificates of shop/orders", "orders-ca", "expired on 2036-11-17")
}

// 609: a renewed certificate is good at once on machines whose clocks are hours behind quorate's, such as by a
// time zone, as far as its authority is; and it is not renewed again for that.
func TestARenewedCertificateIsGoodWhereClocksAreBehind(t *testing.T) {
	c := clusterForCertificates()
	for _, lives := range []struct {
		life, age, behind time.Duration
	}{
		{365 * 24 * time.Hour, 1000 * time.Hour, 24 * time.Hour},
		{10 * time.Hour, 20 * time.Hour, time.Hour},
		{10 * time.Minute, time.Hour, 5 * time.Minute},
		{365 * 24 * time.Hour, 0, 5 * time.Minute}, // as its authority
	} {
		c.Spec.TLS.Lifetimes.Certificate = &metav1.Duration{Duration: lives.life}
		all, _ := issueCertificates(t, c, nil, certificateEpoch)
		delete(all, "orders-peer")
		now := certificateEpoch.Add(lives.age)
		again, _ := issueCertificates(t, c, all, now)
		cert, err := firstCertificate(again["orders-peer"].Data[corev1.TLSCertKey])
		if err != nil || !cert.NotBefore.Equal(now.Add(-lives.behind)) {
			t.Errorf("life %s: good from %v on, %v, want %s before %s", lives.life, cert.NotBefore, err, lives.behind, now)
		}
		if status := Check(c, "cluster.local", again, now); slices.Contains(status.Due, "orders-peer") {
			t.Errorf("life %s: it is due at once", lives.life)
		}
	}
}

func TestCertificateSecretsRefuse(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(all map[string]*corev1.Secret)
		want   string
	}{
		"authority and one leaf gone": {func(all map[string]*corev1.Secret) { delete(all, "orders-ca"); delete(all, "orders-server") }, "delete orders-client too"},
		"key gone": {func(all map[string]*corev1.Secret) {
			delete(all, "orders-client")
			delete(all["orders-ca"].Data, authorityKeyKey)
		}, "issue orders-client with orders-ca"},
		"another cluster's": {func(all map[string]*corev1.Secret) {
			delete(all, "orders-peer")
			all["orders-peer-ca"].Labels[naming.LabelCluster] = "orders-peer"
		}, "belongs to the cluster orders-peer"},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := issueCertificates(t, clusterForCertificates(), nil, certificateEpoch)
			tc.change(all)
			missing, err := Issue(clusterForCertificates(), "cluster.local", all, certificateEpoch)
			backuptest.WantError(t, err, tc.want)
			if len(missing) > 0 {
				t.Errorf("issued %d Secrets all the same", len(missing))
			}
		})
	}
}

func TestCheckCertificatesFindsProblems(t *testing.T) {
	c := clusterForCertificates()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	fresh, _ := issueCertificates(t, c, nil, certificateEpoch)
	with := func(name string, s *corev1.Secret) map[string]*corev1.Secret {
		changed := map[string]*corev1.Secret{name: s}
		for n, s := range all {
			if n != name {
				changed[n] = s
			}
		}
		return changed
	}
	moved := c
	moved.Metadata.Namespace = "other"
	empty := &corev1.Secret{}
	for name, tc := range map[string]struct {
		cluster schema.EtcdCluster
		secrets map[string]*corev1.Secret
		now     time.Time
		want    string
	}{
		"not yet":           {c, all, certificateEpoch.Add(-time.Hour), "orders-ca is not valid before 2026-11-20T11:55:00Z"},
		"elsewhere":         {moved, all, certificateEpoch, "orders-peer does not cover orders-0.orders-peers.other.svc"},
		"foreign leaf":      {c, with("orders-client", fresh["orders-client"]), certificateEpoch, "orders-client is not signed by orders-ca"},
		"foreign authority": {c, with("orders-peer-ca", fresh["orders-peer-ca"]), certificateEpoch, "orders-peer is not signed by orders-peer-ca"},
		"wrong usage":       {c, with("orders-server", all["orders-client"]), certificateEpoch, "orders-server lacks the usage serverAuth"},
		"empty leaf":        {c, with("orders-peer", empty), certificateEpoch, "orders-peer has no usable tls.crt and tls.key"},
	} {
		status := Check(tc.cluster, "cluster.local", tc.secrets, tc.now)
		if !slices.ContainsFunc(status.Problems, func(p string) bool { return strings.HasPrefix(p, tc.want) }) {
			t.Errorf("%s: problems %q, want %q", name, status.Problems, tc.want)
		}
	}
	if status := Check(c, "cluster.local", all, certificateEpoch.Add(authorityLifetime+time.Minute)); len(status.Problems) > 0 || status.Rotation.Over != "orders-peer-ca expired on 2036-11-17" {
		t.Errorf("expired authorities: problems %q, over: %q", status.Problems, status.Rotation.Over)
	}
	status := Check(c, "cluster.local", nil, certificateEpoch)
	if len(status.Missing) != 5 || len(status.Problems) != 0 || !status.NotAfter.IsZero() {
		t.Errorf("nothing there: %+v", status)
	}
}

func TestCertificatesOfADisabledCluster(t *testing.T) {
	c := clusterForCertificates()
	c.Spec.TLS.Mode = schema.TLSDisabled
	if missing, err := Issue(c, "", nil, certificateEpoch); err != nil || missing != nil {
		t.Errorf("%v, %v", missing, err)
	}
	if status := Check(c, "", nil, certificateEpoch); status.Missing != nil || status.Problems != nil {
		t.Errorf("%+v", status)
	}
}

func TestClientTLSRefusesABadSecret(t *testing.T) {
	all, _ := issueCertificates(t, clusterForCertificates(), nil, certificateEpoch)
	_, err := ClientTLS(nil, "")
	backuptest.WantError(t, err, "is missing")
	_, err = ClientTLS(all["orders-ca"], "")
	backuptest.WantError(t, err, "client TLS from Secret orders-ca")
	noCA := all["orders-client"].DeepCopy()
	noCA.Data[naming.AuthorityCertKey] = []byte("nothing")
	_, err = ClientTLS(noCA, "")
	backuptest.WantError(t, err, "ca.crt holds no certificate")
}

// narrow replaces the leaves by ones for the first members only, as they were
// issued once.
func narrow(t *testing.T, c schema.EtcdCluster, secrets map[string]*corev1.Secret, members int) {
	t.Helper()
	for _, l := range Leaves(c, "cluster.local") {
		l.Members = l.Members[:min(len(l.Members), members)]
		leaf, err := NewLeaf(c, l, secrets[l.Authority], certificateEpoch)
		if err != nil {
			t.Fatal(err)
		}
		secrets[l.Secret].Data = leaf.Data
	}
}

// Certificates are for all members that a cluster can have; those that are for
// fewer are issued anew before they are needed, and no sooner.
func TestCertificatesNameEveryMember(t *testing.T) {
	c := clusterForCertificates()
	all, _ := issueCertificates(t, c, nil, certificateEpoch)
	for replicas := int32(1); replicas <= 7; replicas++ {
		c.Spec.Replicas = replicas
		if status := Check(c, "cluster.local", all, certificateEpoch); len(status.Problems)+len(status.MissingSANs)+len(status.Missing) > 0 {
			t.Errorf("%d replicas: %+v", replicas, status)
		}
	}
	narrow(t, c, all, 3)
	c.Spec.Replicas = 3
	if status := Check(c, "cluster.local", all, certificateEpoch); len(status.Problems)+len(status.MissingSANs) > 0 {
		t.Errorf("three of three: %+v", status)
	}
	c.Spec.Replicas = 5
	status := Check(c, "cluster.local", all, certificateEpoch)
	if want := []string{"orders-server", "orders-peer"}; !slices.Equal(status.MissingSANs, want) || len(status.Problems) > 0 {
		t.Fatalf("%+v", status)
	}
	for _, leaf := range []string{"orders-server", "orders-peer"} {
		wide, err := Reissue(c, "cluster.local", leaf, all, certificateEpoch)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(wide.Data[naming.AuthorityCertKey], all[leaf].Data[naming.AuthorityCertKey]) {
			t.Errorf("%s trusts another authority", leaf)
		}
		all[leaf] = wide
	}
	c.Spec.Replicas = 7
	if status := Check(c, "cluster.local", all, certificateEpoch); len(status.Problems)+len(status.MissingSANs) > 0 {
		t.Errorf("widened: %+v", status)
	}
}
