package sources

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Auth is where the credentials for a repository are. They are read again for
// each fetch, so that a new one is used as soon as it is there. Over plain http
// none are sent: they could be read on the network.
//
// Dir and Secret hold them by these names, which are Flux's, and kubectl's for
// the types of Secret that Kubernetes knows:
//
//	username, password          HTTP basic authentication; a token is a password
//	bearerToken                 a token that is sent as "Authorization: Bearer"
//	identity, ssh-privatekey    an SSH key; password is its passphrase
//	jumpIdentity                another SSH key, for the jump host; the same passphrase
//	known_hosts                 the host keys of the SSH server, and of the jump host
//	ca.crt                      certificates that are trusted besides the system's
//	tls.crt, tls.key            a client certificate
//	githubAppID, githubAppInstallationID, githubAppPrivateKey, githubAppBaseURL
//	                            a GitHub App; the URL is for GitHub Enterprise
type Auth struct {
	// UsernameFile holds the user name that goes with the password. Without it
	// the name is "x-access-token", which the common hosts take with a token.
	UsernameFile string
	// PasswordFile holds a password or an access token.
	PasswordFile string
	// BearerTokenFile holds a bearer token. It excludes the other two.
	BearerTokenFile string
	// Dir is a directory with one file for each name, such as a mounted Secret.
	Dir string
	// Secret gives the same from elsewhere. Its error must hold no secret.
	Secret func(context.Context) (map[string][]byte, error)
}

// The names of credentials.
const (
	keyUsername     = "username"
	keyPassword     = "password"
	keyBearer       = "bearerToken"
	keyIdentity     = "identity"
	keySSH          = "ssh-privatekey"
	keyJumpIdentity = "jumpIdentity"
	keyKnownHosts   = "known_hosts"
	keyCA           = "ca.crt"
	keyCert         = "tls.crt"
	keyCertKey      = "tls.key"
	keyApp          = "githubAppID"
	keyInstallation = "githubAppInstallationID"
	keyAppKey       = "githubAppPrivateKey"
	keyAppURL       = "githubAppBaseURL"
)

// knownKeys are all of them; whatever else a Secret holds is left alone.
func knownKeys() []string {
	return []string{
		keyUsername, keyPassword, keyBearer, keyIdentity, keySSH, keyJumpIdentity, keyKnownHosts, keyCA, keyCert, keyCertKey,
		keyApp, keyInstallation, keyAppKey, keyAppURL,
	}
}

const tokenUser = "x-access-token"

func (a Auth) check() error {
	switch {
	case a.BearerTokenFile != "" && (a.PasswordFile != "" || a.UsernameFile != ""):
		return errors.New("repository credentials: both a password and a bearer token are given; give one of them")
	case a.UsernameFile != "" && a.PasswordFile == "":
		return errors.New("repository credentials: a user name is given without a password; give the password file as well")
	case a.Dir != "" && a.Secret != nil:
		return errors.New("repository credentials: both a directory and a Secret are given; give one of them")
	}
	return nil
}

// credentials are what was found at one moment.
type credentials map[string]string

// read gathers the credentials. A file that is named alone goes before one of
// the same meaning in the directory or Secret.
func (a Auth) read(ctx context.Context) (credentials, error) {
	found, err := a.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range []struct{ key, what, path string }{
		{keyUsername, "user name", a.UsernameFile},
		{keyPassword, "password", a.PasswordFile},
		{keyBearer, "bearer token", a.BearerTokenFile},
	} {
		if file.path != "" {
			if found[file.key], err = readSecret(file.what, file.path); err != nil {
				return nil, err
			}
		}
	}
	return found, found.check()
}

func (a Auth) all(ctx context.Context) (credentials, error) {
	found := credentials{}
	switch {
	case a.Secret != nil:
		data, err := a.Secret(ctx)
		if err != nil {
			return nil, unauthenticated(oneLine(err.Error()), "make the Secret, or name another one")
		}
		for _, key := range knownKeys() {
			if value := bytes.TrimRight(data[key], "\r\n"); len(value) > 0 {
				found[key] = string(value)
			}
		}
	case a.Dir != "":
		return found, a.readDir(found)
	}
	return found, nil
}

func (a Auth) readDir(found credentials) error {
	if _, err := os.ReadDir(a.Dir); err != nil {
		return unauthenticated(
			fmt.Sprintf("the directory %s with the credentials cannot be read (%s)", a.Dir, osReason(err)),
			"mount it or correct its path")
	}
	for _, key := range knownKeys() {
		path := filepath.Join(a.Dir, key)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		value, err := readSecret(key, path)
		if err != nil {
			return err
		}
		found[key] = value
	}
	return nil
}

// check refuses what contradicts itself.
func (c credentials) check() error {
	var ways []string
	for _, key := range []string{keyBearer, keyApp} {
		if c[key] != "" {
			ways = append(ways, key)
		}
	}
	if c[keyPassword] != "" && c.sshKey() == "" {
		ways = append(ways, keyPassword)
	}
	switch {
	case len(ways) > 1:
		return unauthenticated("there are several kinds of credentials, "+strings.Join(ways, " and "), "leave one of them")
	case (c[keyCert] == "") != (c[keyCertKey] == ""):
		return unauthenticated("a client certificate needs both tls.crt and tls.key, and one is missing", "add it")
	case c[keyApp] != "" && (c[keyInstallation] == "" || c[keyAppKey] == ""):
		return unauthenticated("a GitHub App needs githubAppID, githubAppInstallationID and githubAppPrivateKey, and one is missing", "add it")
	}
	return nil
}

func (c credentials) sshKey() string { return cmp.Or(c[keyIdentity], c[keySSH]) }

// user is the name for HTTP basic authentication.
func (c credentials) user() string { return cmp.Or(c[keyUsername], tokenUser) }

// areSecret reports whether anything is among them that may not be sent in clear.
func (c credentials) areSecret() bool {
	return slices.ContainsFunc([]string{keyPassword, keyBearer, keyApp, keyCertKey, keyIdentity, keySSH, keyJumpIdentity}, func(key string) bool { return c[key] != "" })
}

// secrets are the texts that no error may show, in every form in which they may
// come back.
func (c credentials) secrets() []string {
	var list []string
	for _, key := range []string{keyPassword, keyBearer, keyIdentity, keySSH, keyJumpIdentity, keyCertKey, keyAppKey} {
		if c[key] != "" {
			list = append(list, disguises(c.user(), c[key])...)
		}
	}
	return list
}

// readSecret reads a small file without the line end that editors add.
func readSecret(what, path string) (string, error) {
	data, err := readBounded(path, maxSecretBytes)
	if err != nil {
		return "", unauthenticated(
			fmt.Sprintf("the %s file %s cannot be read (%s)", what, path, osReason(err)),
			"mount it or correct its path")
	}
	data = bytes.TrimRight(data, "\r\n")
	if len(data) == 0 {
		return "", unauthenticated(fmt.Sprintf("the %s file %s is empty", what, path), "fill it")
	}
	return string(data), nil
}

func readBounded(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return data, err
}
