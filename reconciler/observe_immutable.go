package reconciler

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/schema"
)

// immutableChanges lists what the file asks for and a live StatefulSet cannot
// take.
func immutableChanges(set *appsv1.StatefulSet, c schema.EtcdCluster) []string {
	var changes []string
	for _, claim := range set.Spec.VolumeClaimTemplates {
		if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.Cmp(c.Spec.Storage.Size) > 0 {
			changes = append(changes, fmt.Sprintf("spec.storage.size (%s to %s)", size.String(), c.Spec.Storage.Size.String()))
		}
		if class := c.Spec.Storage.StorageClassName; class != nil && c.Spec.Storage.ClassChange != schema.ClassChangeReplace && (claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != *class) {
			changes = append(changes, "spec.storage.storageClassName")
		}
	}
	return append(changes, tlsChanges(set.Spec.Template.Spec.Volumes, c)...)
}

// tlsChanges lists changes of who makes the certificates: members with Secrets of
// two authorities would not trust each other in the middle of a roll. That a
// Secret's content is renewed is another matter, see CheckCertificates.
func tlsChanges(volumes []corev1.Volume, c schema.EtcdCluster) []string {
	mounted := map[string]string{}
	for _, v := range volumes {
		if v.Secret != nil {
			mounted[v.Name] = v.Secret.SecretName
		}
	}
	server, secured := mounted[serverTLSVolume]
	named := server != c.Metadata.Name+serverLeafSuffix
	if secured != usesTLS(c) || (secured && named == managesTLS(c)) {
		return []string{"spec.tls.mode"}
	}
	if !secured || !named {
		return nil
	}
	var changes []string
	for _, part := range []struct{ field, from, to string }{
		{"server", server, c.Spec.TLS.Secrets.Server},
		{"peer", mounted[peerTLSVolume], c.Spec.TLS.Secrets.Peer},
	} {
		if part.from != part.to {
			changes = append(changes, fmt.Sprintf("spec.tls.secrets.%s (%s to %s)", part.field, part.from, part.to))
		}
	}
	return changes
}

// familyChanges lists a change of the first address family, which Kubernetes
// does not allow: it is that of the Service's address.
func familyChanges(services map[string]*corev1.Service, c schema.EtcdCluster) []string {
	wanted := c.Spec.Network.IPFamilies
	for _, name := range []string{ClientServiceName(c), HeadlessServiceName(c)} {
		service := services[name]
		if len(wanted) == 0 || service == nil || len(service.Spec.IPFamilies) == 0 || service.Spec.IPFamilies[0] == wanted[0] {
			continue
		}
		return []string{fmt.Sprintf("spec.network.ipFamilies[0] (%s to %s)", service.Spec.IPFamilies[0], wanted[0])}
	}
	return nil
}

// domainChanges lists a change of the DNS domain, which stands in certificates
// that were issued for the one before.
func domainChanges(secrets map[string]*corev1.Secret, c schema.EtcdCluster, daemons string) []string {
	secret := secrets[tlsSecrets(c).Server]
	if secret == nil || !managesTLS(c) {
		return nil
	}
	cert, err := firstCertificate(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return nil // CheckCertificates says what is wrong with it
	}
	hosts := inClusterDomain(ClientServiceName(c)+"."+c.Metadata.Namespace+".svc", domainOf(c, daemons))
	if cert.VerifyHostname(hosts[0]) != nil || cert.VerifyHostname(hosts[len(hosts)-1]) == nil {
		return nil
	}
	if own := c.Spec.Network.ClusterDomain; own != "" {
		return []string{fmt.Sprintf("spec.network.clusterDomain (to %s)", own)}
	}
	return []string{fmt.Sprintf("the cluster domain (to %s, which is the daemon's --cluster-domain where spec.network.clusterDomain is left out)", daemons)}
}
