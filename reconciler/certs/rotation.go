package certs

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// rotationOf is how far a change of the authorities is, as far as the Secrets tell.
func rotationOf(c schema.EtcdCluster, pairs []pair, secrets map[string]*corev1.Secret, now time.Time) *state.Rotation {
	r := &state.Rotation{Trusts: map[string]time.Time{}}
	var words, nextWords []string
	for _, p := range pairs {
		if a := p.present; a != nil && a.cert != nil {
			words = append(words, wordOf(a.cert))
			if r.Ends.IsZero() || a.cert.NotAfter.Before(r.Ends) {
				r.Made, r.Ends = a.cert.NotBefore.Add(clockSkew), a.cert.NotAfter
			}
			if a.lost != "" {
				r.Lost = append(r.Lost, a.lost)
			}
			if a.over(now) && !a.is(p.nextCert()) {
				r.Over = fmt.Sprintf("%s expired on %s", p.name, day(a.cert.NotAfter))
			}
		}
		next := p.name + naming.NextSuffix
		if p.next == nil {
			r.Absent = append(r.Absent, next)
		} else if p.next.cert != nil {
			r.Next = append(r.Next, next)
			nextWords = append(nextWords, wordOf(p.next.cert))
		}
		for _, l := range p.all() {
			if secrets[l.Secret] != nil {
				r.Leaves = append(r.Leaves, p.issued(secrets[l.Secret]))
			}
		}
	}
	// Two authorities of different words were asked for by none that Git can say.
	r.Word, r.NextWord = strings.Join(slices.Compact(words), " and "), strings.Join(slices.Compact(nextWords), " and ")
	r.Old, r.Both, r.New = trustOf(pairs, presentOf).name(c), trustOf(pairs, bothOf).name(c), trustOf(pairs, finalOf).name(c)
	for name, secret := range secrets {
		if naming.IsTrust(c.Metadata.Name, name) && holds(c, secret) {
			r.Trusts[name] = secret.CreationTimestamp.Time
		}
	}
	return r
}

// issued is a certificate in a Secret, by who has signed it and what is trusted beside it.
func (p pair) issued(secret *corev1.Secret) state.IssuedLeaf {
	l := state.IssuedLeaf{Secret: secret.Name, By: state.ByOther, Bundle: state.BundleOther}
	if leaf, err := firstCertificate(secret.Data[corev1.TLSCertKey]); err == nil {
		l.By = p.by(leaf)
	}
	trusted := secret.Data[naming.AuthorityCertKey]
	switch {
	case sameTrust(trusted, presentOf(p)):
		l.Bundle = state.BundleOld
	case sameTrust(trusted, bothOf(p)):
		l.Bundle = state.BundleBoth
	case sameTrust(trusted, finalOf(p)):
		l.Bundle = state.BundleNew
	}
	return l
}

// by is which of the two has signed a certificate.
func (p pair) by(leaf *x509.Certificate) state.Signer {
	switch {
	case p.present.signed(leaf) && (p.next == nil || p.present.is(p.next.cert)):
		return state.ByBoth
	case p.next.signed(leaf):
		return state.ByNext
	case p.present.signed(leaf):
		return state.ByPresent
	}
	return state.ByOther
}

// NextAuthorities makes those of the next authorities that are not there. It changes none.
func NextAuthorities(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, now time.Time) ([]*corev1.Secret, error) {
	var made []*corev1.Secret
	for _, p := range pairsOf(c, clusterDomain, secrets) {
		if p.next != nil {
			continue
		}
		secret, err := newAuthority(c, p.name, now.UTC().Format("20060102T150405Z"), now)
		if err != nil {
			return nil, fmt.Errorf("make %s: %w", p.name+naming.NextSuffix, err)
		}
		secret.Name = p.name + naming.NextSuffix
		made = append(made, secret)
	}
	return made, nil
}

// Bundles are the Secrets of certificates with what their holders are to trust: those that
// do not say so yet.
func Bundles(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, want state.Bundle) []*corev1.Secret {
	var changed []*corev1.Secret
	for _, p := range pairsOf(c, clusterDomain, secrets) {
		text := map[state.Bundle]func(pair) []byte{state.BundleOld: presentOf, state.BundleBoth: bothOf, state.BundleNew: finalOf}[want](p)
		for _, l := range p.all() {
			if s := secrets[l.Secret]; s != nil && !sameTrust(s.Data[naming.AuthorityCertKey], text) {
				s = s.DeepCopy()
				s.Data = maps.Clone(s.Data)
				s.Data[naming.AuthorityCertKey] = text
				changed = append(changed, s)
			}
		}
	}
	return changed
}

