package backuptest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/reconciler/backup/signing"
)

// NewKeyFile is a file with a new private key, as OpenSSL writes it, and the key in it.
func NewKeyFile(t *testing.T) (string, *signing.Key) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := PrivatePEM(t, private)
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := signing.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return path, key
}

// PrivatePEM is a private key of any kind, as OpenSSL writes it.
func PrivatePEM(t *testing.T, private any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// PublicPEM is the public key of a private key's file, as OpenSSL writes it.
func PublicPEM(t *testing.T, keyFile string) []byte {
	t.Helper()
	text, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(parsed.(ed25519.PrivateKey).Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// NewKeys are the keys of an installation that signs, and its own key.
func NewKeys(t *testing.T) (*signing.Keys, *signing.Key) {
	t.Helper()
	path, key := NewKeyFile(t)
	keys, err := signing.OpenKeys(path, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return keys, key
}
