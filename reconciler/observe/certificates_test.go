package observe_test

import (
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// 144 148: what is wrong with Secrets that another program makes is named, with
// the Secret and the key; nothing of it is ever missing in the sense that quorate
// would issue it.
func TestNamedCertificatesAreChecked(t *testing.T) {
	now := reconcilertest.CertificateEpoch
	a := observe.NewTheirs(t, now, 10*observe.Day, nil)
	between := observe.NewTheirs(t, now, 10*observe.Day, a)
	stranger := observe.NewTheirs(t, now, 10*observe.Day, nil)
	short := observe.NewTheirs(t, now, 14*time.Hour, nil)
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
		"an authority above":  {change: func(all map[string]*corev1.Secret) { maps.Copy(all, observe.TheirSecrets(between)) }},
		"two authorities":     {change: put(stranger.Issue("their-peer", observe.TheirHosts()[2:], server, client))},
		"any usage":           {change: put(a.Issue("their-server", observe.TheirHosts()))},
		"missing":             {change: func(all map[string]*corev1.Secret) { delete(all, "their-peer") }, want: []string{"their-peer does not exist: create the Secret with the keys tls.crt, tls.key, ca.crt"}},
		"no certificate":      {change: key("their-server", "tls.crt", ""), want: []string{"their-server has no key tls.crt: it needs tls.crt, tls.key, ca.crt"}},
		"no key":              {change: key("their-client", "tls.key", ""), want: []string{"their-client has no key tls.key"}},
		"no authority":        {change: key("their-peer", "ca.crt", ""), want: []string{"their-peer has no key ca.crt"}},
		"an authority of air": {change: key("their-peer", "ca.crt", "air"), want: []string{"their-peer has no usable ca.crt: no certificate in it"}},
		"no pair": {change: func(all map[string]*corev1.Secret) {
			key("their-server", "tls.key", string(all["their-peer"].Data["tls.key"]))(all)
		}, want: []string{"their-server has no usable tls.crt and tls.key: "}},
		"expired":              {now: now.Add(observe.Day), want: []string{"their-server expired on 2026-11-21", "their-peer expired", "their-client expired"}},
		"not yet":              {now: now.Add(-time.Hour), want: []string{"their-server is not valid before 2026-11-20T11:59:00Z", "their-peer is not", "their-client is not"}},
		"no localhost":         {change: put(a.Issue("their-server", observe.TheirHosts()[1:], server, client)), want: []string{"their-server does not cover localhost"}},
		"not the Service":      {change: put(a.Issue("their-server", []string{"localhost", observe.TheirHosts()[2]}, server, client)), want: []string{"their-server does not cover orders-client.shop.svc"}},
		"one member too few":   {change: put(a.Issue("their-peer", []string{"orders-0.orders-peers.shop.svc", "orders-1.orders-peers.shop.svc"}, server, client)), want: []string{"their-peer does not cover orders-2.orders-peers.shop.svc"}},
		"server only":          {change: put(a.Issue("their-peer", observe.TheirHosts()[2:], server)), want: []string{"their-peer lacks the usage clientAuth"}},
		"client only":          {change: put(a.Issue("their-server", observe.TheirHosts(), client)), want: []string{"their-server lacks the usage serverAuth"}},
		"a client for servers": {change: put(a.Issue("their-client", nil, server)), want: []string{"their-client lacks the usage clientAuth"}},
		"a strange client": {change: put(stranger.Issue("their-client", nil, client)), want: []string{
			"their-client does not trust their-server: its ca.crt is not the authority that signed it, which must stay in it until their-server is signed by another",
			"their-server does not trust their-client: its ca.crt is not",
		}},
		"a strange authority": {change: key("their-peer", "ca.crt", string(stranger.Issue("x", nil).Data["ca.crt"])), want: []string{"their-peer does not trust their-peer"}},
		"an authority that expires first": {
			change: func(all map[string]*corev1.Secret) { maps.Copy(all, observe.TheirSecrets(short)) }, now: now.Add(15 * time.Hour),
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
			change: put(a.Issue("orders-client", nil, client)), want: []string{"orders-client is the name that tls.mode Managed uses for its own Secrets"},
		},
		"one Secret for all": {
			edit: func(c *schema.EtcdCluster) {
				c.Spec.TLS.Secrets = schema.TLSSecretNames{Server: "all", Peer: "all", Client: "all"}
			},
			change: put(a.Issue("all", observe.TheirHosts(), server, client)),
		},
		"one Secret for all, and it is missing": {
			edit: func(c *schema.EtcdCluster) {
				c.Spec.TLS.Secrets = schema.TLSSecretNames{Server: "all", Peer: "all", Client: "all"}
			},
			want: []string{"all does not exist"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := observe.TheirSecrets(a)
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
	if status := certs.Check(clustertest.Orders(clustertest.NamedTLS), "", observe.TheirSecrets(short), now); !status.NotAfter.Equal(now.Add(14 * time.Hour)) {
		t.Errorf("the first expires at %s: the authority's counts, too", status.NotAfter)
	}
	if missing, err := certs.Issue(clustertest.Orders(clustertest.NamedTLS), "", nil, now); err != nil || missing != nil {
		t.Errorf("would issue %v, %v", missing, err)
	}
}

// 144: a cluster comes up with Secrets of another issuer, waits for them, uses
// them for its own connections, and writes to none of them.
func TestAClusterWithSecretsOfAnotherIssuer(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.WantHold(decision.Unhealthy, "certificates", "their-server does not exist: create the Secret")
		if writes := w.API.Writes(); len(writes) > 0 {
			t.Errorf("wrote %q while Secrets are missing", writes)
		}
		secrets := observe.TheirSecrets(observe.NewTheirs(t, time.Now(), 10*observe.Day, nil))
		w.PutTheirs(secrets)
		w.UntilIdle()
		for _, request := range w.API.Writes() {
			if strings.Contains(request, " secrets ") && !strings.Contains(request, "orders-trust-") {
				t.Errorf("%s", request)
			}
		}
		for name, secret := range secrets {
			got, err := w.API.CoreV1().Secrets("shop").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(got.Labels) > 0 || got.ResourceVersion != secret.ResourceVersion {
				t.Errorf("%s was touched: labels %v, version %s, was %s, %v", name, got.Labels, got.ResourceVersion, secret.ResourceVersion, err)
			}
		}
		w.WantDialledWith(secrets["their-client"])
		w.MustPass()
		w.API.ClearActions()
		w.MustPass()
		if requests := w.API.Requests(); len(requests) > 0 {
			t.Errorf("requests at rest: %q", requests)
		}
	}, clustertest.NamedTLS)
}

// What is kept of the Secrets is kept for the file that named them.
func TestOtherNamesOfSecretsAreReadAtOnce(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		secrets := observe.TheirSecrets(observe.NewTheirs(t, time.Now(), 10*observe.Day, nil))
		w.PutTheirs(secrets)
		w.UntilIdle()
		w.MustPass()
		other := secrets["their-client"].DeepCopy()
		other.Name, other.ResourceVersion = "other-client", ""
		w.PutTheirs(map[string]*corev1.Secret{"other-client": other})
		w.Wish.Spec.TLS.Secrets.Client = "other-client"
		w.WantDialledWith(other)
	}, clustertest.NamedTLS)
}

