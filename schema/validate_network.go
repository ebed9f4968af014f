package schema

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// tls checks that the Secrets are named where they are used, and only there.
func (v *validator) tls(t TLSSpec) {
	oneOf(v, "tls.mode", t.Mode, TLSManaged, TLSSecrets, TLSDisabled)
	for _, secret := range []struct{ field, name string }{
		{"tls.secrets.server", t.Secrets.Server},
		{"tls.secrets.peer", t.Secrets.Peer},
		{"tls.secrets.client", t.Secrets.Client},
	} {
		switch {
		case t.Mode == TLSSecrets && secret.name == "":
			v.fail(secret.field, "is missing: with mode Secrets name a Secret with tls.crt, tls.key and ca.crt for each of server, peer and client")
		case t.Mode != TLSSecrets && secret.name != "":
			v.fail(secret.field, "is used with mode Secrets only: write tls.mode: Secrets, or leave it out")
		default:
			v.secret(secret.field, secret.name)
		}
	}
	v.tlsClients(t)
}

// network checks names and address families.
func (v *validator) network(n NetworkSpec) {
	if n.ClusterDomain != "" && len(validation.IsDNS1123Subdomain(n.ClusterDomain)) > 0 {
		v.fail("network.clusterDomain", "%s is not a DNS domain: write it without a dot at the end, such as cluster.local", clip(n.ClusterDomain))
	}
	if n.IPFamilyPolicy != "" {
		oneOf(v, "network.ipFamilyPolicy", n.IPFamilyPolicy,
			corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)
	}
	for i, family := range n.IPFamilies {
		field := fmt.Sprintf("network.ipFamilies[%d]", i)
		oneOf(v, field, family, corev1.IPv4Protocol, corev1.IPv6Protocol)
		if slices.Contains(n.IPFamilies[:i], family) {
			v.fail(field, "%s is listed twice: keep one of them", family)
		}
	}
	single := n.IPFamilyPolicy == "" || n.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if single && len(n.IPFamilies) > 1 {
		v.fail("network.ipFamilies", "two families need ipFamilyPolicy: PreferDualStack or RequireDualStack")
	}
}
