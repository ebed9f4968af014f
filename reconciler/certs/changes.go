package certs

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Change is a change that the certificates of a live cluster stand against: the field,
// and the field and its values in words.
type Change struct{ Field, Text string }

// TLSChanges lists other names for the Secrets of another program that members show: members
// with Secrets of two authorities would not trust each other in the middle of a roll. That a
// Secret's content is renewed is another matter, see Check, and so is that quorate takes over from
// the other program, see Issuers. c is in the mode of its certificates.
func TLSChanges(volumes []corev1.Volume, c schema.EtcdCluster) []Change {
	mounted := map[string]string{}
	for _, v := range volumes {
		if v.Secret != nil {
			mounted[v.Name] = v.Secret.SecretName
		}
	}
	server, secured := mounted[naming.ServerTLSVolume]
	if !secured || !naming.UsesTLS(c) || server == c.Metadata.Name+naming.ServerLeafSuffix {
		return nil
	}
	var changes []Change
	for _, part := range []struct{ field, from, to string }{
		{"server", server, c.Spec.TLS.Secrets.Server},
		{"peer", mounted[naming.PeerTLSVolume], c.Spec.TLS.Secrets.Peer},
	} {
		if part.from != part.to {
			changes = append(changes, Change{"spec.tls.secrets", fmt.Sprintf("spec.tls.secrets.%s (%s to %s)", part.field, part.from, cmp.Or(part.to, "none"))})
		}
	}
	return changes
}

// DomainChanges lists a change of the DNS domain, which stands in certificates
// that were issued for the one before.
func DomainChanges(secrets map[string]*corev1.Secret, c schema.EtcdCluster, daemons string) []Change {
	secret := secrets[naming.TLSSecrets(c).Server]
	if secret == nil || !naming.ManagesTLS(c) {
		return nil
	}
	cert, err := firstCertificate(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return nil // CheckCertificates says what is wrong with it
	}
	hosts := naming.InClusterDomain(naming.ClientService(c.Metadata.Name)+"."+c.Metadata.Namespace+".svc", naming.ClusterDomain(c, daemons))
	if cert.VerifyHostname(hosts[0]) != nil || cert.VerifyHostname(hosts[len(hosts)-1]) == nil {
		return nil
	}
	if own := c.Spec.Network.ClusterDomain; own != "" {
		return []Change{{"spec.network.clusterDomain", fmt.Sprintf("spec.network.clusterDomain (to %s)", own)}}
	}
	return []Change{{"--cluster-domain", fmt.Sprintf("the cluster domain (to %s, which is the daemon's --cluster-domain where spec.network.clusterDomain is left out)", daemons)}}
}
