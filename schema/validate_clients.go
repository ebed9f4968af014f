package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxCommonName is X.509's limit of a common name, in characters (RFC 5280, ub-common-name).
const maxCommonName = 64

// Secret is the name of the Secret with the application's certificate.
func (c TLSClient) Secret(cluster string) string {
	if c.SecretName != "" {
		return c.SecretName
	}
	return cluster + "-client-" + c.Name
}

// RootSecret is the Secret in which quorate keeps the password by which it comes in as user root,
// where no certificate lets it in.
func RootSecret(cluster string) string { return cluster + "-root" }

// OwnSecret reports whether a name is that of one of the Secrets with the certificates of a
// cluster's members, their authorities, and quorate itself, or of that with its password.
func OwnSecret(cluster, name string) bool {
	suffix, ok := strings.CutPrefix(name, cluster)
	return ok && slices.Contains([]string{"-ca", "-peer-ca", "-ca-next", "-peer-ca-next", "-server", "-client", "-peer", "-root"}, suffix)
}

// tlsClients checks the applications that get a certificate, but for their Secrets' names.
func (v *validator) tlsClients(t TLSSpec) {
	if len(t.Clients) > 0 && t.Mode != TLSManaged {
		v.warn(IDClientsUnsigned, "tls.clients", "get no certificate in mode %s, which has no authority of quorate's to sign it: keep them until a change from Managed is over, and take them out then", t.Mode)
	}
	for i, c := range t.Clients {
		field := fmt.Sprintf("tls.clients[%d]", i)
		v.name(field+".name", c.Name, 63)
		if slices.ContainsFunc(t.Clients[:i], func(o TLSClient) bool { return o.Name == c.Name }) {
			v.fail(field+".name", "%s is listed twice: keep one of them", clip(c.Name))
		}
		switch cn := c.CommonName; {
		case cn == "root":
			v.fail(field+".commonName", "root is quorate's own, and may do everything where authentication is on: choose another")
		case utf8.RuneCountInString(cn) > maxCommonName:
			v.fail(field+".commonName", "has %d characters: at most %d are allowed", utf8.RuneCountInString(cn), maxCommonName)
		case strings.TrimSpace(cn) != cn || strings.ContainsFunc(cn, func(r rune) bool { return !unicode.IsPrint(r) }):
			v.fail(field+".commonName", "%s has a space at an end, or a character that cannot be printed", clip(cn))
		}
		v.secret(field+".secretName", c.SecretName)
	}
}

// clientSecrets checks that each application has a Secret of its own, and that it is copied into
// other namespaces than the cluster's. The cluster's name stands in the names that are left out.
func (v *validator) clientSecrets(field, namespace, cluster string, clients []TLSClient) {
	for i, c := range clients {
		v.copies(fmt.Sprintf("%s[%d].namespaces", field, i), namespace, c)
		at, secret := fmt.Sprintf("%s[%d].secretName", field, i), c.Secret(cluster)
		if OwnSecret(cluster, secret) {
			v.fail(at, "%s is the name of one of quorate's own Secrets of this cluster: choose another", clip(secret))
		}
		for _, o := range clients[:i] {
			if o.Name != c.Name && o.Secret(cluster) == secret {
				v.fail(at, "%s is the Secret of %s already: choose another", clip(secret), clip(o.Name))
			}
		}
	}
}
