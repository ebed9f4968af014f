package sources

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// location says where a repository is: at a URL or in a local directory.
type location struct {
	remote *url.URL // http or https, without user information
	dir    string   // absolute
}

// String is the form for errors; parseLocation let no secret into it.
func (l location) String() string {
	if l.remote != nil {
		return l.remote.String()
	}
	return l.dir
}

// parseLocation understands what Git understands: URLs, scp-like addresses and
// paths. Its errors never repeat the text, which may hold a secret.
func parseLocation(text string) (location, error) {
	switch {
	case text == "":
		return location{}, errors.New("repository URL: none is given; give an https URL or a local path")
	case strings.Contains(text, "://"):
		return parseURL(text)
	case isScpLike(text):
		return location{}, errSSH()
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
		return location{}, errSSH()
	}
	return location{}, fmt.Errorf("repository URL: scheme %q is not supported; use https", u.Scheme)
}

// remote refuses what is not part of an address. A token is often pasted in as
// the user name, which net/url shows in clear even when it redacts.
func remote(u *url.URL) (location, error) {
	switch {
	case u.User != nil:
		return location{}, errors.New("repository URL: it carries user information; remove what stands before the @ and give the credentials as files")
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

func errSSH() error {
	return errors.New("repository URL: ssh is not supported yet; use https")
}
