package schema

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// tls checks that the Secrets are named where they are used. All three may stay where they are not,
// because members have them until a change of the mode is over.
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
		case t.Secrets != (TLSSecretNames{}) && secret.name == "":
			v.fail(secret.field, "is missing beside the others: name all three until the change from mode Secrets is over, and none after it")
		default:
			v.secret(secret.field, secret.name)
		}
	}
	v.tlsClients(t)
	if t.Mode != TLSManaged && (t.Rotate != "" || t.Lifetimes != (TLSLifetimes{})) {
		v.fail("tls", "rotate and lifetimes are for mode Managed, in which quorate issues the certificates: leave them out")
		return
	}
	v.rotation(t)
}

// The bounds of the lives of certificates, and of the overlap. Nothing is renewed faster than
// the kubelet brings a Secret into a pod.
const (
	minCertificateLife = 10 * time.Minute
	maxCertificateLife = 5 * 365 * 24 * time.Hour
	minAuthorityLife   = 30 * time.Minute
	maxAuthorityLife   = 30 * 365 * 24 * time.Hour
	maxOverlap         = 30 * 24 * time.Hour
)

// rotation checks how long certificates live, and how their authorities change.
func (v *validator) rotation(t TLSSpec) {
	if t.Rotate != "" && len(validation.IsValidLabelValue(t.Rotate)) > 0 {
		v.fail("tls.rotate", "%s is no word: use at most 63 letters, digits, dashes, dots and underscores, such as \"2026-12\"", clip(t.Rotate))
	}
	certificate, authority, overlap := t.CertificateLife(), t.AuthorityLife(), t.OverlapTime()
	if certificate < minCertificateLife || certificate > maxCertificateLife {
		v.fail("tls.lifetimes.certificate", "is %s and must be 10m to 43800h", certificate)
	}
	switch {
	case authority < minAuthorityLife || authority > maxAuthorityLife:
		v.fail("tls.lifetimes.authority", "is %s and must be 30m to 262800h", authority)
	case authority < 3*certificate:
		v.fail("tls.lifetimes.authority", "is %s and must be at least three times lifetimes.certificate, which is %s", authority, certificate)
	}
	switch {
	case overlap < 0 || overlap > maxOverlap:
		v.fail("tls.overlap", "is %s and must be 0s to 720h", overlap)
	case overlap > authority/6:
		v.fail("tls.overlap", "is %s and must be at most a sixth of lifetimes.authority, which is %s: the change begins when a third of that is left, and waits twice", overlap, authority)
	}
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
