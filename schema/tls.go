package schema

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TLSMode is where the certificates come from.
type TLSMode string

// The TLS modes.
const (
	// TLSManaged lets quorate issue a CA and certificates, kept in Secrets.
	TLSManaged TLSMode = "Managed"
	// TLSSecrets takes certificates that another program issued, such as
	// cert-manager, from Secrets.
	TLSSecrets TLSMode = "Secrets"
	// TLSDisabled sends everything in clear text. Only for a laboratory.
	TLSDisabled TLSMode = "Disabled"
)

// Encrypts reports whether a mode has TLS: all but an explicit Disabled.
func (m TLSMode) Encrypts() bool { return m != TLSDisabled }

// TLSSpec is how traffic is protected.
type TLSSpec struct {
	// Mode is Managed (default), Secrets or Disabled. Between plain text and TLS it changes by
	// two rolling updates, between which members speak both and clients have the overlap to move.
	// Between Managed and Secrets these are three: members first trust both issuers, then show
	// certificates of the other one, and then trust that one alone; between them are overlaps.
	Mode TLSMode `json:"mode,omitempty"`
	// Secrets names the Secrets of mode Secrets. When the mode changes to another one, they stay
	// here until the change is over: until then members show what they have.
	Secrets TLSSecretNames `json:"secrets,omitzero" jsonschema:"change=server and peer are immutable"`
	// Clients get a certificate each that the members accept, for applications. Only
	// mode Managed issues them; keep the list until a change to another mode is over. When one leaves the list, its Secret stays and is no longer renewed, and
	// members accept its certificate until it expires, or the authorities change.
	Clients []TLSClient `json:"clients,omitempty" jsonschema:"maxItems=64,unique"`
	// Rotate asks for new authorities, of clients and of members, when it is another word than
	// before, such as "2026-12". Members first trust both, then all certificates are issued by
	// the new ones, and then the new ones alone are trusted: two rolling updates. Until the
	// last one begins, the word before, or none, goes back to the old authorities. At most 63
	// letters, digits, dashes, dots and underscores. Mode Managed only.
	Rotate string `json:"rotate,omitempty" jsonschema:"form=word"`
	// Lifetimes is how long what quorate issues is good for. Mode Managed only.
	Lifetimes TLSLifetimes `json:"lifetimes,omitzero"`
	// Overlap is how long clients have, while the authorities change, to take up what they are
	// to trust, and again to take up their new certificates; and how long members speak plain
	// text and TLS while the mode changes. Some clients read certificates only when they start,
	// such as a kube-apiserver its --etcd-cafile. 0s to 720h, and in mode Managed at most a sixth
	// of lifetimes.authority. Default 24h.
	Overlap *metav1.Duration `json:"overlap,omitempty"`
}

// TLSClient is an application that connects to the cluster with a certificate of its own.
type TLSClient struct {
	// Name of the application, such as checkout.
	Name string `json:"name" jsonschema:"form=label"`
	// CommonName in the certificate. Default: the name. Where authentication is on, etcd
	// takes it for the user's name. The name root is quorate's own and refused.
	CommonName string `json:"commonName,omitempty" jsonschema:"maxLength=64"`
	// SecretName is the Secret of the cluster's namespace in which the application finds
	// tls.crt, tls.key and ca.crt, of type kubernetes.io/tls. Quorate makes it and renews
	// it at two thirds of the certificate's life. Default: CLUSTER-client-NAME.
	SecretName string `json:"secretName,omitempty" jsonschema:"form=subdomain"`
	// Namespaces are others in which the Secret is kept as well, by the same name, for
	// applications that live there. Quorate renews the copies, and deletes those that are no
	// longer listed. A Secret there that it has not made is never written: it is told of, and
	// nothing waits for it. At most 16.
	Namespaces []string `json:"namespaces,omitempty" jsonschema:"maxItems=16,unique,form=label"`
}

// TLSLifetimes is how long certificates are good for.
type TLSLifetimes struct {
	// Certificate is the life of what members and clients show. They are issued again when
	// two thirds of it are over. 10m to 43800h. Default 8760h, a year.
	Certificate *metav1.Duration `json:"certificate,omitempty"`
	// Authority is the life of what signs them. New ones are made when two thirds of it are
	// over, as if spec.tls.rotate had asked for it. 30m to 262800h, and at least three times
	// that of certificates. Default 87600h, ten years.
	Authority *metav1.Duration `json:"authority,omitempty"`
}

// The lives of certificates, and the overlap, where the file does not say.
const (
	defaultCertificateLife = 365 * 24 * time.Hour
	defaultAuthorityLife   = 10 * 365 * 24 * time.Hour
	defaultOverlap         = 24 * time.Hour
)

// CertificateLife is how long what members and clients show is good for.
func (t TLSSpec) CertificateLife() time.Duration {
	return durationOr(t.Lifetimes.Certificate, defaultCertificateLife)
}

// AuthorityLife is how long what signs certificates is good for.
func (t TLSSpec) AuthorityLife() time.Duration {
	return durationOr(t.Lifetimes.Authority, defaultAuthorityLife)
}

// OverlapTime is how long clients have to take up what a change of the authorities asks of them.
func (t TLSSpec) OverlapTime() time.Duration { return durationOr(t.Overlap, defaultOverlap) }

// durationOr is a duration of a file, or what stands for one that was left out.
func durationOr(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

// TLSSecretNames are Secrets of the cluster's namespace, of type
// kubernetes.io/tls with the keys tls.crt, tls.key and ca.crt. All three are
// needed. NAME-server, NAME-peer and NAME-client are the names of mode Managed
// and refused. Names may be wildcards.
type TLSSecretNames struct {
	// Server has what members show to clients: serverAuth and clientAuth, for
	// NAME-client.NAMESPACE.svc, NAME-0.NAME-peers.NAMESPACE.svc and so on, and
	// localhost.
	Server string `json:"server,omitempty" jsonschema:"form=subdomain"`
	// Peer has what members show to each other: serverAuth and clientAuth, for
	// NAME-0.NAME-peers.NAMESPACE.svc and so on. Members check these names.
	Peer string `json:"peer,omitempty" jsonschema:"form=subdomain"`
	// Client has what quorate shows to the members: clientAuth.
	Client string `json:"client,omitempty" jsonschema:"form=subdomain"`
}
