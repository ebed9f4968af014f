package sources

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// location is where a repository is: at a URL or in a local directory.
type location struct {
	remote  *url.URL // http, https or ssh, without a password
	sshPath string   // over ssh: the path as it is sent to the server
	dir     string   // absolute
}

// String is the form for errors; parseLocation let no secret into it.
func (l location) String() string {
	if l.remote != nil {
		return l.remote.String()
	}
	return l.dir
}

// Address is the host of a repository's URL and its path there, as code hosts
// show them: without a .git at its end. Both are empty for a local path.
func Address(repository string) (host, path string, err error) {
	where, err := parseLocation(repository)
	if err != nil || where.remote == nil {
		return "", "", err
	}
	path = strings.TrimSuffix(strings.Trim(where.remote.Path, "/"), ".git")
	return strings.ToLower(where.remote.Hostname()), path, nil
}

// parseLocation understands what Git understands: URLs, scp-like addresses and
// paths. Its errors never repeat the text, which may hold a secret.
func parseLocation(text string) (location, error) {
	switch {
	case text == "":
		return location{}, errors.New("repository URL: none is given; give an https or ssh URL or a local path")
	case strings.Contains(text, "://"):
		return parseURL(text)
	case isScpLike(text):
		return scpLike(text)
	case looksLikeLogin(text):
		return location{}, errors.New("repository URL: it looks like an address with user information; give it in the form https://host/path, or ./ before a local path")
	}
	return localDir(text)
}

func parseURL(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil {
		return location{}, errors.New("repository URL: it cannot be parsed; give it in the form https://host/path")
	}
	switch u.Scheme {
	case "http", "https":
		return remote(u)
	case "file":
		return fileURL(u)
	case "ssh", "git+ssh", "ssh+git":
		return overSSH(u)
	}
	return location{}, fmt.Errorf("repository URL: scheme %q is not supported; use https or ssh", u.Scheme)
}

// remote refuses what is not part of an address. A token is often pasted in as
// the user name, which net/url shows in clear even when it redacts.
func remote(u *url.URL) (location, error) {
	switch {
	case u.User != nil:
		return location{}, errors.New("repository URL: it carries user information; remove what is before the @ and give the credentials as files")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return location{}, errors.New("repository URL: it carries a query or a fragment; remove what follows the path")
	case u.Hostname() == "":
		return location{}, errors.New("repository URL: it names no host; give it in the form https://host/path")
	}
	return location{remote: u.JoinPath()}, nil
}

func fileURL(u *url.URL) (location, error) {
	if u.User != nil || (u.Host != "" && u.Host != "localhost") || u.RawQuery != "" || u.Fragment != "" {
		return location{}, errors.New("repository URL: a file URL has only a path; give it in the form file:///path")
	}
	return localDir(filepath.FromSlash(u.Path))
}

func localDir(path string) (location, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return location{}, fmt.Errorf("repository URL: the working directory is unknown: %w", err)
	}
	return location{dir: dir}, nil
}

// isScpLike follows Git's rule: a colon before the first slash.
func isScpLike(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	return strings.Contains(host, ":")
}

// looksLikeLogin finds a URL that has lost its scheme: taken for a path, its
// token would be shown.
func looksLikeLogin(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	return strings.Contains(host, "@")
}

// scpLike understands user@host:path, in which a path without a slash in front
// begins at the user's home.
func scpLike(text string) (location, error) {
	login, path, _ := strings.Cut(text, ":")
	user, host, hasUser := strings.Cut(login, "@")
	if !hasUser {
		user, host = "", login
	}
	start, _, _ := strings.Cut(path, "/")
	if host == "" || path == "" || strings.Contains(start, "@") || strings.ContainsAny(host, "@[]") || strings.Contains(user, ":") {
		return location{}, errors.New("repository URL: it looks like an SSH address that cannot be parsed; give it in the form ssh://git@host/path")
	}
	u := &url.URL{Scheme: "ssh", Host: host, Path: "/" + strings.TrimPrefix(path, "/")}
	if user != "" {
		u.User = url.User(user)
	}
	where, err := overSSH(u)
	where.sshPath = path
	return where, err
}

// overSSH takes a URL with at most a user name. The name is not secret.
func overSSH(u *url.URL) (location, error) {
	_, hasPassword := u.User.Password()
	switch {
	case hasPassword:
		return location{}, errors.New("repository URL: it carries a password; remove it and give an SSH key as a file")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return location{}, errors.New("repository URL: it carries a query or a fragment; remove what follows the path")
	case u.Hostname() == "" || strings.Trim(u.Path, "/") == "":
		return location{}, errors.New("repository URL: it names no host or no path; give it in the form ssh://git@host/path")
	}
	same := *u
	same.Scheme = "ssh"
	if same.User.Username() == "" {
		same.User = url.User(sshUser)
	}
	path := same.Path
	if strings.HasPrefix(path, "/~") { // as in Git: a path in a user's home
		path = path[1:]
	}
	return location{remote: &same, sshPath: path}, nil
}

// sshUser is the user at a server where none is named, as at the
// common hosts.
const sshUser = "git"
