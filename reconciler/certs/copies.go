package certs

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Copy is a Secret with an application's certificate in another namespace than the cluster's that is
// not as the file wants it.
type Copy struct {
	Secret, Namespace string
	// Why it is to be written or deleted, in words, such as "is missing".
	Why string
	// Unwanted says that it is to be deleted.
	Unwanted bool
}

// CheckCopies compares the copies of the applications' Secrets with these, those to write before those
// to delete. secrets are the cluster's Secrets by name, wanting those of them that are to be issued
// first, and live are the copies that exist. Of a Secret that is not there, and is not to be issued,
// nothing is to be copied.
func CheckCopies(c schema.EtcdCluster, secrets map[string]*corev1.Secret, wanting []Wanting, live []*corev1.Secret) (found []Copy) {
	there, wanted := map[string]*corev1.Secret{}, map[string]bool{}
	for _, s := range live {
		there[s.Namespace+"/"+s.Name] = s
	}
	for _, client := range copiedClients(c) {
		name := client.Secret(c.Metadata.Name)
		source := secrets[name]
		if source != nil && !isClients(c, client, source) {
			source = nil
		}
		due := slices.ContainsFunc(wanting, func(w Wanting) bool { return w.Secret == name })
		for _, namespace := range client.Namespaces {
			key := namespace + "/" + name
			wanted[key] = true
			if why := copyWhy(there[key], source, client.Name, due); why != "" {
				found = append(found, Copy{Secret: name, Namespace: namespace, Why: why})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(there)) {
		if namespace, name, _ := strings.Cut(key, "/"); !wanted[key] {
			found = append(found, Copy{Secret: name, Namespace: namespace, Why: "is no longer in spec.tls.clients", Unwanted: true})
		}
	}
	return found
}

// copiedClients are the applications that have copies: none of a cluster that goes.
func copiedClients(c schema.EtcdCluster) []schema.TLSClient {
	if c.Spec.State == schema.StateDeleted {
		return nil
	}
	return clientsOf(c)
}

// copyWhy is why a copy is to be written, "" where it is as its source, or where that has nothing.
func copyWhy(there, source *corev1.Secret, client string, due bool) string {
	switch {
	case source == nil && !due:
		return ""
	case there == nil:
		return "is missing"
	case due:
		return "has the certificate from before"
	case !isCopyOf(there, source, client):
		return "is not what " + source.Namespace + "/" + source.Name + " holds"
	}
	return ""
}

// isCopyOf reports whether a copy has what its source holds.
func isCopyOf(there, source *corev1.Secret, client string) bool {
	for _, key := range copiedKeys() {
		if !bytes.Equal(there.Data[key], source.Data[key]) {
			return false
		}
	}
	return there.Labels[naming.LabelClient] == client
}

// copiedKeys are those of the Secret of an application.
func copiedKeys() []string {
	return []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, naming.AuthorityCertKey}
}

// CopyLabels are those by which a copy of one of the cluster's applications is known.
func CopyLabels(c schema.EtcdCluster) map[string]string {
	return map[string]string{
		"app.kubernetes.io/managed-by": "quorate",
		naming.LabelClientOf:           c.Metadata.Name,
		naming.LabelClientIn:           c.Metadata.Namespace,
	}
}

// IsCopy reports whether a Secret is a copy that quorate has made for the cluster. Labels can be given
// to anything: none of a cluster's own Secrets is one, and nothing in the cluster's namespace.
func IsCopy(c schema.EtcdCluster, secret *corev1.Secret) bool {
	_, own := secret.Labels[naming.LabelCluster]
	return !own && secret.Namespace != c.Metadata.Namespace && secret.Type == corev1.SecretTypeTLS && naming.HasLabels(secret, CopyLabels(c))
}

// MakeCopy is the copy of an application's Secret in another namespace, in place of the one that is
// there, nil for none; and nil where that one is as it should be.
func MakeCopy(c schema.EtcdCluster, source *corev1.Secret, namespace string, there *corev1.Secret) *corev1.Secret {
	client := source.Labels[naming.LabelClient]
	if there != nil && isCopyOf(there, source, client) {
		return nil
	}
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: source.Name, Labels: CopyLabels(c)}, Type: corev1.SecretTypeTLS}
	if there != nil {
		made = there.DeepCopy()
	}
	made.Labels[naming.LabelClient] = client
	made.Data = map[string][]byte{}
	for _, key := range copiedKeys() {
		made.Data[key] = source.Data[key]
	}
	return made
}

// IsClients reports whether quorate made the Secret for an application of the cluster.
func IsClients(c schema.EtcdCluster, secret *corev1.Secret) bool {
	return slices.ContainsFunc(clientsOf(c), func(client schema.TLSClient) bool {
		return client.Secret(c.Metadata.Name) == secret.Name && isClients(c, client, secret)
	})
}
