package reconciler

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// theirs is an authority that is not quorate's.
type theirs struct {
	*testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// above is what this authority's own certificate is signed by, nil for none.
	above *theirs
}

// newTheirs is an authority that is valid from now on.
func newTheirs(t *testing.T, now time.Time, life time.Duration, above *theirs) *theirs {
	t.Helper()
	a := &theirs{T: t, above: above}
	a.cert = &x509.Certificate{
		Subject: pkix.Name{CommonName: "theirs"}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer := above
	if signer == nil {
		signer = a
	}
	var der []byte
	a.key, der = a.sign(a.cert, signer)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign signs a certificate for a new key.
func (a *theirs) sign(cert *x509.Certificate, signer *theirs) (*ecdsa.PrivateKey, []byte) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	if signer.key == nil {
		signer.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, signer.cert, key.Public(), signer.key)
	if err != nil {
		a.Fatal(err)
	}
	return key, der
}

// root is the authority that people trust.
func (a *theirs) root() *theirs {
	if a.above != nil {
		return a.above.root()
	}
	return a
}

// issue is a Secret as cert-manager makes them, for a day.
func (a *theirs) issue(name string, hosts []string, usages ...x509.ExtKeyUsage) *corev1.Secret {
	a.Helper()
	key, der := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: hosts, ExtKeyUsage: usages,
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotBefore.Add(24 * time.Hour),
	}, a)
	encoded := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	chain := encoded("CERTIFICATE", der)
	for up := a; up.above != nil; up = up.above {
		chain = append(chain, encoded("CERTIFICATE", up.cert.Raw)...)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			"tls.crt": chain, "tls.key": encoded("EC PRIVATE KEY", keyDER), "ca.crt": encoded("CERTIFICATE", a.root().cert.Raw),
		},
	}
}

// theirHosts are the names that the server's certificate needs; without the
// first two, those of the peers'.
func theirHosts() []string {
	return []string{"localhost", "orders-client.shop.svc", "*.orders-peers.shop.svc"}
}

// theirSecrets are the three Secrets of namedTLS.
func theirSecrets(a *theirs) map[string]*corev1.Secret {
	a.Helper()
	return map[string]*corev1.Secret{
		"their-server": a.issue("their-server", theirHosts(), x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth),
		"their-peer":   a.issue("their-peer", theirHosts()[2:], x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth),
		"their-client": a.issue("their-client", nil, x509.ExtKeyUsageClientAuth),
	}
}

const day = 24 * time.Hour

