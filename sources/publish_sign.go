package sources

import (
	"bytes"
	"fmt"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// sign signs a commit, where there is a key, so that Git and Signers find it good.
func (p *Publisher) sign(c *object.Commit) error {
	if p.config.SigningKeyFile == "" {
		return nil
	}
	key, err := readSecret("signing key", p.config.SigningKeyFile)
	if err != nil {
		return err
	}
	text, err := signedText(c)
	if err != nil {
		return err
	}
	if bytes.Contains([]byte(key), []byte("-----BEGIN PGP")) {
		c.PGPSignature, err = signPGP(key, text)
	} else {
		c.PGPSignature, err = signSSH(key, text)
	}
	if err != nil {
		// A library's error about a key may show part of it.
		return unauthenticated(fmt.Sprintf("the signing key file %s holds no key that can sign, or one with a passphrase", p.config.SigningKeyFile),
			"give an OpenPGP private key in armor, or an SSH private key, without a passphrase")
	}
	return nil
}

func signSSH(key string, text []byte) (string, error) {
	signer, err := ssh.ParsePrivateKey([]byte(key + "\n"))
	if err != nil {
		return "", err
	}
	signature, err := sshsig.Sign(bytes.NewReader(text), signer, sshsig.HashSHA512, "git")
	if err != nil {
		return "", err
	}
	return string(sshsig.Armor(signature)), nil
}

func signPGP(key string, text []byte) (string, error) {
	list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader([]byte(key)))
	if err != nil {
		return "", err
	}
	var signature bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&signature, list[0], bytes.NewReader(text), nil); err != nil {
		return "", err
	}
	return signature.String() + "\n", nil
}
