package certs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// While spec.tls.mode changes between Managed and Secrets, quorate and another program have both
// issued certificates, and members trust the authorities of both.

// Issuers is how the certificates of both issuers are.
type Issuers struct {
	// Both, Managed and Named are the Secrets with what trusts both issuers, quorate's authorities
	// alone, and those of the Secrets that the file names. "" where that cannot be made.
	Both, Managed, Named string
	// Told says that the Secrets that quorate writes say that both are trusted.
	Told bool
	// Mixed are the Secrets with what members trust that trust both: by name, and by the mode
	// of the certificates that are shown beside it.
	Mixed map[schema.TLSMode][]string
	// Other is how the certificates are of the mode that is not the one of the members, and
	// Clients how those of applications are.
	Other   Status
	Clients Clients
	// NoRoot is why the other program's certificate for quorate is none of user root, where members
	// show quorate's.
	NoRoot string
	// Left are the Secrets with certificates and keys that quorate has made.
	Left []string
}

// ManagedBy is a cluster as quorate issues its certificates.
func ManagedBy(c schema.EtcdCluster) schema.EtcdCluster {
	c.Spec.TLS.Mode = schema.TLSManaged
	return c
}

// NamedBy is a cluster whose Secrets the file names.
func NamedBy(c schema.EtcdCluster) schema.EtcdCluster {
	c.Spec.TLS.Mode = schema.TLSSecrets
	return c
}

// CheckIssuers compares the certificates of both issuers with what a cluster needs whose members
// show those of the mode of c. secrets holds the Secrets of both by name.
func CheckIssuers(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, now time.Time) Issuers {
	var found Issuers
	managed, named := ManagedBy(c), NamedBy(c)
	pairs := pairsOf(managed, clusterDomain, secrets)
	own := trustOf(pairs, bothOf)
	if len(own.clients) > 0 && len(own.peers) > 0 {
		found.Managed = trustOf(pairs, presentOf).name(c)
	}
	if s := NamedTrust(named, secrets); s != nil {
		found.Named = s.Name
	}
	if s := UnitedTrust(c, clusterDomain, secrets); s != nil {
		found.Both, found.Told = s.Name, len(UnitedBundles(c, clusterDomain, secrets)) == 0
	}
	found.Mixed = map[schema.TLSMode][]string{}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		switch s := secrets[name]; {
		case KeepsTrust(c, s):
			for mode, mixes := range map[schema.TLSMode]func(trust, trust) bool{schema.TLSManaged: addsTo, schema.TLSSecrets: meets} {
				if mixes(own, trustIn(s)) {
					found.Mixed[mode] = append(found.Mixed[mode], name)
				}
			}
		case naming.IsIssued(c.Metadata.Name, name) && naming.Owns(s, c):
			found.Left = append(found.Left, name)
		}
	}
	found.checkOther(c, clusterDomain, secrets, now)
	return found
}

// checkOther checks the certificates that members do not show.
func (i *Issuers) checkOther(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, now time.Time) {
	if !naming.ManagesTLS(c) {
		managed := ManagedBy(c)
		i.Other, i.Clients = Check(managed, clusterDomain, secrets, now), CheckClients(managed, secrets, now)
		// No authority takes the place of one that nothing shows yet.
		if r := i.Other.Rotation; r.Over != "" || len(r.Lost) > 0 {
			for _, why := range append(r.Lost, r.Over) {
				if why != "" {
					i.Other.Problems = append(i.Other.Problems, why+": delete the Secrets "+strings.Join(i.Left, ", ")+" to have all issued anew")
				}
			}
		}
		i.Other.Problems = append(i.Other.Problems, i.Clients.Foreign...)
		return
	}
	named := NamedBy(c)
	i.Other = Check(named, clusterDomain, secrets, now)
	secret := named.Spec.TLS.Secrets.Client
	name, err := CommonName(secrets[secret])
	if err != nil || name == clientCommonName {
		return
	}
	i.NoRoot = fmt.Sprintf("the certificate in the Secret %s has the common name %q", secret, name)
	if c.Spec.AuthEnabled() {
		i.Other.problem(secret, "has the common name %q: with authentication on quorate needs %s", name, clientCommonName)
	}
}

// addsTo reports whether a trust has all of another one, and more.
func addsTo(own, t trust) bool {
	has := func(of, all []byte) bool { return len(of) > 0 && !slices.ContainsFunc(fingerprints(of), notIn(all)) }
	return has(own.clients, t.clients) && has(own.peers, t.peers) && t.name(schema.EtcdCluster{}) != own.name(schema.EtcdCluster{})
}

// meets reports whether a trust has anything of another one.
func meets(own, t trust) bool {
	some := func(of, all []byte) bool {
		missing := notIn(all)
		return slices.ContainsFunc(fingerprints(of), func(one string) bool { return !missing(one) })
	}
	return some(own.clients, t.clients) || some(own.peers, t.peers)
}

// notIn reports whether a fingerprint is none of those in a bundle.
func notIn(text []byte) func(string) bool {
	all := fingerprints(text)
	return func(one string) bool { return !slices.Contains(all, one) }
}

// united is what trusts both issuers; false where one of them is not known.
func united(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret) (trust, bool) {
	own := trustOf(pairsOf(ManagedBy(c), clusterDomain, secrets), bothOf)
	named := NamedTrust(NamedBy(c), secrets)
	if named == nil || len(own.clients) == 0 || len(own.peers) == 0 {
		return trust{}, false
	}
	others := trustIn(named)
	return trust{slices.Concat(own.clients, others.clients), slices.Concat(own.peers, others.peers)}, true
}

// UnitedTrust is the Secret with what trusts both issuers; nil where one of them is not known.
func UnitedTrust(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret) *corev1.Secret {
	both, known := united(c, clusterDomain, secrets)
	if !known {
		return nil
	}
	return both.secret(c)
}

// UnitedBundles are the Secrets that quorate has made for members, itself and applications, and that do
// not say yet that both issuers are trusted, saying so. Those of applications that the file does not
// name any more are among them, as they are shown until that issuer is not trusted any more.
func UnitedBundles(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret) []*corev1.Secret {
	both, known := united(c, clusterDomain, secrets)
	if !known {
		return nil
	}
	var changed []*corev1.Secret
	for i, p := range pairsOf(ManagedBy(c), clusterDomain, secrets) {
		text := [][]byte{both.clients, both.peers}[i]
		for _, name := range slices.Sorted(maps.Keys(secrets)) {
			s := secrets[name]
			leaf := slices.ContainsFunc(p.leaves, func(l Leaf) bool { return l.Secret == name })
			application := i == 0 && s.Labels[naming.LabelClient] != "" && s.Type == corev1.SecretTypeTLS
			if !naming.Owns(s, c) || !leaf && !application || sameTrust(s.Data[naming.AuthorityCertKey], text) {
				continue
			}
			s = s.DeepCopy()
			s.Data = maps.Clone(s.Data)
			s.Data[naming.AuthorityCertKey] = text
			changed = append(changed, s)
		}
	}
	return changed
}
