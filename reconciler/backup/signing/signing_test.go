package signing_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/signing"
)

// opensslKey and opensslPublic are what OpenSSL 3 wrote for the key of RFC 8410, whose
// fingerprint is what the command of Fingerprint's comment printed.
const (
	opensslKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
`
	opensslPublic = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
`
	opensslFingerprint = "SHA256:oekVYFTgT6yJmunydRMs3Ael28TqLCrTof/G4NJTaB8"
)

func TestKeysOfOpenSSL(t *testing.T) {
	key, err := signing.ParseKey([]byte(opensslKey))
	if err != nil || key.Fingerprint() != opensslFingerprint {
		t.Fatalf("%v, %v", key, err)
	}
	public, err := signing.ParsePublicKeys([]byte(opensslPublic))
	if err != nil || len(public) != 1 || public[0] != opensslFingerprint {
		t.Errorf("%q, %v", public, err)
	}
}

// A signature is of one text, of one kind, by one key.
func TestASignatureIsOfOneText(t *testing.T) {
	_, key := backuptest.NewKeyFile(t)
	_, other := backuptest.NewKeyFile(t)
	good := key.Sign("kind", []byte("text"))
	if !good.Signs("kind", []byte("text")) {
		t.Error("it does not match")
	}
	change := func(f func(*signing.Signature)) *signing.Signature {
		s := *good
		s.PublicKey, s.Value = bytes.Clone(s.PublicKey), bytes.Clone(s.Value)
		f(&s)
		return &s
	}
	for name, ok := range map[string]bool{
		"another text":        good.Signs("kind", []byte("texts")),
		"another kind":        good.Signs("kin", []byte("text")),
		"moved":               good.Signs("kindt", []byte("ext")),
		"a bit":               change(func(s *signing.Signature) { s.Value[3] ^= 1 }).Signs("kind", []byte("text")),
		"no value":            change(func(s *signing.Signature) { s.Value = nil }).Signs("kind", []byte("text")),
		"another key":         change(func(s *signing.Signature) { s.PublicKey = other.Sign("", nil).PublicKey }).Signs("kind", []byte("text")),
		"another fingerprint": change(func(s *signing.Signature) { s.Key = other.Fingerprint() }).Signs("kind", []byte("text")),
		"a key cut short":     change(func(s *signing.Signature) { s.PublicKey = s.PublicKey[1:] }).Signs("kind", []byte("text")),
		"no key":              change(func(s *signing.Signature) { s.PublicKey = nil }).Signs("kind", []byte("text")),
		// Who has another key signs as that, and not as this one.
		"the name of a key that is trusted": func() bool {
			s := other.Sign("kind", []byte("text"))
			s.Key = key.Fingerprint()
			return s.Signs("kind", []byte("text"))
		}(),
	} {
		if ok {
			t.Errorf("%s: it matches", name)
		}
	}
}

// No way of printing a key shows what is secret of it.
func TestAKeyIsNotPrinted(t *testing.T) {
	path, key := backuptest.NewKeyFile(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	seed := parsed.(ed25519.PrivateKey).Seed()
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", key)
	}
	marshalled, _ := json.Marshal(map[string]any{"key": key})
	out.Write(marshalled)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("key", "key", key)
	slog.New(slog.NewTextHandler(&out, nil)).Info("key", "key", key)
	for _, secret := range []string{base64.StdEncoding.EncodeToString(seed), fmt.Sprintf("%x", seed), strings.Trim(fmt.Sprintf("%d", seed), "[]"), string(bytes.Split(text, []byte("\n"))[1])} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("printed %s", out.String())
		}
	}
}

// What is no key of the kind is an error, which repeats nothing of it.
func TestWhatIsNoKey(t *testing.T) {
	path, _ := backuptest.NewKeyFile(t)
	private, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey := backuptest.PrivatePEM(t, r)
	public := backuptest.PublicPEM(t, path)
	for name, text := range map[string][]byte{"nothing": nil, "no PEM": []byte("c2VjcmV0"), "a public key": public, "an RSA key": rsaKey, "cut short": private[:60]} {
		if key, err := signing.ParseKey(text); err == nil || strings.Contains(err.Error(), "MC4CAQ") || !strings.Contains(err.Error(), "openssl genpkey") {
			t.Errorf("%s: %v, %v", name, key, err)
		}
	}
	for name, text := range map[string][]byte{
		"nothing": nil, "no PEM": []byte("c2VjcmV0"), "a private key": private, "one of two": slices.Concat(public, private), "text behind": slices.Concat(public, []byte("c2VjcmV0")),
	} {
		if keys, err := signing.ParsePublicKeys(text); err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: %q, %v", name, keys, err)
		}
	}
}

// An installation trusts its own key and those of its file; without either, nothing need be
// signed.
func TestKeysOfAnInstallation(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	own, key := backuptest.NewKeyFile(t)
	former, old := backuptest.NewKeyFile(t)
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	if err := os.WriteFile(trusted, slices.Concat(backuptest.PublicPEM(t, former), backuptest.PublicPEM(t, own)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, own, trusted string
		signs              bool
		want               []string
	}{
		{"none", "", "", false, nil},
		{"its own", own, "", true, []string{key.Fingerprint()}},
		{"others", "", trusted, false, []string{old.Fingerprint(), key.Fingerprint()}},
		{"both", own, trusted, true, []string{old.Fingerprint(), key.Fingerprint()}},
		{"both, of others", former, trusted, true, []string{old.Fingerprint(), key.Fingerprint()}},
	} {
		keys, err := signing.OpenKeys(c.own, c.trusted, log)
		if err != nil || !slices.Equal(keys.Trusted(), c.want) || (keys.Own() != nil) != c.signs {
			t.Errorf("%s: %q, %v, %v", c.name, keys.Trusted(), keys.Own(), err)
		}
	}
	for _, missing := range [][2]string{{own + "x", ""}, {"", own + "x"}, {own, own}, {trusted, ""}} {
		if keys, err := signing.OpenKeys(missing[0], missing[1], log); err == nil {
			t.Errorf("%q: %+v", missing, keys)
		}
	}
}

// A file that is replaced is read again; one that cannot be used changes nothing, and is
// told of once.
func TestKeysAreReadAgain(t *testing.T) {
	var out bytes.Buffer
	path, first := backuptest.NewKeyFile(t)
	keys, err := signing.OpenKeys(path, "", slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	next, second := backuptest.NewKeyFile(t)
	text, err := os.ReadFile(next)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text []byte
		want *signing.Key
	}{{nil, first}, {text[:40], first}, {text, second}, {[]byte("x"), second}} {
		if err := os.WriteFile(path, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := keys.Own(); got.Fingerprint() != c.want.Fingerprint() || keys.Trusted()[0] != c.want.Fingerprint() {
				t.Errorf("%s, want %s", got, c.want)
			}
		}
	}
	if n := strings.Count(out.String(), "not replaced"); n != 2 {
		t.Errorf("told %d times:\n%s", n, out.String())
	}
}
