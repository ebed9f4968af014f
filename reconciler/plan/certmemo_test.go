package plan

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/state"
)

// A world of certificates checks the same signatures at each moment. They never change; time does. So what was
// verified is kept, and the clock is compared with the periods of the certificates each time.

// verifier verifies certificates against roots, each pair of them once.
type verifier struct {
	pools  map[string]*x509.CertPool
	parsed map[string]*x509.Certificate
	chains map[verifiedPair][][]*x509.Certificate
}

// verifiedPair is a certificate and the roots that it was verified against. Equal texts are one pool, or one
// certificate.
type verifiedPair struct {
	roots *x509.CertPool
	leaf  *x509.Certificate
}

func newVerifier() verifier {
	return verifier{
		pools: map[string]*x509.CertPool{}, parsed: map[string]*x509.Certificate{},
		chains: map[verifiedPair][][]*x509.Certificate{},
	}
}

// trusts reports whether a certificate leads to one of the roots at a time. A chain that was verified before
// counts if each of its certificates is valid now. What was refused is verified again.
func (v verifier) trusts(roots, shown []byte, now time.Time) bool {
	pair := verifiedPair{v.pool(roots), v.certificate(shown)}
	if slices.ContainsFunc(v.chains[pair], func(chain []*x509.Certificate) bool { return validAt(chain, now) }) {
		return true
	}
	chains, err := pair.leaf.Verify(x509.VerifyOptions{
		Roots: pair.roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	v.chains[pair] = append(v.chains[pair], chains...)
	return err == nil
}

// validAt reports whether a time is within the periods of all certificates of a chain.
func validAt(chain []*x509.Certificate, now time.Time) bool {
	return !slices.ContainsFunc(chain, func(c *x509.Certificate) bool {
		return now.Before(c.NotBefore) || now.After(c.NotAfter)
	})
}

func (v verifier) pool(roots []byte) *x509.CertPool {
	pool := v.pools[string(roots)]
	if pool == nil {
		pool = x509.NewCertPool()
		pool.AppendCertsFromPEM(roots)
		v.pools[string(roots)] = pool
	}
	return pool
}

func (v verifier) certificate(text []byte) *x509.Certificate {
	cert := v.parsed[string(text)]
	if cert == nil {
		block, _ := pem.Decode(text)
		var err error
		if cert, err = x509.ParseCertificate(block.Bytes); err != nil {
			panic(err)
		}
		v.parsed[string(text)] = cert
	}
	return cert
}

// secretsMemo keeps the results of package certs for one version of the Secrets of a world.
type secretsMemo struct {
	secrets map[string]*corev1.Secret
	// turns are the times at which the same Secrets may have another result.
	turns   []time.Time
	results map[any]timedResult
}

type timedResult struct {
	value any
	at    time.Time
}

// memoize returns the result of check for the Secrets of a world at its time. It checks again when a Secret is
// another object, and when the time of a turn has come since it checked last. key names the check, with its
// arguments. Callers must not change the result.
func memoize[T any](w *certWorld, key any, check func() T) T {
	m := &w.memo
	if !maps.Equal(m.secrets, w.secrets) {
		*m = secretsMemo{
			secrets: maps.Clone(w.secrets), turns: turnsOf(w.secrets, w.c.Spec.TLS.CertificateLife()),
			results: map[any]timedResult{},
		}
	}
	last, known := m.results[key]
	turned := func(turn time.Time) bool { return !turn.Before(last.at) && !turn.After(w.now) }
	if !known || w.now.Before(last.at) || slices.ContainsFunc(m.turns, turned) {
		last = timedResult{check(), w.now}
		m.results[key] = last
	}
	return last.value.(T)
}

// turnsOf are the times at which package certs may judge the certificates in Secrets otherwise: the begin and the
// end of each, two thirds of its life, and from when on one of the given life would outlive it.
func turnsOf(secrets map[string]*corev1.Secret, life time.Duration) (turns []time.Time) {
	for _, s := range secrets {
		for _, text := range s.Data {
			for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
				if c, err := x509.ParseCertificate(block.Bytes); err == nil {
					twoThirds := c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3)
					turns = append(turns, c.NotBefore, c.NotAfter, twoThirds, c.NotAfter.Add(-life))
				}
			}
		}
	}
	return turns
}

// cloneRotation is a copy that a world may change.
func cloneRotation(r *state.Rotation) *state.Rotation {
	if r == nil {
		return nil
	}
	c := *r
	c.Trusts, c.Leaves = maps.Clone(r.Trusts), slices.Clone(r.Leaves)
	return &c
}
