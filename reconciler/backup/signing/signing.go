// Package signing says who has written a text: Ed25519 keys as OpenSSL makes them, their
// fingerprints, signatures by them, and the keys of an installation. It knows no store and
// no manifest.
package signing

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// fingerprintPrefix names the hash of a fingerprint, as that of a key of SSH does.
const fingerprintPrefix = "SHA256:"

// Fingerprint names a public key: the SHA-256 of its PKIX form in DER, in base64 without
// padding. It is what this prints, after SHA256: and with a = at its end:
//
//	openssl pkey -in key.pem -pubout -outform DER | openssl dgst -sha256 -binary | base64
func Fingerprint(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "" // a key of this type always has one
	}
	sum := sha256.Sum256(der)
	return fingerprintPrefix + base64.RawStdEncoding.EncodeToString(sum[:])
}

// Key signs. Nothing prints what is secret of it.
type Key struct {
	private     ed25519.PrivateKey
	public      ed25519.PublicKey
	fingerprint string
}

// ParseKey reads a private key in PEM (PKCS#8), as "openssl genpkey -algorithm ed25519"
// writes it. Its errors repeat nothing of the text.
func ParseKey(text []byte) (*Key, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it has no key in PEM: make one with openssl genpkey -algorithm ed25519")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("its first block is %q, and no Ed25519 private key in PKCS#8 without a passphrase: make one with openssl genpkey -algorithm ed25519", block.Type)
	}
	public := ed25519.PublicKey(private[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
	return &Key{private: private, public: public, fingerprint: Fingerprint(public)}, nil
}

// Fingerprint is that of the public key.
func (k *Key) Fingerprint() string { return k.fingerprint }

// String is what a log may show of it.
func (k *Key) String() string { return "signing key " + k.fingerprint }

// Format is the same for each verb, also for those that print all fields.
func (k *Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// LogValue is the same for a log.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// ParsePublicKeys reads public keys in PEM, as "openssl pkey -pubout" writes them one after
// the other, and returns their fingerprints.
func ParsePublicKeys(text []byte) ([]string, error) {
	var fingerprints []string
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			break
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		public, ok := parsed.(ed25519.PublicKey)
		if err != nil || !ok {
			return nil, fmt.Errorf("block %d is %q, and no Ed25519 public key: write it with openssl pkey -in key.pem -pubout", len(fingerprints)+1, block.Type)
		}
		fingerprints = append(fingerprints, Fingerprint(public))
	}
	switch {
	case len(fingerprints) == 0:
		return nil, errors.New("it has no public key in PEM: write one with openssl pkey -in key.pem -pubout")
	case strings.TrimSpace(string(text)) != "":
		return nil, fmt.Errorf("what follows public key %d is no PEM: write each key from BEGIN PUBLIC KEY to END PUBLIC KEY", len(fingerprints))
	}
	return fingerprints, nil
}

// Signature is one by a key. The public key is in it, so that who knows a fingerprint
// alone can check it: to be signed says nothing, to be signed by a key that is trusted does.
type Signature struct {
	// Key is the fingerprint of PublicKey, for people.
	Key string `json:"key"`
	// PublicKey has the 32 bytes of an Ed25519 key.
	PublicKey []byte `json:"publicKey"`
	Value     []byte `json:"value"`
}

// Sign signs a text. The domain says what kind of text it is, so that no signature of one
// kind passes for that of another.
func (k *Key) Sign(domain string, text []byte) *Signature {
	return &Signature{Key: k.fingerprint, PublicKey: k.public, Value: ed25519.Sign(k.private, message(domain, text))}
}

// Signs reports whether the signature is that of the text, by the key that it names.
func (s *Signature) Signs(domain string, text []byte) bool {
	return len(s.PublicKey) == ed25519.PublicKeySize && s.Key == Fingerprint(s.PublicKey) &&
		ed25519.Verify(s.PublicKey, message(domain, text), s.Value)
}

// message is what is signed. A domain has no zero byte.
func message(domain string, text []byte) []byte {
	return append([]byte(domain+"\x00"), text...)
}
