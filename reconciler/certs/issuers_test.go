package certs

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/schema"
)

// twoIssuers are the Secrets of a cluster whose certificates quorate and another program have issued, and
// of an application that the file does not name any more.
func twoIssuers(t *testing.T, now time.Time) (schema.EtcdCluster, map[string]*corev1.Secret) {
	t.Helper()
	c := clustertest.Orders(clustertest.NamedTLS)
	secrets := map[string]*corev1.Secret{}
	for _, prefix := range []string{"their", "orders"} {
		made, err := Issue(ManagedBy(c), "cluster.local", nil, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range made {
			if s.Name = strings.Replace(s.Name, "orders", prefix, 1); prefix == "their" {
				s.Labels = nil
			}
			secrets[s.Name] = s
		}
	}
	asks := ManagedBy(c)
	asks.Spec.TLS.Clients = []schema.TLSClient{{Name: "checkout", CommonName: "checkout"}}
	app, err := IssueClient(asks, "orders-client-checkout", secrets, now)
	if err != nil {
		t.Fatal(err)
	}
	secrets[app.Name] = app
	return c, secrets
}

// 594: both issuers are in what members trust, and in what quorate writes, of applications that the file
// does not name any more, too; another's Secrets are not among it.
func TestBothIssuersArePublished(t *testing.T) {
	now := time.Now()
	c, secrets := twoIssuers(t, now)
	found := CheckIssuers(ManagedBy(c), "cluster.local", secrets, now)
	if found.Told || len(found.Other.Problems) > 0 || found.Both == "" || found.Both == found.Named || found.Both == found.Managed {
		t.Fatalf("%+v", found)
	}
	var names []string
	for _, s := range UnitedBundles(c, "cluster.local", secrets) {
		names = append(names, s.Name)
		secrets[s.Name] = s
		if n := strings.Count(string(s.Data["ca.crt"]), "BEGIN CERTIFICATE"); n != 2 {
			t.Errorf("%s trusts %d authorities", s.Name, n)
		}
	}
	if want := []string{"orders-client", "orders-client-checkout", "orders-server", "orders-peer"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if found = CheckIssuers(ManagedBy(c), "cluster.local", secrets, now); !found.Told || len(found.Other.Problems) > 0 {
		t.Errorf("%+v", found)
	}
	if want := []string{"orders-ca", "orders-client", "orders-peer", "orders-peer-ca", "orders-server"}; !slices.Equal(found.Left, want) {
		t.Errorf("left: %q, want %q", found.Left, want)
	}
}

// 597: a Secret with what members trust is of both issuers by what it holds.
func TestWhatTrustsBothIssuersIsKnown(t *testing.T) {
	now := time.Now()
	c, secrets := twoIssuers(t, now)
	both := UnitedTrust(c, "cluster.local", secrets)
	alone := trustOf(pairsOf(ManagedBy(c), "cluster.local", secrets), presentOf).secret(c)
	theirs := NamedTrust(c, secrets)
	for _, s := range []*corev1.Secret{both, alone, theirs} {
		secrets[s.Name] = s
	}
	found := CheckIssuers(c, "cluster.local", secrets, now)
	if want := []string{both.Name}; !slices.Equal(found.Mixed[schema.TLSManaged], want) {
		t.Errorf("beside quorate's certificates: %q, want %q", found.Mixed[schema.TLSManaged], want)
	}
	want := []string{both.Name, alone.Name}
	slices.Sort(want)
	if !slices.Equal(found.Mixed[schema.TLSSecrets], want) {
		t.Errorf("beside the other program's: %q, want %q", found.Mixed[schema.TLSSecrets], want)
	}
	delete(secrets, "their-peer")
	if UnitedTrust(c, "cluster.local", secrets) != nil || UnitedBundles(c, "cluster.local", secrets) != nil {
		t.Error("one issuer is not known, and both are published")
	}
}

// 594: that the other program's certificate for quorate names somebody else counts where authentication
// is on in etcd, whatever the file says of it, so it is told apart.
func TestTheOtherIssuersUserIsKnown(t *testing.T) {
	now := time.Now()
	c, secrets := twoIssuers(t, now)
	if found := CheckIssuers(ManagedBy(c), "cluster.local", secrets, now); found.NoRoot != "" {
		t.Errorf("it is root's: %q", found.NoRoot)
	}
	secrets["their-client"] = secrets["their-server"]
	found := CheckIssuers(ManagedBy(c), "cluster.local", secrets, now)
	if !strings.Contains(found.NoRoot, `in the Secret their-client has the common name "orders-server"`) || len(found.Other.Problems) > 0 {
		t.Errorf("%q, %q", found.NoRoot, found.Other.Problems)
	}
	if found := CheckIssuers(NamedBy(c), "cluster.local", secrets, now); found.NoRoot != "" {
		t.Errorf("members show it already: %q", found.NoRoot)
	}
}

// 594, 595: what the issuer that Git asks for lacks is known before anything is trusted.
func TestTheOtherIssuerIsChecked(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		edit func(*schema.EtcdCluster, map[string]*corev1.Secret)
		want string
	}{
		"their Secret is gone": {func(_ *schema.EtcdCluster, s map[string]*corev1.Secret) { delete(s, "their-peer") }, "their-peer does not exist"},
		"quorate's user": {func(c *schema.EtcdCluster, s map[string]*corev1.Secret) {
			c.Spec.Auth = &schema.AuthSpec{Enabled: new(true)}
			s["their-client"] = s["their-server"]
		}, `their-client has the common name "orders-server": with authentication on quorate needs root`},
		"quorate's authority cannot sign": {func(c *schema.EtcdCluster, s map[string]*corev1.Secret) {
			c.Spec.TLS.Mode = schema.TLSSecrets
			s["orders-ca"] = s["orders-ca"].DeepCopy()
			s["orders-ca"].Data = map[string][]byte{"ca.crt": s["orders-ca"].Data["ca.crt"]}
		}, "delete the Secrets orders-ca, orders-client,"},
		"an application's Secret is another's": {func(c *schema.EtcdCluster, s map[string]*corev1.Secret) {
			c.Spec.TLS.Mode = schema.TLSSecrets
			c.Spec.TLS.Clients = []schema.TLSClient{{Name: "billing", CommonName: "billing"}}
			s["orders-client-billing"] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "orders-client-billing"}}
		}, "the Secret orders-client-billing, in which billing is to find its certificate, is not quorate's"},
		"a name is left out": {func(c *schema.EtcdCluster, _ map[string]*corev1.Secret) { c.Spec.TLS.Secrets.Client = "" }, "spec.tls.secrets lacks a name"},
	} {
		t.Run(name, func(t *testing.T) {
			c, secrets := twoIssuers(t, now)
			c, secrets = ManagedBy(c), maps.Clone(secrets)
			test.edit(&c, secrets)
			found := CheckIssuers(c, "cluster.local", secrets, now)
			if got := strings.Join(found.Other.Problems, "; "); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	c, secrets := twoIssuers(t, now)
	for _, name := range []string{"orders-server", "orders-ca", "orders-client", "orders-client-checkout"} {
		delete(secrets, name)
	}
	if found := CheckIssuers(c, "cluster.local", secrets, now); !slices.Equal(found.Other.Missing, []string{"orders-ca", "orders-server", "orders-client"}) || found.Both != "" {
		t.Errorf("%+v", found)
	}
}