// 144 148: what is wrong with Secrets that somebody else makes is named, with
// the Secret and the key; nothing of it is ever missing in the sense that quorate
// would issue it.
func TestNamedCertificatesAreChecked(t *testing.T) {
	now := certificateEpoch
	a := newTheirs(t, now, 10*day, nil)
	between := newTheirs(t, now, 10*day, a)
	stranger := newTheirs(t, now, 10*day, nil)
	short := newTheirs(t, now, 14*time.Hour, nil)
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	put := func(s *corev1.Secret) func(map[string]*corev1.Secret) {
		return func(all map[string]*corev1.Secret) { all[s.Name] = s }
	}
	key := func(secret, key, value string) func(map[string]*corev1.Secret) {
		return func(all map[string]*corev1.Secret) {
			all[secret] = all[secret].DeepCopy()
			all[secret].Data[key] = []byte(value)
		}
	}
	for name, tc := range map[string]struct {
		change func(map[string]*corev1.Secret)
		edit   func(*schema.EtcdCluster)
		now    time.Time
		want   []string
	}{
		"good":                {},
		"an authority above":  {change: func(all map[string]*corev1.Secret) { maps.Copy(all, theirSecrets(between)) }},
		"two authorities":     {change: put(stranger.issue("their-peer", theirHosts()[2:], server, client))},
		"any usage":           {change: put(a.issue("their-server", theirHosts()))},
		"missing":             {change: func(all map[string]*corev1.Secret) { delete(all, "their-peer") }, want: []string{"their-peer does not exist: create the Secret with the keys tls.crt, tls.key, ca.crt"}},
		"no certificate":      {change: key("their-server", "tls.crt", ""), want: []string{"their-server has no key tls.crt: it needs tls.crt, tls.key, ca.crt"}},
		"no key":              {change: key("their-client", "tls.key", ""), want: []string{"their-client has no key tls.key"}},
		"no authority":        {change: key("their-peer", "ca.crt", ""), want: []string{"their-peer has no key ca.crt"}},
		"an authority of air": {change: key("their-peer", "ca.crt", "air"), want: []string{"their-peer has no usable ca.crt: no certificate in it"}},
		"no pair": {change: func(all map[string]*corev1.Secret) {
			key("their-server", "tls.key", string(all["their-peer"].Data["tls.key"]))(all)
		}, want: []string{"their-server has no usable tls.crt and tls.key: "}},
		"expired":              {now: now.Add(day), want: []string{"their-server expired on 2026-11-21", "their-peer expired", "their-client expired"}},
		"not yet":              {now: now.Add(-time.Hour), want: []string{"their-server is not valid before 2026-11-20T11:59:00Z", "their-peer is not", "their-client is not"}},
		"no localhost":         {change: put(a.issue("their-server", theirHosts()[1:], server, client)), want: []string{"their-server does not cover localhost"}},
		"not the Service":      {change: put(a.issue("their-server", []string{"localhost", theirHosts()[2]}, server, client)), want: []string{"their-server does not cover orders-client.shop.svc"}},
		"one member too few":   {change: put(a.issue("their-peer", []string{"orders-0.orders-peers.shop.svc", "orders-1.orders-peers.shop.svc"}, server, client)), want: []string{"their-peer does not cover orders-2.orders-peers.shop.svc"}},
		"server only":          {change: put(a.issue("their-peer", theirHosts()[2:], server)), want: []string{"their-peer lacks the usage clientAuth"}},
		"client only":          {change: put(a.issue("their-server", theirHosts(), client)), want: []string{"their-server lacks the usage serverAuth"}},
		"a client for servers": {change: put(a.issue("their-client", nil, server)), want: []string{"their-client lacks the usage clientAuth"}},
		"a strange client": {change: put(stranger.issue("their-client", nil, client)), want: []string{
			"their-client does not trust their-server: its ca.crt is not the authority that signed it",
			"their-server does not trust their-client: its ca.crt is not",
		}},
		"a strange authority": {change: key("their-peer", "ca.crt", string(stranger.issue("x", nil).Data["ca.crt"])), want: []string{"their-peer does not trust their-peer"}},
		"an authority that expires first": {
			change: func(all map[string]*corev1.Secret) { maps.Copy(all, theirSecrets(short)) }, now: now.Add(15 * time.Hour),
			want: []string{"their-server is signed by an authority that expired on 2026-11-21", "their-client is signed by", "their-peer is signed by"},
		},
		"the file names a domain": {
			edit: func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = "example.org"; c.Spec.Replicas = 1 },
			want: []string{
				"their-server does not cover orders-client.shop.svc.example.org", "their-server does not cover orders-0.orders-peers.shop.svc.example.org",
				"their-peer does not cover orders-0.orders-peers.shop.svc.example.org",
			},
		},
		"a name that is quorate's": {
			edit:   func(c *schema.EtcdCluster) { c.Spec.TLS.Secrets.Client = "orders-client" },
			change: put(a.issue("orders-client", nil, client)), want: []string{"orders-client is the name that tls.mode Managed uses for its own Secrets"},
		},
		"one Secret for all": {
			edit: func(c *schema.EtcdCluster) {
				c.Spec.TLS.Secrets = schema.TLSSecretNames{Server: "all", Peer: "all", Client: "all"}
			},
			change: put(a.issue("all", theirHosts(), server, client)),
		},
		"one Secret for all, and it is missing": {
			edit: func(c *schema.EtcdCluster) {
				c.Spec.TLS.Secrets = schema.TLSSecretNames{Server: "all", Peer: "all", Client: "all"}
			},
			want: []string{"all does not exist"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := theirSecrets(a)
			if tc.change != nil {
				tc.change(all)
			}
			c := clustertest.Orders(clustertest.NamedTLS)
			if tc.edit != nil {
				tc.edit(&c)
			}
			at := tc.now
			if at.IsZero() {
				at = now
			}
			status := certs.Check(c, "cluster.local", all, at)
			same := slices.EqualFunc(status.Problems, tc.want, strings.HasPrefix)
			if !same || len(status.Missing) > 0 {
				t.Errorf("missing %q, problems\n%s\nwant\n%s", status.Missing, strings.Join(status.Problems, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
	if status := certs.Check(clustertest.Orders(clustertest.NamedTLS), "", theirSecrets(short), now); !status.NotAfter.Equal(now.Add(14 * time.Hour)) {
		t.Errorf("the first expires at %s: the authority's counts, too", status.NotAfter)
	}
	if missing, err := certs.Issue(clustertest.Orders(clustertest.NamedTLS), "", nil, now); err != nil || missing != nil {
		t.Errorf("would issue %v, %v", missing, err)
	}
}

// putTheirs has somebody else create the Secrets.
func (w *world) putTheirs(secrets map[string]*corev1.Secret) {
	w.Helper()
	for name, s := range secrets {
		created, err := w.api.CoreV1().Secrets("shop").Create(w.Context(), s, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		secrets[name] = created
	}
	w.api.ClearActions()
}

// 144: a cluster comes up with Secrets of somebody else, waits for them, uses
// them for its own connections, and writes to none of them.
func TestAClusterWithSecretsOfSomebodyElse(t *testing.T) {
	inWorld(t, func(w *world) {
		w.wantHold(plan.HoldUnhealthy, "certificates", "their-server does not exist: create the Secret")
		if writes := w.api.writes(); len(writes) > 0 {
			t.Errorf("wrote %q while Secrets are missing", writes)
		}
		secrets := theirSecrets(newTheirs(t, time.Now(), 10*day, nil))
		w.putTheirs(secrets)
		w.untilIdle()
		for _, request := range w.api.writes() {
			if strings.Contains(request, " secrets ") {
				t.Errorf("%s", request)
			}
		}
		for name, secret := range secrets {
			got, err := w.api.CoreV1().Secrets("shop").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(got.Labels) > 0 || got.ResourceVersion != secret.ResourceVersion {
				t.Errorf("%s was touched: labels %v, version %s, was %s, %v", name, got.Labels, got.ResourceVersion, secret.ResourceVersion, err)
			}
		}
		w.wantDialledWith(secrets["their-client"])
		w.mustPass()
		w.api.ClearActions()
		w.mustPass()
		if requests := w.api.requests(); len(requests) > 0 {
			t.Errorf("requests at rest: %q", requests)
		}
	}, clustertest.NamedTLS)
}

// wantDialledWith wants the members to be dialled with the certificate of a
// Secret, under the names that the server's certificate has.
func (w *world) wantDialledWith(secret *corev1.Secret) {
	w.Helper()
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		w.Fatal(err)
	}
	endpoints := w.look().endpoints
	if len(endpoints) != 3 {
		w.Fatalf("endpoints %v", endpoints)
	}
	for _, e := range endpoints {
		config, err := e.TLS()
		if err != nil {
			w.Fatal(err)
		}
		if !config.Certificates[0].Leaf.Equal(pair.Leaf) || config.ServerName != e.Member+".orders-peers.shop.svc" {
			w.Errorf("%s is dialled as %s with %v", e.Member, config.ServerName, config.Certificates[0].Leaf.Subject)
		}
	}
}

// What is kept of the Secrets is kept for the file that named them.
func TestOtherNamesOfSecretsAreReadAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		secrets := theirSecrets(newTheirs(t, time.Now(), 10*day, nil))
		w.putTheirs(secrets)
		w.untilIdle()
		w.mustPass()
		other := secrets["their-client"].DeepCopy()
		other.Name, other.ResourceVersion = "other-client", ""
		w.putTheirs(map[string]*corev1.Secret{"other-client": other})
		w.wish.Spec.TLS.Secrets.Client = "other-client"
		w.wantDialledWith(other)
	}, clustertest.NamedTLS)
}

// 145: Secrets that their maker renews are taken up within the time in which they
// are read again, and one that goes wrong holds the cluster.
func TestRenewedSecretsOfSomebodyElseAreTakenUp(t *testing.T) {
	inWorld(t, func(w *world) {
		a := newTheirs(t, time.Now(), 10*day, nil)
		w.putTheirs(theirSecrets(a))
		w.untilIdle()
		update := func(s *corev1.Secret) {
			t.Helper()
			if _, err := w.api.CoreV1().Secrets("shop").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		before := w.look().endpoints[0].Incarnation
		renewed := a.issue("their-client", nil, x509.ExtKeyUsageClientAuth)
		update(renewed)
		time.Sleep(certificateRecheck)
		w.wantDialledWith(renewed)
		if after := w.look().endpoints[0].Incarnation; after == before {
			t.Error("the connection with the old certificate would be kept")
		}
		bad := renewed.DeepCopy()
		delete(bad.Data, "ca.crt")
		update(bad)
		time.Sleep(certificateRecheck)
		w.wantHold(plan.HoldUnhealthy, "certificates", "their-client has no key ca.crt")
		update(renewed)
		w.untilIdle() // at once: what is wrong is read at each look
	}, clustertest.NamedTLS)
}

// 145: an option rolls a cluster with Secrets of somebody else, as any other.
func TestAnOptionRollsAClusterWithSecretsOfSomebodyElse(t *testing.T) {
	inWorld(t, func(w *world) {
		w.putTheirs(theirSecrets(newTheirs(t, time.Now(), 10*day, nil)))
		w.untilIdle()
		before := w.pod("orders-0").UID
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"} })
		w.untilIdle()
		if w.pod("orders-0").UID == before {
			t.Error("no member was restarted")
		}
		w.commit(func(c *schema.EtcdCluster) { c.Spec.TLS.Secrets.Server = "another" })
		w.wantHold(plan.HoldRefused, "immutable", "spec.tls.secrets.server (their-server to another) cannot be changed")
	}, clustertest.NamedTLS)
}

// A Secret that cannot be read is no Secret that is missing.
func TestSecretsThatCannotBeReadAreAnError(t *testing.T) {
	inWorld(t, func(w *world) {
		w.api.PrependReactor("get", "secrets", forbidden)
		_, err := w.pass()
		backuptest.WantError(t, err, "observe shop/orders", "read Secret their-server", "forbidden")
	}, clustertest.NamedTLS)
}

// forbidden is the answer of an API server to somebody who may not.
func forbidden(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(apischema.GroupResource{Resource: "secrets"}, "their-server", nil)
}
