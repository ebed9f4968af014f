package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxRecipients bounds the header of an encrypted backup.
const maxRecipients = 16

// validateBackup says everything that is wrong with a defaulted backup.
func validateBackup(b *EtcdBackup) []Problem {
	v := &validator{}
	v.metadata(b.Metadata, validation.DNS1123LabelMaxLength)
	v.backup("spec", b.Spec)
	return v.problems
}

// backup checks what to back up, and where to.
func (v *validator) backup(field string, b BackupRequest) {
	source := b.Source
	switch {
	case source.ClusterName == "" && source.ClusterURL == "":
		v.fail(field+".source", "names no cluster: write clusterName, or clusterURL for one that quorate does not run")
	case source.ClusterName != "" && source.ClusterURL != "":
		v.fail(field+".source", "names two clusters: keep one of clusterName and clusterURL")
	case source.ClusterName != "":
		v.name(field+".source.clusterName", source.ClusterName, maxName)
	default:
		v.clusterURL(field+".source.clusterURL", source.ClusterURL)
	}
	if source.ClusterURL != "" && b.Destination.ObjectURLTemplate == "" {
		v.fail(field+".destination.objectURLTemplate", "is missing: a source by URL has no cluster whose destination could be taken")
	}
	v.secret(field+".source.tls.secretName", source.TLS.SecretName)
	if source.TLS.SecretName != "" && !strings.HasPrefix(strings.ToLower(source.ClusterURL), "https:") {
		v.fail(field+".source.tls", "is used with an https clusterURL only")
	}
	v.destination(field+".destination", b.Destination)
}

// clusterURL checks the URL of a cluster that quorate does not run.
func (v *validator) clusterURL(field, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		// The cause would repeat the URL, which may hold a secret.
		v.fail(field, "is no URL of an etcd cluster: write https://host:2379")
	case u.User != nil:
		v.fail(field, "must not hold a user or password: name a Secret with tls.secretName")
	case u.Port() == "":
		v.fail(field, "has no port: write %s://%s:2379", u.Scheme, strings.TrimSuffix(u.Host, ":"))
	case !isPort(u.Port()):
		v.fail(field, "has the port %s, and there are 1 to 65535: etcd's own is 2379", clip(u.Port()))
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		v.fail(field, "must end with the port: write %s://%s", u.Scheme, u.Host)
	}
}

// isPort accepts the ports of TCP.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// destination checks a place in an object store; its template is expanded with
// sample data.
func (v *validator) destination(field string, d Destination) {
	sample := ObjectURLData{Namespace: "namespace", Name: "name", Version: "3.6.16", UID: "0123456789ab"}
	if d.ObjectURLTemplate != "" {
		if text, err := ExpandObjectURL(d.ObjectURLTemplate, sample); err != nil {
			v.fail(field+".objectURLTemplate", "%v", err)
		} else {
			v.storeAccess(field+".objectURLTemplate", text, d.Credentials.SecretName != "")
		}
	}
	v.podAccess(field+".podAccess", d.PodAccess, d.ObjectURLTemplate, d.Credentials)
	v.secret(field+".credentials.secretName", d.Credentials.SecretName)
	if d.Compression != "" {
		oneOf(v, field+".compression", d.Compression, CompressionZstd, CompressionNone)
	}
	if n := len(d.Encryption.Recipients); n > maxRecipients {
		v.fail(field+".encryption.recipients", "has %d keys and at most %d are allowed", n, maxRecipients)
	}
	for i, key := range d.Encryption.Recipients {
		v.recipient(fmt.Sprintf("%s.encryption.recipients[%d]", field, i), key)
	}
}

// podAccess checks how pods read the backups at a URL, which is empty where another
// document says it.
func (v *validator) podAccess(field string, a PodAccess, objectURL string, c CredentialsSpec) {
	file := strings.HasPrefix(strings.ToLower(objectURL), "file:")
	v.object(field+".claimName", "PersistentVolumeClaim", a.ClaimName)
	v.object(field+".serviceAccountName", "ServiceAccount", a.ServiceAccountName)
	switch {
	case a.ClaimName != "" && a.ServiceAccountName != "":
		v.fail(field, "names two ways: keep claimName for file URLs, and serviceAccountName for all others")
	case file && a.ClaimName == "":
		v.warn(IDFileWithoutClaim, field+".claimName", "is missing: quorate can back up to a file URL, and no restore or drill can read it there; name a PersistentVolumeClaim of this namespace that has the files")
	case objectURL != "" && !file && a.ClaimName != "":
		v.fail(field+".claimName", "is for file URLs only: leave it out")
	case a.ServiceAccountName != "" && c.SecretName != "":
		v.fail(field+".serviceAccountName", "has no effect beside credentials.secretName, which the pods are given: leave one of the two out")
	}
}

// object checks the name of an object of Kubernetes.
func (v *validator) object(field, kind, name string) {
	if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		v.fail(field, "is not the name of a %s: write lower-case letters, digits, dashes and dots", kind)
	}
}

// recipient checks the public key of one who may decrypt.
func (v *validator) recipient(field, key string) {
	if problem := recipientProblem(key); problem != "" {
		v.fail(field, "%s", problem)
	}
}

// recipientProblem is what is wrong with the public key of one who may decrypt, or "". The
// key is not repeated: it may be a private one.
func recipientProblem(key string) string {
	if strings.Contains(strings.ToUpper(key), "AGE-SECRET-KEY-") {
		return "is a private key: it is known to all who can read this repository, so make a new pair with age-keygen and write the public key, age1…"
	}
	if _, err := age.ParseX25519Recipient(key); err != nil {
		return "is not a public key of age: write the one that age-keygen prints, age1…"
	}
	return ""
}
