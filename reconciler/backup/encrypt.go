package backup

import (
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"

	"filippo.io/age"
)

// source is where a stored object's bytes pass: it remembers why reading them
// failed, which layers above would take for damage, and measures them if it has a
// hash.
type source struct {
	r    io.Reader
	hash hash.Hash
	size int64
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.size += int64(n)
	if s.hash != nil {
		s.hash.Write(p[:n])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) sum() snapshotSum {
	return snapshotSum{s.size, hex.EncodeToString(s.hash.Sum(nil))}
}

// encrypt makes the file of age that only the recipients can read.
func (s *object) encrypt(plain io.Reader) (io.Reader, error) {
	recipients, err := age.ParseRecipients(strings.NewReader(strings.Join(s.store.Recipients, "\n")))
	if err != nil || len(recipients) != len(s.store.Recipients) {
		// The cause would repeat the text, which may be a private key by mistake.
		return nil, s.problem("one of the encryption recipients is no public key of age", "write age1…, as age-keygen prints it", nil)
	}
	r, err := age.EncryptReader(plain, recipients...)
	if err != nil {
		return nil, s.problem("the recipients cannot be combined", "give keys of one kind, age1… or age1pq1…", err)
	}
	return r, nil
}

// Why an identity does not decrypt.
var (
	errNoKey      = errors.New("the private key that was given is none of age's")
	errAnotherKey = errors.New("the backup is encrypted, and not for the private key that was given")
)

// Decrypt reads the snapshot in an object that Save has encrypted; identity is age's
// private key, as age-keygen writes it. Who has none, or another's, is told so before
// the first byte, and no error repeats the key. What is read may still be compressed, and
// is not checked.
func Decrypt(stored io.Reader, identity string) (io.Reader, error) {
	identities, err := age.ParseIdentities(strings.NewReader(identity))
	if err != nil {
		return nil, errNoKey
	}
	r, err := age.Decrypt(stored, identities...)
	if wrong := (*age.NoIdentityMatchError)(nil); errors.As(err, &wrong) {
		return nil, errAnotherKey
	}
	return r, err
}

// decrypt is Decrypt for the store's identity, with what to do.
func (s *object) decrypt(m Manifest, stored *source) (io.Reader, error) {
	readers := "one of " + strings.Join(m.Recipients, ", ")
	if s.store.Identity == "" {
		return nil, s.problem("the backup is encrypted and no private key was given", "give the private key of "+readers, nil)
	}
	r, err := Decrypt(stored, s.store.Identity)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, errNoKey):
		return nil, s.problem(errNoKey.Error(), "give the line that begins with AGE-SECRET-KEY-, as age-keygen wrote it", nil)
	case stored.err != nil:
		return nil, s.failed(stored.err)
	case errors.Is(err, errAnotherKey):
		return nil, s.problem(errAnotherKey.Error(), "give the private key of "+readers, nil)
	}
	return nil, s.damaged("the stored object is damaged: it is not what age wrote", err)
}
