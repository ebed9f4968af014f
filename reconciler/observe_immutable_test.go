package reconciler

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// mountedSecrets are the volumes of a member with these certificates.
func mountedSecrets(server, peer string) []corev1.Volume {
	volume := func(name, secret string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
	}
	return []corev1.Volume{{Name: "record"}, volume(serverTLSVolume, server), volume(peerTLSVolume, peer)}
}

// namedTLS takes the certificates from Secrets.
func namedTLS(c *schema.EtcdCluster) {
	c.Spec.TLS = schema.TLSSpec{Mode: schema.TLSSecrets, Secrets: schema.TLSSecretNames{Server: "their-server", Peer: "their-peer", Client: "their-client"}}
}

// 5: a StatefulSet's claims keep their class, and volumes do not shrink.
func TestChangesOfTheStorageAreNamed(t *testing.T) {
	const size, class = "spec.storage.size (16Gi to 8Gi)", "spec.storage.storageClassName"
	for name, test := range map[string]struct {
		live    *string
		gib     string
		wanted  *string
		replace bool
		want    []string
	}{
		"the same":                    {new("standard"), "8Gi", new("standard"), false, nil},
		"left out":                    {new("standard"), "8Gi", nil, false, nil},
		"another class":               {new("standard"), "8Gi", new("fast"), false, []string{class}},
		"a class where there is none": {nil, "8Gi", new("fast"), false, []string{class}},
		"another class, by new ones":  {new("standard"), "8Gi", new("fast"), true, nil},
		"larger":                      {new("standard"), "4Gi", new("standard"), false, nil},
		"smaller":                     {new("standard"), "16Gi", new("standard"), false, []string{size}},
		"smaller, of another class":   {new("standard"), "16Gi", new("fast"), false, []string{size, class}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{}
			set.Spec.Template.Spec.Volumes = mountedSecrets("orders-server", "orders-peer")
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*testClaim("data", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.StorageClassName = test.live
				c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(test.gib)}
			})}
			c := ordersCluster(func(c *schema.EtcdCluster) {
				c.Spec.Storage.Size, c.Spec.Storage.StorageClassName = resource.MustParse("8Gi"), test.wanted
				if test.replace {
					c.Spec.Storage.ClassChange = schema.ClassChangeReplace
				}
			})
			if got := immutableChanges(set, c); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// 5: who makes the certificates of a live cluster stays who it was.
