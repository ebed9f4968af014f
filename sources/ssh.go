package sources

import (
	"cmp"
	"context"
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
	config, err := o.config(found)
	if err != nil {
		return nil, err
	}
	return &sshWire{origin: o, service: with, config: config, secrets: found.secrets()}, nil
}

// config is how to log in. There is no way around known_hosts: without it
// a machine in the middle could decide what is desired.
func (o *sshOrigin) config(found credentials) (*ssh.ClientConfig, error) {
	if found.sshKey() == "" {
		return nil, unauthenticated("there is no SSH key among the credentials", "add it as identity or ssh-privatekey")
	}
	if found[keyKnownHosts] == "" {
		return nil, unauthenticated("there are no known_hosts among the credentials, and no server is believed without its key",
			"add what ssh-keyscan prints for the server, after comparing it with what its operator publishes")
	}
	signer, err := sshSigner(found)
	if err != nil {
		return nil, err
	}
	hosts, err := readKnownHosts(found[keyKnownHosts])
	if err != nil {
		return nil, err
	}
	algorithms := hosts.HostKeyAlgorithms(o.address())
	if len(algorithms) == 0 {
		return nil, unauthenticated("known_hosts has no key of "+o.address(), "add it")
	}
	return &ssh.ClientConfig{
		User:              o.url.User.Username(),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   hosts.HostKeyCallback(),
		HostKeyAlgorithms: algorithms,
		ClientVersion:     "SSH-2.0-quorate",
	}, nil
}

func (o *sshOrigin) address() string {
	return net.JoinHostPort(o.url.Hostname(), cmp.Or(o.url.Port(), "22"))
}

// sshSigner reports of a bad key no more than that it is bad.
func sshSigner(found credentials) (ssh.Signer, error) {
	key := []byte(found.sshKey() + "\n")
	signer, err := ssh.ParsePrivateKey(key)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		if found[keyPassword] == "" {
			return nil, unauthenticated("the SSH key has a passphrase", "add it as password")
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(key, []byte(found[keyPassword]))
	}
	if err != nil {
		return nil, unauthenticated("the SSH key cannot be read, or its passphrase is another one", "give a private key in OpenSSH's or PEM format")
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
