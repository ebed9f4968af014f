package certs

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/schema"
)

// 5: the other program's Secrets keep their names on a live cluster, and stay in the file while members show
// what they hold.
func TestChangesOfTLSAreNamed(t *testing.T) {
	managed, theirs := clustertest.MountedSecrets("orders-server", "orders-peer"), clustertest.MountedSecrets("their-server", "their-peer")
	for name, test := range map[string]struct {
		volumes []corev1.Volume
		edit    func(*schema.EtcdCluster)
		want    []Change
	}{
		"Managed stays":                   {managed, func(*schema.EtcdCluster) {}, nil},
		"Secrets stay":                    {theirs, clustertest.NamedTLS, nil},
		"Disabled stays":                  {nil, clustertest.DisableTLS, nil},
		"Managed to Secrets":              {managed, clustertest.NamedTLS, nil},
		"Managed to Disabled":             {managed, clustertest.DisableTLS, nil},
		"Secrets to Managed":              {theirs, func(c *schema.EtcdCluster) { clustertest.NamedTLS(c); c.Spec.TLS.Mode = schema.TLSManaged }, nil},
		"Secrets to Managed, unnamed":     {theirs, func(*schema.EtcdCluster) {}, []Change{{"spec.tls.secrets", "spec.tls.secrets.server (their-server to none)"}, {"spec.tls.secrets", "spec.tls.secrets.peer (their-peer to none)"}}},
		"Secrets to Disabled":             {theirs, clustertest.DisableTLS, nil},
		"Disabled to Managed":             {nil, func(*schema.EtcdCluster) {}, nil},
		"Disabled to Secrets":             {nil, clustertest.NamedTLS, nil},
		"another Secret for the server":   {clustertest.MountedSecrets("old", "their-peer"), clustertest.NamedTLS, []Change{{"spec.tls.secrets", "spec.tls.secrets.server (old to their-server)"}}},
		"other Secrets for both":          {clustertest.MountedSecrets("old", "older"), clustertest.NamedTLS, []Change{{"spec.tls.secrets", "spec.tls.secrets.server (old to their-server)"}, {"spec.tls.secrets", "spec.tls.secrets.peer (older to their-peer)"}}},
		"another Secret for quorate only": {theirs, func(c *schema.EtcdCluster) { clustertest.NamedTLS(c); c.Spec.TLS.Secrets.Client = "other" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TLSChanges(test.volumes, clustertest.Orders(test.edit)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The domain stands in the certificates: a change is refused before it makes them
// wrong, whoever made it.
func TestChangesOfTheClusterDomainAreNamed(t *testing.T) {
	inDomain := func(domain string) func(*schema.EtcdCluster) {
		return func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = domain }
	}
	issued, _ := issueCertificates(t, clustertest.Orders(), nil, certificateEpoch)
	for name, test := range map[string]struct {
		edit    func(*schema.EtcdCluster)
		daemons string
		want    []Change
	}{
		"the same":                  {inDomain(""), "cluster.local", nil},
		"the same, in words":        {inDomain("cluster.local"), "other.local", nil},
		"the file's":                {inDomain("example.org"), "cluster.local", []Change{{"spec.network.clusterDomain", "spec.network.clusterDomain (to example.org)"}}},
		"the daemon's":              {inDomain(""), "other.local", []Change{{"--cluster-domain", "the cluster domain (to other.local, which is the daemon's --cluster-domain where spec.network.clusterDomain is left out)"}}},
		"certificates of others":    {func(c *schema.EtcdCluster) { clustertest.NamedTLS(c); c.Spec.Network.ClusterDomain = "example.org" }, "", nil},
		"no certificates":           {func(c *schema.EtcdCluster) { clustertest.DisableTLS(c); c.Spec.Network.ClusterDomain = "example.org" }, "", nil},
		"a certificate for nothing": {func(c *schema.EtcdCluster) { c.Metadata.Namespace = "elsewhere" }, "cluster.local", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DomainChanges(issued, clustertest.Orders(test.edit), test.daemons); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
