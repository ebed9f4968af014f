package certs

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Clients says how the certificates of a cluster's applications are. The members do not
// need them: whatever is wrong with one stops nothing else.
type Clients struct {
	// Wanting are the Secrets to issue, in the order of the file.
	Wanting []Wanting
	// Foreign are phrases on the Secrets of these names that are not quorate's to write.
	Foreign []string
}

// Wanting is a Secret to issue, and why in words, such as "is missing".
type Wanting struct{ Secret, Why string }

// ClientSecrets are the names of the Secrets of a cluster's applications.
func ClientSecrets(c schema.EtcdCluster) []string {
	var names []string
	for _, client := range clientsOf(c) {
		names = append(names, client.Secret(c.Metadata.Name))
	}
	return names
}

// clientsOf are the applications that get a certificate: none where quorate has no
// authority.
func clientsOf(c schema.EtcdCluster) []schema.TLSClient {
	if !naming.ManagesTLS(c) {
		return nil
	}
	return c.Spec.TLS.Clients
}

// clientLeaf is the certificate of an application.
func clientLeaf(c schema.EtcdCluster, client schema.TLSClient) Leaf {
	return Leaf{
		Secret: client.Secret(c.Metadata.Name), Authority: c.Metadata.Name + naming.AuthoritySuffix,
		cn: client.CommonName, usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// CheckClients compares the certificates of the applications with what the file says, at
// the time now. secrets holds Secrets by name, the cluster's own and what stands where a
// client's is to be. While the authority cannot sign, nothing is wanting.
func CheckClients(c schema.EtcdCluster, secrets map[string]*corev1.Secret, now time.Time) Clients {
	var found Clients
	p := pairOfClients(c, secrets)
	signer := p.signsNow(secrets)
	for _, client := range clientsOf(c) {
		leaf := clientLeaf(c, client)
		if signer == nil || signer.lost != "" {
			continue
		}
		secret := secrets[leaf.Secret]
		if secret != nil && !isClients(c, client, secret) {
			found.Foreign = append(found.Foreign, fmt.Sprintf("the Secret %s, in which %s is to find its certificate, is not quorate's", leaf.Secret, client.Name))
			continue
		}
		if why := wantingOf(c, leaf, secret, p, now); why != "" {
			found.Wanting = append(found.Wanting, Wanting{leaf.Secret, why})
		}
	}
	return found
}

// isClients reports whether quorate made the Secret for this application of this cluster.
func isClients(c schema.EtcdCluster, client schema.TLSClient, secret *corev1.Secret) bool {
	return naming.Owns(secret, c) && secret.Labels[naming.LabelClient] == client.Name && secret.Type == corev1.SecretTypeTLS
}

// wantingOf says why an application's certificate is to be issued, "" if it is good.
func wantingOf(c schema.EtcdCluster, leaf Leaf, secret *corev1.Secret, p pair, now time.Time) string {
	if secret == nil {
		return "is missing"
	}
	var status Status
	status.checkLeaf(c, leaf, secret, p, now)
	if len(status.Problems) > 0 {
		return strings.TrimPrefix(status.Problems[0], leaf.Secret+" ")
	}
	cert, err := firstCertificate(secret.Data[corev1.TLSCertKey])
	switch {
	case err != nil:
		return "cannot be read"
	case cert.Subject.CommonName != leaf.cn:
		return fmt.Sprintf("names %q and not %q", cert.Subject.CommonName, leaf.cn)
	case len(status.Due) > 0:
		return "is past two thirds of its life"
	}
	return ""
}

// pairOfClients are the authorities that sign for clients.
func pairOfClients(c schema.EtcdCluster, secrets map[string]*corev1.Secret) pair {
	return pairsOf(c, "", secrets)[0] // no name of a member is in what they sign for clients
}

// IssueClient makes the certificate of the application whose Secret has this name, in place
// of the one that it holds. secrets holds the cluster's Secrets by name. It is signed by the
// authority that signs for the members now, and trusts all that they may show. It errors where
// that authority cannot sign, and where no application has that Secret.
func IssueClient(c schema.EtcdCluster, secret string, secrets map[string]*corev1.Secret, now time.Time) (*corev1.Secret, error) {
	for _, client := range clientsOf(c) {
		if client.Secret(c.Metadata.Name) != secret {
			continue
		}
		p := pairOfClients(c, secrets)
		signer := p.signsNow(secrets)
		if signer == nil || signer.secret == nil {
			return nil, fmt.Errorf("issue %s: the Secret %s%s is missing", secret, c.Metadata.Name, naming.AuthoritySuffix)
		}
		issued, err := NewLeaf(c, clientLeaf(c, client), signer.secret, now)
		if err != nil {
			return nil, fmt.Errorf("issue %s with %s: %w", secret, signer.secret.Name, err)
		}
		issued.Data[naming.AuthorityCertKey] = bothOf(p)
		issued.Labels[naming.LabelClient] = client.Name
		if secrets[secret] == nil {
			return issued, nil
		}
		again := secrets[secret].DeepCopy()
		again.Data = issued.Data
		return again, nil
	}
	return nil, fmt.Errorf("issue %s: the file names no such Secret in spec.tls.clients", secret)
}