// 145: Secrets that their maker renews are taken up within the time in which they
// are read again, and one that goes wrong holds the cluster.
func TestRenewedSecretsOfAnotherIssuerAreTakenUp(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		a := observe.NewTheirs(t, time.Now(), 10*observe.Day, nil)
		w.PutTheirs(observe.TheirSecrets(a))
		w.UntilIdle()
		update := func(s *corev1.Secret) {
			t.Helper()
			if _, err := w.API.CoreV1().Secrets("shop").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		before := w.Look().Endpoints[0].Incarnation
		renewed := a.Issue("their-client", nil, x509.ExtKeyUsageClientAuth)
		update(renewed)
		time.Sleep(observe.CertificateRecheck)
		w.WantDialledWith(renewed)
		if after := w.Look().Endpoints[0].Incarnation; after == before {
			t.Error("the connection with the old certificate would be kept")
		}
		bad := renewed.DeepCopy()
		delete(bad.Data, "ca.crt")
		update(bad)
		time.Sleep(observe.CertificateRecheck)
		w.WantHold(decision.Unhealthy, "certificates", "their-client has no key ca.crt")
		update(renewed)
		w.UntilIdle() // at once: what is wrong is read at each look
	}, clustertest.NamedTLS)
}

// 145: an option rolls a cluster with Secrets of another issuer, as any other.
func TestAnOptionRollsAClusterWithSecretsOfAnotherIssuer(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.PutTheirs(observe.TheirSecrets(observe.NewTheirs(t, time.Now(), 10*observe.Day, nil)))
		w.UntilIdle()
		before := w.Pod("orders-0").UID
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Etcd.Options = map[string]string{"heartbeat-interval": "200"} })
		w.UntilIdle()
		if w.Pod("orders-0").UID == before {
			t.Error("no member was restarted")
		}
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.TLS.Secrets.Server = "another" })
		w.WantHold(decision.Refused, "immutable", "spec.tls.secrets.server (their-server to another) cannot be changed")
	}, clustertest.NamedTLS)
}

// A Secret that cannot be read is no Secret that is missing.
func TestSecretsThatCannotBeReadAreAnError(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		w.API.PrependReactor("get", "secrets", observe.Forbidden)
		_, err := w.Pass()
		backuptest.WantError(t, err, "observe shop/orders", "read Secret their-server", "forbidden")
	}, clustertest.NamedTLS)
}
