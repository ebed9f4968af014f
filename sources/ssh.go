package sources

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// sshOrigin speaks to Git's services over SSH. It dials on its own: go-git's
// transport heeds no context in its handshake, and asks for no protocol 2.
type sshOrigin struct {
	url    *url.URL
	path   string
	auth   Auth
	caFile string    // for a proxy that is reached over TLS
	jump   *jumpHost // nil for none
	limits Limits
}

// dialTimeout bounds the connection and the handshake, besides the context.
const dialTimeout = 20 * time.Second

func (o *sshOrigin) open(ctx context.Context) (session, error) {
	w, err := o.wire(ctx, uploadPack)
	if err != nil {
		return nil, err
	}
	return &packSession{wire: w, limits: o.limits}, nil
}

func (o *sshOrigin) push(ctx context.Context, u update) error {
	w, err := o.wire(ctx, receivePack)
	if err != nil {
		return err
	}
	return pushOver(ctx, w, u)
}

func (o *sshOrigin) wire(ctx context.Context, with service) (*sshWire, error) {
	found, err := o.auth.read(ctx)
	if err != nil {
		return nil, err
	}
	hops, err := o.hops(found)
	if err != nil {
		return nil, err
	}
	return &sshWire{
		origin: o, service: with, hops: hops, secrets: append(found.secrets(), proxySecrets()...),
		dialer: dialer{Dialer: net.Dialer{Timeout: dialTimeout}, trust: func() (*tls.Config, error) { return o.trust(found) }},
	}, nil
}

// trust is for a proxy. No client certificate is shown to it.
func (o *sshOrigin) trust(found credentials) (*tls.Config, error) {
	ca, err := readCA(o.caFile, found)
	if err != nil {
		return nil, err
	}
	return tlsConfig(ca, caName(o.caFile), nil)
}

// hops are the servers to log in at, one after the other.
func (o *sshOrigin) hops(found credentials) ([]sshHop, error) {
	if found.sshKey() == "" {
		return nil, unauthenticated("there is no SSH key among the credentials", "add it as identity or ssh-privatekey")
	}
	if found[keyKnownHosts] == "" {
		return nil, unauthenticated("there are no known_hosts among the credentials, and no server is believed without its key",
			"add what ssh-keyscan prints for the server, after comparing it with what its operator publishes")
	}
	hosts, err := readKnownHosts(found[keyKnownHosts])
	if err != nil {
		return nil, err
	}
	signer, err := sshSigner("SSH key", found.sshKey(), found[keyPassword])
	if err != nil {
		return nil, err
	}
	last, err := newHop("the server", o.url.User.Username(), sshAddress(o.url), signer, hosts)
	if err != nil || o.jump == nil {
		return []sshHop{last}, err
	}
	if found[keyJumpIdentity] != "" {
		if signer, err = sshSigner("SSH key "+keyJumpIdentity, found[keyJumpIdentity], found[keyPassword]); err != nil {
			return nil, err
		}
	}
	first, err := newHop("the jump host", o.jump.user, o.jump.address, signer, hosts)
	return []sshHop{first, last}, err
}

// sshSigner reports of a bad key no more than that it is bad.
func sshSigner(name, text, passphrase string) (ssh.Signer, error) {
	key := []byte(text + "\n")
	signer, err := ssh.ParsePrivateKey(key)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		if passphrase == "" {
			return nil, unauthenticated("the "+name+" has a passphrase", "add it as password")
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(key, []byte(passphrase))
	}
	if err != nil {
		return nil, unauthenticated("the "+name+" cannot be read, or its passphrase is another one", "give a private key in OpenSSH's or PEM format")
	}
	return signer, nil
}

// readKnownHosts goes through a file, because the library reads nothing else.
// It contains no secret.
func readKnownHosts(text string) (*knownhosts.HostKeyDB, error) {
	file, err := os.CreateTemp("", "quorate-known-hosts-")
	if err != nil {
		return nil, unreachable(fmt.Sprintf("known_hosts cannot be put into a temporary file (%s)", osReason(err)), "make room in "+os.TempDir())
	}
	defer os.Remove(file.Name()) //nolint:errcheck // a stray file does no harm
	_, err = file.WriteString(text + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, unreachable(fmt.Sprintf("known_hosts cannot be put into a temporary file (%s)", osReason(err)), "make room in "+os.TempDir())
	}
	hosts, err := knownhosts.NewDB(file.Name())
	if err != nil {
		return nil, unauthenticated("known_hosts cannot be understood", "write it as ssh-keyscan does")
	}
	return hosts, nil
}
