package naming

import "github.com/quorate/quorate/schema"

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
const (
	AuthoritySuffix     = "-ca"
	PeerAuthoritySuffix = "-peer-ca"
	ServerLeafSuffix    = "-server"
	ClientLeafSuffix    = "-client"
	PeerLeafSuffix      = "-peer"
)

// IsSecret reports whether a name is that of one of a cluster's Secrets, those of its
// applications apart.
func IsSecret(cluster, name string) bool { return schema.OwnSecret(cluster, name) }

// Keys of the Secrets. Leaves use those of the type kubernetes.io/tls, and carry
// their authority's certificate as ca.crt.
const (
	AuthorityCertKey = "ca.crt"
)
