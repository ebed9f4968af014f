package sources

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Signers is where the public keys are whose owners may sign commits: OpenPGP
// keys in armor, and SSH keys as in authorized_keys or in Git's allowed_signers,
// whose names and options count for nothing here. They are read again for each
// commit. Without any, commits need no signature.
type Signers struct {
	// File holds keys.
	File string
	// Secret gives them from elsewhere, each of its values like a File.
	Secret func(context.Context) (map[string][]byte, error)
}

// keys are what Signers held at one moment.
type keys struct {
	pgp    openpgp.EntityList
	ssh    []ssh.PublicKey
	digest string // names this state of them; empty where none are asked for
}

func (k keys) isEmpty() bool { return k.digest == "" }

// read never takes missing keys for a request to check no signatures.
func (s Signers) read(ctx context.Context) (keys, error) {
	texts := map[string][]byte{}
	switch {
	case s.File != "":
		text, err := readBounded(s.File, maxCABytes)
		if err != nil {
			return keys{}, untrusted(fmt.Sprintf("the file %s with the signers' keys cannot be read (%s)", s.File, osReason(err)), "mount it or correct its path")
		}
		texts[s.File] = text
	case s.Secret != nil:
		var err error
		if texts, err = s.Secret(ctx); err != nil {
			return keys{}, untrusted("the signers' keys are missing:  "+oneLine(err.Error()), "make the Secret, or name another one")
		}
	default:
		return keys{}, nil
	}
	return parseKeys(texts)
}

func parseKeys(texts map[string][]byte) (keys, error) {
	var k keys
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(sum, "%d %s", len(texts[name]), texts[name])
		if err := k.add(texts[name]); err != nil {
			return keys{}, untrusted(fmt.Sprintf("%s holds no usable public keys", name), "give OpenPGP keys in armor, or SSH keys as in authorized_keys")
		}
	}
	if len(k.pgp) == 0 && len(k.ssh) == 0 {
		return keys{}, untrusted("there is no signer's key", "add one")
	}
	k.digest = hex.EncodeToString(sum.Sum(nil))
	return k, nil
}

func (k *keys) add(text []byte) error {
	if bytes.Contains(text, []byte("-----BEGIN PGP")) {
		list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(text))
		k.pgp = append(k.pgp, list...)
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := parseSigner(line)
		if err != nil {
			return err
		}
		k.ssh = append(k.ssh, key)
	}
	return nil
}

// parseSigner reads a line of authorized_keys, or of allowed_signers, which has
// names in front.
func parseSigner(line string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err == nil {
		return key, nil
	}
	_, rest, _ := strings.Cut(line, " ")
	key, _, _, _, err = ssh.ParseAuthorizedKey([]byte(rest))
	return key, err
}

// verify wants a good signature on each of the commits, and names the oldest
// that has none.
func (k keys) verify(commits []*object.Commit) error {
	if k.isEmpty() {
		return nil
	}
	for _, commit := range slices.Backward(commits) {
		if why := k.refuse(commit); why != "" {
			return untrusted(fmt.Sprintf("commit %s by %s %s", commit.Hash, oneLine(commit.Author.String()), why),
				"have it signed by a key that is allowed, or approve the head by its hash if it is intended")
		}
	}
	return nil
}

// refuse reports what is wrong with a signature, and with which key; "" for nothing.
func (k keys) refuse(commit *object.Commit) string {
	if commit.PGPSignature == "" {
		return "is not signed"
	}
	text, err := signedText(commit)
	if err != nil {
		return "cannot be encoded for the check"
	}
	if strings.Contains(commit.PGPSignature, "BEGIN SSH SIGNATURE") {
		return k.refuseSSH(text, commit.PGPSignature)
	}
	return k.refusePGP(text, commit.PGPSignature)
}

// signedText is what a commit's signature is of.
func signedText(commit *object.Commit) ([]byte, error) {
	body := &plumbing.MemoryObject{}
	if err := commit.EncodeWithoutSignature(body); err != nil {
		return nil, err
	}
	reader, err := body.Reader()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

func (k keys) refuseSSH(text []byte, armored string) string {
	signature, err := sshsig.Unarmor([]byte(armored))
	if err != nil {
		return "has a signature that cannot be read"
	}
	name := "SSH key " + ssh.FingerprintSHA256(signature.PublicKey)
	for _, key := range k.ssh {
		if !bytes.Equal(key.Marshal(), signature.PublicKey.Marshal()) {
			continue
		}
		if err := sshsig.Verify(bytes.NewReader(text), signature, key, signature.HashAlgorithm, "git"); err != nil {
			return "has a signature of " + name + " that does not fit"
		}
		return ""
	}
	return "is signed with " + name + ", which is not allowed"
}

func (k keys) refusePGP(text []byte, armored string) string {
	_, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(text), strings.NewReader(armored), nil)
	if err == nil {
		return ""
	}
	name := cmp.Or(pgpSigner(armored), "an unknown OpenPGP key")
	return "is signed with " + name + ", which is not allowed or does not fit (" + oneLine(err.Error()) + ")"
}

func untrusted(why, next string) *failure {
	return &failure{why: why, next: next, kinds: []error{ErrUntrusted}}
}

// pgpSigner names the key that a signature says it is of.
func pgpSigner(text string) string {
	block, err := armor.Decode(strings.NewReader(text))
	if err != nil {
		return ""
	}
	p, err := packet.Read(block.Body)
	signature, is := p.(*packet.Signature)
	switch {
	case err != nil || !is:
		return ""
	case len(signature.IssuerFingerprint) > 0:
		return fmt.Sprintf("OpenPGP key %X", signature.IssuerFingerprint)
	case signature.IssuerKeyId != nil:
		return fmt.Sprintf("OpenPGP key %016X", *signature.IssuerKeyId)
	}
	return ""
}
