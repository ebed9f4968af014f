package sources

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// jumpHost is an SSH server on the way to Git's, as in OpenSSH's ProxyJump.
type jumpHost struct{ user, address string }

// parseJump is nil for none. Its errors do not repeat the text, which may hold a secret.
func parseJump(text string, to *url.URL) (*jumpHost, error) {
	if text == "" {
		return nil, nil
	}
	if to == nil || to.Scheme != "ssh" {
		return nil, errors.New("jump host: the repository is not reached over SSH; give an ssh URL, or leave the jump host out")
	}
	u, err := url.Parse("ssh://" + strings.TrimPrefix(text, "ssh://"))
	if err != nil || strings.ContainsAny(text, ",?#") || u.User.Username() == "" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("jump host: it cannot be understood; give one, in the form user@host or user@host:port")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("jump host: it carries a password; remove it and give an SSH key as a file")
	}
	return &jumpHost{user: u.User.Username(), address: sshAddress(u)}, nil
}

func sshAddress(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "22"))
}

// sshHop is one SSH server on the way, Git's the last.
type sshHop struct {
	name    string // in errors
	address string
	config  *ssh.ClientConfig
}

// newHop is how to log in at one server. There is no way around known_hosts: without it
// a machine in the middle could decide what is desired.
func newHop(name, user, address string, signer ssh.Signer, hosts *knownhosts.HostKeyDB) (sshHop, error) {
	algorithms := hosts.HostKeyAlgorithms(address)
	if len(algorithms) == 0 {
		return sshHop{}, unauthenticated("known_hosts has no key of "+address, "add it")
	}
	return sshHop{name: name, address: address, config: &ssh.ClientConfig{
		User:              user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   hosts.HostKeyCallback(),
		HostKeyAlgorithms: algorithms,
		ClientVersion:     "SSH-2.0-quorate",
	}}, nil
}

// explain is for errors of logging in.
func (h sshHop) explain(err error, deed string) error {
	var key *ssh.ServerAuthError
	switch {
	case knownhosts.IsHostKeyChanged(err):
		return unauthenticated(h.name+"'s key is not the one in known_hosts",
			"the connection may be intercepted: compare it with what the server's operator publishes, and correct known_hosts if it was renewed")
	case knownhosts.IsHostUnknown(err):
		return unauthenticated("known_hosts has no key of "+h.address, "add it")
	case errors.As(err, &key), strings.Contains(err.Error(), "unable to authenticate"):
		return unauthenticated(h.name+" does not accept the SSH key of user "+h.config.User, "check that the key is valid and may "+deed)
	}
	return err
}
