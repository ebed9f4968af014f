package plan

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// drawnCertificate is a certificate of random period, with its key.
type drawnCertificate struct {
	text []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// drawCertificate signs a certificate by another one, nil for itself, with a new key unless one is given.
func drawCertificate(
	t *testing.T, r *rand.Rand, name string, by *drawnCertificate, key *ecdsa.PrivateKey,
) drawnCertificate {
	t.Helper()
	var err error
	if key == nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), crand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	from := noon.Add(time.Duration(r.IntN(100)) * time.Hour)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(r.Int64()), NotBefore: from,
		NotAfter: from.Add(time.Duration(1+r.IntN(100)) * time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(crand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return drawnCertificate{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert, key}
}

// The verifier of the worlds agrees with a verification that knows nothing of earlier ones: for random pairs of
// certificates and roots, other roots for the same certificate, authorities that were renewed with the same key, and
// at, before and after the limits of each period.
func TestVerifierIsAsStrictAsVerification(t *testing.T) {
	r := rand.New(rand.NewPCG(49, 1))
	var authorities, leaves []drawnCertificate
	for i := range 4 {
		a := drawCertificate(t, r, fmt.Sprint("authority ", i/2), nil, nil) // two of one name, with other keys
		authorities = append(authorities, a, drawCertificate(t, r, a.cert.Subject.CommonName, nil, a.key))
	}
	var times []time.Time
	for i := range 12 {
		leaves = append(leaves, drawCertificate(t, r, fmt.Sprint("leaf ", i), &authorities[r.IntN(len(authorities))], nil))
	}
	for _, c := range append(authorities, leaves...) {
		for _, limit := range []time.Time{c.cert.NotBefore, c.cert.NotAfter} {
			times = append(times, limit.Add(-time.Nanosecond), limit, limit.Add(time.Nanosecond), limit.Add(time.Second))
		}
	}
	v, answers := newVerifier(), map[bool]int{}
	for range 4000 {
		var roots []byte
		plain := x509.NewCertPool()
		for range 1 + r.IntN(3) {
			a := authorities[r.IntN(len(authorities))]
			roots = append(roots, a.text...)
			plain.AddCert(a.cert)
		}
		leaf, now := leaves[r.IntN(len(leaves))], times[r.IntN(len(times))]
		_, err := leaf.cert.Verify(x509.VerifyOptions{
			Roots: plain, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		if got := v.trusts(roots, leaf.text, now); got != (err == nil) {
			t.Fatalf("at %s %s is trusted: %t, verification says %v", now, leaf.cert.Subject, got, err)
		}
		answers[err == nil]++
	}
	if answers[true] < 300 || answers[false] < 300 {
		t.Errorf("%v: the pairs show nothing", answers)
	}
}

// checkedPlainly compares what a world has memoized with checks that know nothing of earlier ones, and returns how
// they differ.
func (w *certWorld) checkedPlainly() string {
	status, wanting := w.check()
	if plain := certs.Check(w.c, "cluster.local", w.secrets, w.now); !reflect.DeepEqual(status, plain) {
		return fmt.Sprintf("%s: certs.Check finds %+v, memoized is %+v", w.now, plain, status)
	}
	if plain := certs.CheckClients(w.c, w.secrets, w.now).Wanting; !reflect.DeepEqual(wanting, plain) {
		return fmt.Sprintf("%s: certs.CheckClients finds %+v, memoized is %+v", w.now, plain, wanting)
	}
	for name, s := range w.secrets {
		if plain := certs.Refused(w.c, w.secrets, s); !reflect.DeepEqual(w.refused(w.c, s), plain) {
			return fmt.Sprintf("%s: certs.Refused of %s finds %q", w.now, name, plain)
		}
	}
	for _, peers := range []bool{false, true} {
		for i := range w.pods {
			roots, mine := w.pods[i].clients, w.pods[i].server
			if peers {
				roots, mine = w.pods[i].peers, w.pods[i].peer
			}
			leaf := w.leaf(mine)
			if plain := certs.SignerOf(w.c, "cluster.local", w.secrets, peers, leaf); w.signerOf(peers, leaf) != plain {
				return fmt.Sprintf("%s: certs.SignerOf finds %s", w.now, plain)
			}
			for _, by := range []state.Signer{state.ByPresent, state.ByNext} {
				kept := w.throwaway(peers, by)
				plain, err := certs.Throwaway(w.c, "cluster.local", w.secrets, peers, by, w.now)
				if (kept == nil) != (err != nil) || kept != nil && w.trusts(roots, kept) != w.trustsPlainly(roots, plain) {
					return fmt.Sprintf("%s: member %d takes another throwaway certificate of the %s authority", w.now, i, by)
				}
			}
		}
	}
	return ""
}

func (w *certWorld) trustsPlainly(roots []byte, shown *corev1.Secret) bool {
	return newVerifier().trusts(roots, shown.Data[corev1.TLSCertKey], w.now)
}

// What worlds of certificates have memoized is what a new check of the same Secrets finds, in the midst of changes and
// years after them, when all has expired.
func TestMemoizedChecksAreAsStrictAsPlainOnes(t *testing.T) {
	compares := 0
	compare := func(w *certWorld) {
		compares++
		if differs := w.checkedPlainly(); differs != "" {
			t.Fatal(differs)
		}
	}
	for seed := range uint64(histories(3, 1)) {
		w := newCertWorld([]time.Duration{0, 3 * time.Minute, 24 * time.Hour}[seed], seed)
		w.c.Spec.TLS.Rotate, w.brisk = "2026-12", seed == 1
		w.doctor = func(*state.Observed) { compare(w) }
		for range 40 {
			w.happens([]time.Duration{time.Second, time.Minute, 5 * time.Minute}[w.random.IntN(3)])
			w.pass()
		}
		for range 20 {
			w.happens(time.Hour * []time.Duration{1, 5 * 24, 20 * 24, 400 * 24}[w.random.IntN(4)])
			compare(w)
		}
	}
	if compares < histories(150, 50) {
		t.Errorf("compared %d times only", compares)
	}
}

// The same holds where the issuer changes.
func TestMemoizedChecksOfIssuersAreAsStrictAsPlainOnes(t *testing.T) {
	compares := 0
	for seed := range uint64(2) {
		w := issuerHistory(seed)
		compare := func(*state.Observed) {
			compares++
			live := w.c
			live.Spec.TLS.Mode = w.template.mode
			status, both := w.check(live)
			if plain := certs.Check(live, "cluster.local", w.secrets, w.now); !reflect.DeepEqual(status, plain) {
				t.Fatalf("%s: certs.Check finds %+v, memoized is %+v", w.now, plain, status)
			}
			if plain := certs.CheckIssuers(live, "cluster.local", w.secrets, w.now); !reflect.DeepEqual(both, plain) {
				t.Fatalf("%s: certs.CheckIssuers finds %+v, memoized is %+v", w.now, plain, both)
			}
			for name, s := range w.secrets {
				named := certs.NamedBy(w.c)
				if plain := certs.Refused(named, w.secrets, s); !reflect.DeepEqual(w.refused(named, s), plain) {
					t.Fatalf("%s: certs.Refused of %s finds %q", w.now, name, plain)
				}
			}
		}
		w.doctor = compare
		w.c.Spec.TLS.Mode = map[uint64]schema.TLSMode{0: schema.TLSSecrets, 1: schema.TLSManaged}[seed]
		for range 40 {
			w.happens([]time.Duration{time.Second, time.Minute, 5 * time.Minute}[w.random.IntN(3)])
			w.pass()
			w.follow()
		}
		for range 20 {
			w.happens(time.Hour * []time.Duration{1, 5 * 24, 20 * 24, 100 * 24}[w.random.IntN(4)])
			compare(nil)
		}
	}
	if compares < 80 {
		t.Errorf("compared %d times only", compares)
	}
}
