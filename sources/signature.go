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
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/hiddeco/sshsig"
)

// Signers is where the public keys are whose owners may sign commits and tags: OpenPGP
// keys in armor, and SSH keys as in authorized_keys or in Git's allowed_signers.
// Of the options of the latter valid-after, valid-before and namespaces are kept to; a line
// with another one, such as cert-authority, is an error. Names say whose key it is, and
// decide nothing. The keys are read again for each commit. Without any, neither commits
// nor tags need a signature.
type Signers struct {
	// File holds keys.
	File string
	// Secret gives them from elsewhere, each of its values like a File.
	Secret func(context.Context) (map[string][]byte, error)
}

// keys are what Signers held at one moment.
type keys struct {
	pgp    openpgp.EntityList
	ssh    []signer
	now    time.Time
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
	return parseKeys(texts, time.Now())
}

func parseKeys(texts map[string][]byte, now time.Time) (keys, error) {
	k := keys{now: now}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(sum, "%d %s", len(texts[name]), texts[name])
		if err := k.add(name, texts[name]); err != nil {
			return keys{}, err
		}
	}
	for _, s := range k.ssh { // a key that begins or ends makes them other ones
		fmt.Fprintf(sum, " %t", s.refuse(now, now) == "")
	}
	if len(k.pgp) == 0 && len(k.ssh) == 0 {
		return keys{}, untrusted("there is no signer's key", "add one")
	}
	k.digest = hex.EncodeToString(sum.Sum(nil))
	return k, nil
}

func (k *keys) add(name string, text []byte) error {
	if bytes.Contains(text, []byte("-----BEGIN PGP")) {
		list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(text))
		if err != nil {
			return untrusted(fmt.Sprintf("%s holds no usable public keys", name), "give OpenPGP keys in armor, or SSH keys as in authorized_keys")
		}
		k.pgp = append(k.pgp, list...)
		return nil
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parseSigner(line)
		if err != nil {
			return untrusted(fmt.Sprintf("line %d of %s says nobody who may sign: %s", number, name, err), "no new commit is followed until it is corrected")
		}
		k.ssh = append(k.ssh, s)
	}
	return nil
}

// verify wants a good signature on each of the commits, and names the oldest
// that has none.
func (k keys) verify(commits []*object.Commit) error {
	if k.isEmpty() {
		return nil
	}
	for _, commit := range slices.Backward(commits) {
		if _, why := k.refuse(commit); why != "" {
			return untrusted(fmt.Sprintf("commit %s by %s %s", commit.Hash, oneLine(commit.Author.String()), why),
				"have it signed by a key that is allowed, or approve the head by its hash if it is intended")
		}
	}
	return nil
}

// refuse reports whose a signature is, or what is wrong with it, and with which key; why
// is "" for nothing.
func (k keys) refuse(commit *object.Commit) (who, why string) {
	if commit.PGPSignature == "" {
		return "", "is not signed"
	}
	text, err := signedText(commit)
	if err != nil {
		return "", "cannot be encoded for the check"
	}
	return k.refuseText(text, commit.PGPSignature, commit.Committer.When)
}

// refuseText does the same for the signature of a text that bears a date.
func (k keys) refuseText(text []byte, signature string, dated time.Time) (who, why string) {
	if strings.Contains(signature, "BEGIN SSH SIGNATURE") {
		return k.refuseSSH(text, signature, dated)
	}
	if strings.Contains(signature, "BEGIN SIGNED MESSAGE") {
		return "", "has an X.509 signature, such as of gitsign or S/MIME, which quorate does not verify"
	}
	return k.refusePGP(text, signature)
}

// signer is whose the signature of a commit is that was verified; "" without keys.
func (k keys) signer(commit *object.Commit) string {
	if k.isEmpty() || commit == nil {
		return ""
	}
	who, _ := k.refuse(commit)
	return who
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

func (k keys) refuseSSH(text []byte, armored string, dated time.Time) (who, why string) {
	signature, err := sshsig.Unarmor([]byte(armored))
	if err != nil {
		return "", "has a signature that cannot be read"
	}
	why = "is signed with " + sshName(signature.PublicKey) + ", which is not allowed"
	for _, s := range k.ssh {
		if !bytes.Equal(s.key.Marshal(), signature.PublicKey.Marshal()) {
			continue
		}
		if limit := s.refuse(dated, k.now); limit != "" {
			why = "is signed with " + s.String() + ", " + limit
			continue // another line may allow it
		}
		if err := sshsig.Verify(bytes.NewReader(text), signature, s.key, signature.HashAlgorithm, namespace); err != nil {
			return "", "has a signature of " + s.String() + " that does not fit"
		}
		return s.String(), ""
	}
	return "", why
}

func (k keys) refusePGP(text []byte, armored string) (who, why string) {
	name := cmp.Or(pgpSigner(armored), "an unknown OpenPGP key")
	_, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(text), strings.NewReader(armored), nil)
	if err != nil {
		return "", "is signed with " + name + ", which is not allowed or does not fit (" + oneLine(err.Error()) + ")"
	}
	return name, ""
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
