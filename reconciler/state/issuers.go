package state

import (
	"slices"
	"time"

	"github.com/quorate/quorate/schema"
)

// Issuers is how a cluster stands between the two that may issue its certificates, quorate and
// another program. All of it is read from certificates, and from what pods mount.
type Issuers struct {
	// Both and Alone are the Secrets with what members trust, by their content: the authorities of
	// both issuers, and those alone of the one that Git wants. "" where that cannot be made yet.
	Both, Alone string
	// Made are the Secrets with what members trust that are there.
	Made []string
	// Told says that the Secrets that quorate writes say that both issuers are trusted.
	Told bool
	// Mounted is the Secret with what members trust that the StatefulSet's template mounts, "" for
	// none, and Mixed says that it trusts the issuer of the template's certificates and another.
	Mounted string
	Mixed   bool
	// Halfway says that each pod mounts Both, and one shows a certificate of the issuer that Git
	// wants, though the template has those of the other one: the roll to that was taken back.
	Halfway bool
	// Gone are Secrets with what members trust that pods, or the template, mount and that are not
	// there.
	Gone []string
	// Problems, Missing, MissingSANs, Due and Clients are of the issuer that the template has no
	// certificates of what Certificates has of the other one.
	Problems, Missing, MissingSANs, Due []string
	Clients                             []ClientCertificate
	// NoRoot is why quorate would not come in as user root by the certificate that the other program
	// has issued for it; "" where it would, or where members show that program's certificates already.
	NoRoot string
	// NamedAt is when the other program's Secrets were changed last.
	NamedAt time.Time
	// Left are the Secrets with certificates and keys that quorate has made, where another
	// program's are shown.
	Left []string
}

// SettlesAt is when what the other program's Secrets have has reached every pod.
func (i *Issuers) SettlesAt() time.Time { return i.NamedAt.Add(TrustSettles) }

// Has reports whether there is a Secret with what members trust.
func (i *Issuers) Has(name string) bool { return name != "" && slices.Contains(i.Made, name) }

// Publish notes that there is a Secret with what members trust.
func (i *Issuers) Publish(name string) {
	i.Gone = slices.DeleteFunc(slices.Clone(i.Gone), func(gone string) bool { return gone == name })
	if !i.Has(name) {
		i.Made = append(slices.Clone(i.Made), name)
	}
}

// SameIssuer reports whether two modes have TLS, with certificates of the same issuer.
func SameIssuer(a, b schema.TLSMode) bool {
	return a != schema.TLSDisabled && b != schema.TLSDisabled && (a == schema.TLSSecrets) == (b == schema.TLSSecrets)
}
