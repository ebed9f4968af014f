package naming

import (
	"strings"

	"github.com/quorate/quorate/schema"
)

// The Secrets of one cluster, NAME being the cluster's:
//
//	authority      signs          trusted by
//	NAME-ca        NAME-server    clients (--cert-file, ca.crt at the client)
//	               NAME-client    members (--trusted-ca-file)
//	NAME-peer-ca   NAME-peer      members (--peer-trusted-ca-file)
//
// The authorities are two because etcd's peer port asks for nothing but a
// certificate that its authority signed: with one, every client could join the
// peers' traffic.
//
// While the authorities change, NAME-ca-next and NAME-peer-ca-next hold those that
// take their place. From the first change on, members read what they trust from
// NAME-trust-HASH, which is named by its content: what a pod mounts is never an
// earlier version of it.
const (
	AuthoritySuffix     = "-ca"
	PeerAuthoritySuffix = "-peer-ca"
	ServerLeafSuffix    = "-server"
	ClientLeafSuffix    = "-client"
	PeerLeafSuffix      = "-peer"
	NextSuffix          = "-next"
	trustInfix          = "-trust-"
)

// TrustHash is how many hexadecimal digits the name of a Secret with what members trust
// ends with.
const TrustHash = 12

// Trust is the Secret with the authorities that members trust, by the hash of them.
func Trust(cluster, hash string) string { return cluster + trustInfix + hash }

// IsTrust reports whether a name is that of a Secret with what members of the cluster trust.
func IsTrust(cluster, name string) bool {
	hash, ok := strings.CutPrefix(name, cluster+trustInfix)
	return ok && len(hash) == TrustHash && strings.Trim(hash, "0123456789abcdef") == ""
}

// IsSecret reports whether a name is that of one of a cluster's Secrets, those of its
// applications apart.
func IsSecret(cluster, name string) bool {
	return schema.OwnSecret(cluster, name) || IsTrust(cluster, name)
}

// IsIssued reports whether a name is that of a Secret with a certificate of the members, their
// authorities, or quorate itself, which quorate has issued.
func IsIssued(cluster, name string) bool {
	return schema.OwnSecret(cluster, name) && name != schema.RootSecret(cluster)
}

// Keys of the Secrets. Leaves use those of the type kubernetes.io/tls, and carry
// their authority's certificate as ca.crt.
const (
	AuthorityCertKey = "ca.crt"
	// TrustedClientsKey and TrustedPeersKey are those of a Secret with what members trust:
	// whom they take for clients, and whom for members.
	TrustedClientsKey = "clients.crt"
	TrustedPeersKey   = "peers.crt"
)