// Trust is the Secret of that name with what members trust. It is an error where the authorities
// that there are make none of that name.
func Trust(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, name string) (*corev1.Secret, error) {
	pairs := pairsOf(c, clusterDomain, secrets)
	for _, of := range []func(pair) []byte{presentOf, bothOf, finalOf} {
		if t := trustOf(pairs, of); t.name(c) == name {
			return t.secret(c), nil
		}
	}
	return nil, fmt.Errorf("make %s: the authorities are others by now", name)
}

// IssueBy issues each certificate anew that is not signed by the present authority, or by the
// next one. Each is checked before it is returned: that its names, its usages and its life are
// what is needed, and that the authority that signs is the one that is trusted.
func IssueBy(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, by state.Signer, now time.Time) ([]*corev1.Secret, error) {
	var issued []*corev1.Secret
	for _, p := range pairsOf(c, clusterDomain, secrets) {
		signer := p.present
		if by == state.ByNext {
			signer = p.next
		}
		for _, l := range p.all() {
			old := secrets[l.Secret]
			if old == nil || p.issued(old).By.Is(by) {
				continue
			}
			if !signer.valid(now) {
				return nil, fmt.Errorf("issue %s: the %s authority of %s cannot sign", l.Secret, by, p.name)
			}
			leaf, err := reissue(c, l, old, signer, now)
			if err != nil {
				return nil, err
			}
			if err := proper(l, leaf, now); err != nil {
				return nil, fmt.Errorf("issue %s with %s: %w", l.Secret, signer.secret.Name, err)
			}
			issued = append(issued, leaf)
		}
	}
	return issued, nil
}

// proper checks a certificate that was just issued as those do to whom it is shown.
func proper(l Leaf, secret *corev1.Secret, now time.Time) error {
	leaf, err := firstCertificate(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data[naming.AuthorityCertKey])
	for _, usage := range l.usages {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			return err
		}
	}
	for _, name := range l.Names() {
		if err := leaf.VerifyHostname(name); err != nil {
			return err
		}
	}
	return nil
}

// Retire ends a change of the authorities in favour of the present or the next ones: the Secrets
// to update, in this order, and the names of those to delete after. The present Secrets then hold
// what is left, and no other key is kept.
func Retire(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, keep state.Signer) (update []*corev1.Secret, create []*corev1.Secret, remove []string) {
	bundle := state.BundleOld
	if keep == state.ByNext {
		bundle = state.BundleNew
	}
	update = Bundles(c, clusterDomain, secrets, bundle)
	for _, p := range pairsOf(c, clusterDomain, secrets) {
		if p.next == nil {
			continue
		}
		if taken := p.present.is(p.next.cert) && p.present.lost == ""; keep == state.ByNext && !taken {
			promoted := secretOf(c, p.name, corev1.SecretTypeOpaque, maps.Clone(p.next.secret.Data))
			if old := secrets[p.name]; old != nil {
				promoted = old.DeepCopy()
				promoted.Data = maps.Clone(p.next.secret.Data)
				update = append(update, promoted)
			} else {
				create = append(create, promoted)
			}
		}
		remove = append(remove, p.name+naming.NextSuffix)
	}
	return update, create, remove
}

// Throwaway is a certificate of a few minutes that one of the authorities of clients, or of
// members, signs, with the certificates that are trusted beside it. It is for asking a member
// whom it trusts. It is an error where that authority cannot sign.
func Throwaway(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, peers bool, by state.Signer, now time.Time) (*corev1.Secret, error) {
	pairs := pairsOf(c, clusterDomain, secrets)
	p := pairs[0]
	if peers {
		p = pairs[1]
	}
	signer := p.present
	if by == state.ByNext {
		signer = p.next
	}
	if !signer.valid(now) {
		return nil, fmt.Errorf("the %s authority of %s cannot sign", by, p.name)
	}
	leaf := Leaf{Secret: "quorate-asks", cn: "quorate-asks", usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	secret, err := newLeafFor(c, leaf, signer.secret, 10*time.Minute, now)
	if err != nil {
		return nil, err
	}
	secret.Data[naming.AuthorityCertKey] = bothOf(p)
	return secret, nil
}

// SignerOf is which of the authorities of clients, or of members, has signed a certificate.
func SignerOf(c schema.EtcdCluster, clusterDomain string, secrets map[string]*corev1.Secret, peers bool, leaf *x509.Certificate) state.Signer {
	pairs := pairsOf(c, clusterDomain, secrets)
	if peers {
		return pairs[1].by(leaf)
	}
	return pairs[0].by(leaf)
}
