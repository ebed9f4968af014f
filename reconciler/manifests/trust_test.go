package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/naming"
)

// 592: once what members trust is in a Secret of its own, etcd reads it there for both ports, and its
// certificates where they were. A cluster in clear text never mounts it.
func TestTrustIsMountedFromItsOwnSecret(t *testing.T) {
	with := ordersOptions()
	with.Trust = "orders-trust-0123456789ab"
	named := clustertest.Orders(clustertest.NamedTLS)
	m := MustRender(t, named, with)
	spec := m.StatefulSet.Spec.Template.Spec
	for _, arg := range []string{
		"--trusted-ca-file=/etc/quorate/tls/trust/clients.crt", "--peer-trusted-ca-file=/etc/quorate/tls/trust/peers.crt",
		"--cert-file=/etc/quorate/tls/server/tls.crt", "--peer-cert-file=/etc/quorate/tls/peer/tls.crt",
	} {
		if !slices.Contains(spec.Containers[0].Args, arg) {
			t.Errorf("no %s in %q", arg, spec.Containers[0].Args)
		}
	}
	mounted := map[string]string{}
	for _, v := range spec.Volumes {
		if v.Secret != nil {
			mounted[*v.Name] = *v.Secret.SecretName
		}
	}
	for _, mount := range spec.Containers[0].VolumeMounts {
		if *mount.Name == naming.TrustVolume && (*mount.MountPath != "/etc/quorate/tls/trust" || !*mount.ReadOnly) {
			t.Errorf("mounted at %s", *mount.MountPath)
		}
	}
	if mounted[naming.TrustVolume] != with.Trust || mounted[naming.ServerTLSVolume] != "their-server" || mounted[naming.PeerTLSVolume] != "their-peer" {
		t.Errorf("mounted: %v", mounted)
	}
	if m.TemplateHash == MustRender(t, named, ordersOptions()).TemplateHash {
		t.Error("the template is the same: no member would restart")
	}
	plain := clustertest.Orders(clustertest.DisableTLS)
	if MustRender(t, plain, with).TemplateHash != MustRender(t, plain, ordersOptions()).TemplateHash {
		t.Error("a cluster in clear text mounts it")
	}
}

// 597: while members trust another program's authority besides quorate's, they check the names of peers: what
// else that authority signs is not known.
func TestPeersAreCheckedByNameWhileBothIssuersAreTrusted(t *testing.T) {
	skips := func(mixed bool) bool {
		with := ordersOptions()
		with.Trust, with.Mixed = "orders-trust-0123456789ab", mixed
		args := MustRender(t, clustertest.Orders(), with).StatefulSet.Spec.Template.Spec.Containers[0].Args
		return slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "peer-skip-client-san-verification") })
	}
	if !skips(false) || skips(true) {
		t.Errorf("without checks: by quorate alone %t, by both %t", skips(false), skips(true))
	}
}
