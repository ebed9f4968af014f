package manifests_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 585: what members listen to, and what they show, can be read back from their template.
func TestMembersListenToBothWhileTheModeChanges(t *testing.T) {
	const host = "://0.0.0.0"
	theirs := state.Transport{Own: schema.TLSSecrets, Server: "their-server", Peer: "their-peer"}
	for name, c := range map[string]struct {
		edit           func(*schema.EtcdCluster)
		also           schema.TLSMode
		clients, peers string
		secured        bool
		want           state.Transport
	}{
		"plain text": {clustertest.DisableTLS, "", "http" + host + ":2379", "http" + host + ":2380", false, state.Transport{Own: schema.TLSDisabled}},
		"TLS":        {func(*schema.EtcdCluster) {}, "", "https" + host + ":2379", "https" + host + ":2380", true, state.Transport{Own: schema.TLSManaged}},
		"plain text, and TLS": {
			clustertest.DisableTLS, schema.TLSManaged, "http" + host + ":2379,https" + host + ":2379", "http" + host + ":2380,https" + host + ":2382", true,
			state.Transport{Own: schema.TLSDisabled, Also: schema.TLSManaged},
		},
		"TLS, and plain text": {
			func(*schema.EtcdCluster) {}, schema.TLSDisabled, "https" + host + ":2379,http" + host + ":2379", "https" + host + ":2380,http" + host + ":2382", true,
			state.Transport{Own: schema.TLSManaged, Also: schema.TLSDisabled},
		},
		"another issuer's": {clustertest.NamedTLS, "", "https" + host + ":2379", "https" + host + ":2380", true, theirs},
		"plain text, and another issuer's": {
			func(c *schema.EtcdCluster) { clustertest.NamedTLS(c); c.Spec.TLS.Mode = schema.TLSDisabled }, schema.TLSSecrets,
			"http" + host + ":2379,https" + host + ":2379", "http" + host + ":2380,https" + host + ":2382", true,
			state.Transport{Own: schema.TLSDisabled, Also: schema.TLSSecrets, Server: theirs.Server, Peer: theirs.Peer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clustertest.Orders(c.edit)
			template, _, err := manifests.RenderTemplate(cluster, manifests.Options{Also: c.also})
			if err != nil {
				t.Fatal(err)
			}
			made := clustertest.Pod(t, template)
			args := made.Spec.Containers[0].Args
			for _, flag := range []string{"--listen-client-urls=" + c.clients, "--listen-peer-urls=" + c.peers} {
				if !slices.Contains(args, flag) {
					t.Errorf("no %s in %q", flag, args)
				}
			}
			if asks := slices.Contains(args, "--client-cert-auth=true") && slices.Contains(args, "--peer-client-cert-auth=true"); asks != c.secured {
				t.Errorf("asks for certificates: %t", asks)
			}
			if got := manifests.TransportOf(made.Spec, cluster.Metadata.Name); got != c.want {
				t.Errorf("read back as %+v, not %+v", got, c.want)
			}
		})
	}
}