func TestChangesOfTLSAreNamed(t *testing.T) {
	managed, theirs := mountedSecrets("orders-server", "orders-peer"), mountedSecrets("their-server", "their-peer")
	for name, test := range map[string]struct {
		volumes []corev1.Volume
		edit    func(*schema.EtcdCluster)
		want    []string
	}{
		"Managed stays":                   {managed, func(*schema.EtcdCluster) {}, nil},
		"Secrets stay":                    {theirs, namedTLS, nil},
		"Disabled stays":                  {nil, disableTLS, nil},
		"Managed to Secrets":              {managed, namedTLS, []string{"spec.tls.mode"}},
		"Managed to Disabled":             {managed, disableTLS, []string{"spec.tls.mode"}},
		"Secrets to Managed":              {theirs, func(*schema.EtcdCluster) {}, []string{"spec.tls.mode"}},
		"Secrets to Disabled":             {theirs, disableTLS, []string{"spec.tls.mode"}},
		"Disabled to Managed":             {nil, func(*schema.EtcdCluster) {}, []string{"spec.tls.mode"}},
		"Disabled to Secrets":             {nil, namedTLS, []string{"spec.tls.mode"}},
		"another Secret for the server":   {mountedSecrets("old", "their-peer"), namedTLS, []string{"spec.tls.secrets.server (old to their-server)"}},
		"other Secrets for both":          {mountedSecrets("old", "older"), namedTLS, []string{"spec.tls.secrets.server (old to their-server)", "spec.tls.secrets.peer (older to their-peer)"}},
		"another Secret for quorate only": {theirs, func(c *schema.EtcdCluster) { namedTLS(c); c.Spec.TLS.Secrets.Client = "other" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tlsChanges(test.volumes, ordersCluster(test.edit)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// 5: the first address family of a Service cannot be changed.
func TestChangesOfTheFirstFamilyAreNamed(t *testing.T) {
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	for name, test := range map[string]struct {
		live, wanted []corev1.IPFamily
		want         []string
	}{
		"left out":        {[]corev1.IPFamily{v4}, nil, nil},
		"the same":        {[]corev1.IPFamily{v4}, []corev1.IPFamily{v4}, nil},
		"a second one":    {[]corev1.IPFamily{v4}, []corev1.IPFamily{v4, v6}, nil},
		"one less":        {[]corev1.IPFamily{v4, v6}, []corev1.IPFamily{v4}, nil},
		"the other one":   {[]corev1.IPFamily{v4}, []corev1.IPFamily{v6}, []string{"spec.network.ipFamilies[0] (IPv4 to IPv6)"}},
		"the other order": {[]corev1.IPFamily{v6, v4}, []corev1.IPFamily{v4, v6}, []string{"spec.network.ipFamilies[0] (IPv6 to IPv4)"}},
		"no Service yet":  {nil, []corev1.IPFamily{v6}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			services := map[string]*corev1.Service{}
			if test.live != nil {
				services["orders-peers"] = &corev1.Service{Spec: corev1.ServiceSpec{IPFamilies: test.live}}
			}
			c := ordersCluster(func(c *schema.EtcdCluster) { c.Spec.Network.IPFamilies = test.wanted })
			if got := familyChanges(services, c); !slices.Equal(got, test.want) {
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
	issued, _ := issueCertificates(t, ordersCluster(), nil, certificateEpoch)
	for name, test := range map[string]struct {
		edit    func(*schema.EtcdCluster)
		daemons string
		want    []string
	}{
		"the same":                  {inDomain(""), "cluster.local", nil},
		"the same, in words":        {inDomain("cluster.local"), "other.local", nil},
		"the file's":                {inDomain("example.org"), "cluster.local", []string{"spec.network.clusterDomain (to example.org)"}},
		"the daemon's":              {inDomain(""), "other.local", []string{"the cluster domain (to other.local, which is the daemon's --cluster-domain where spec.network.clusterDomain is left out)"}},
		"certificates of others":    {func(c *schema.EtcdCluster) { namedTLS(c); c.Spec.Network.ClusterDomain = "example.org" }, "", nil},
		"no certificates":           {func(c *schema.EtcdCluster) { disableTLS(c); c.Spec.Network.ClusterDomain = "example.org" }, "", nil},
		"a certificate for nothing": {func(c *schema.EtcdCluster) { c.Metadata.Namespace = "elsewhere" }, "cluster.local", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := domainChanges(issued, ordersCluster(test.edit), test.daemons); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// wantHold wants the next pass to hold the cluster, with a part of its sentence.
func (w *world) wantHold(kind plan.HoldKind, rule, part string) {
	w.Helper()
	w.mustPass()
	p, err := w.r.Plan(w.Context(), w.wish)
	if err != nil {
		w.Fatal(err)
	}
	if p.Hold == nil || p.Hold.Kind != kind || p.Hold.Rule != rule || !strings.Contains(p.Hold.String(), part) {
		w.Fatalf("want %s by %s: %s; have\n%s", kind, rule, part, p.Text())
	}
}

// 5: a change that Kubernetes or the certificates do not take holds the cluster,
// and says which field it is.
func TestAChangeOfTheDomainHolds(t *testing.T) {
	formed(t, func(w *world) {
		w.commit(func(c *schema.EtcdCluster) { c.Spec.Network.ClusterDomain = "example.org" })
		w.wantHold(plan.HoldRefused, "immutable", "spec.network.clusterDomain (to example.org) cannot be changed on a live cluster: ")
		if writes := w.api.writes(); len(writes) > 0 {
			t.Errorf("wrote %q", writes)
		}
	})
}
