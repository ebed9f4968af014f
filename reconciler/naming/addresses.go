package naming

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quorate/quorate/schema"
)

// The ports of a member.
const (
	ClientPort  = 2379
	PeerPort    = 2380
	MetricsPort = 2381
	// SecondPeerPort is where members listen for peers as well while spec.tls.mode changes: one
	// port speaks either TLS or plain text.
	SecondPeerPort = 2382
)

// PeerURL is where a member's peers reach it.
func PeerURL(c schema.EtcdCluster, member string) string { return memberURL(c, member, PeerPort) }

// ClientURL is where clients inside Kubernetes reach one member.
func ClientURL(c schema.EtcdCluster, member string) string { return memberURL(c, member, ClientPort) }

func memberURL(c schema.EtcdCluster, member string, port int) string {
	return URLOn(URLScheme(c), MemberHost(c, member), port)
}

// URLOn is the URL of a scheme on a host's port.
func URLOn(scheme, host string, port int) string {
	return fmt.Sprintf("%s://%s:%d", scheme, host, port)
}

// MemberHost is the member's DNS name, without the cluster's domain.
func MemberHost(c schema.EtcdCluster, member string) string {
	return member + "." + HeadlessService(c.Metadata.Name) + "." + c.Metadata.Namespace + ".svc"
}

// URLScheme is https for a cluster with TLS, else http.
func URLScheme(c schema.EtcdCluster) string { return SchemeOf(c.Spec.TLS.Mode) }

// SchemeOf is https for a mode with TLS, else http.
func SchemeOf(mode schema.TLSMode) string {
	if mode.Encrypts() {
		return "https"
	}
	return "http"
}

// UsesTLS takes everything but an explicit Disabled for TLS.
func UsesTLS(c schema.EtcdCluster) bool { return c.Spec.TLS.Mode.Encrypts() }

// ManagesTLS reports whether quorate issues the certificates itself.
func ManagesTLS(c schema.EtcdCluster) bool {
	return UsesTLS(c) && c.Spec.TLS.Mode != schema.TLSSecrets
}

// TLSSecrets are the Secrets that members and quorate show: its own, or those
// that the file names.
func TLSSecrets(c schema.EtcdCluster) schema.TLSSecretNames {
	if !ManagesTLS(c) {
		return c.Spec.TLS.Secrets
	}
	name := c.Metadata.Name
	return schema.TLSSecretNames{Server: name + ServerLeafSuffix, Peer: name + PeerLeafSuffix, Client: name + ClientLeafSuffix}
}

// ClusterDomain is the DNS domain for the names in certificates: the file's word, else
// the daemon's.
func ClusterDomain(c schema.EtcdCluster, daemons string) string {
	return cmp.Or(c.Spec.Network.ClusterDomain, daemons)
}

// InClusterDomain gives host, and host in the cluster's domain when that is known.
func InClusterDomain(host, clusterDomain string) []string {
	if domain := strings.Trim(clusterDomain, "."); domain != "" {
		return []string{host, host + "." + domain}
	}
	return []string{host}
}
