package sources

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// Auth names the files with the credentials for an http or https repository.
// They are read again for each fetch. Over plain http they can be read by
// everyone on the way.
type Auth struct {
	// UsernameFile holds the user name that goes with the password. Without it
	// the name is "x-access-token", which the common hosts take with a token.
	UsernameFile string
	// PasswordFile holds a password or an access token, sent as HTTP basic
	// authentication.
	PasswordFile string
	// BearerTokenFile holds a token that is sent as "Authorization: Bearer". It
	// excludes the other two.
	BearerTokenFile string
}

const tokenUser = "x-access-token"

func (a Auth) check() error {
	switch {
	case a.BearerTokenFile != "" && (a.PasswordFile != "" || a.UsernameFile != ""):
		return errors.New("repository credentials: both a password and a bearer token are given; give one of them")
	case a.UsernameFile != "" && a.PasswordFile == "":
		return errors.New("repository credentials: a user name is given without a password; give the password file as well")
	}
	return nil
}

// login is what Auth's files held at one moment.
type login struct {
	method  transport.AuthMethod // nil for none
	secrets []string             // what no error may show
}

func (a Auth) read() (login, error) {
	switch {
	case a.BearerTokenFile != "":
		return a.bearer()
	case a.PasswordFile != "":
		return a.basic()
	}
	return login{}, nil
}

func (a Auth) bearer() (login, error) {
	token, err := readSecret("bearer token", a.BearerTokenFile)
	if err != nil {
		return login{}, err
	}
	return login{method: &githttp.TokenAuth{Token: token}, secrets: []string{token}}, nil
}

func (a Auth) basic() (login, error) {
	password, err := readSecret("password", a.PasswordFile)
	if err != nil {
		return login{}, err
	}
	var user string
	if a.UsernameFile != "" {
		if user, err = readSecret("user name", a.UsernameFile); err != nil {
			return login{}, err
		}
	}
	user = cmp.Or(user, tokenUser)
	return login{
		method:  &githttp.BasicAuth{Username: user, Password: password},
		secrets: disguises(user, password),
	}, nil
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
