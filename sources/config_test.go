package sources_test

import (
	"context"
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

func TestNewAcceptsWhatItCanRead(t *testing.T) {
	for _, url := range []string{
		"https://git.example.com/org/repo.git",
		"HTTPS://git.example.com:8443/org/repo/",
		"http://[::1]:3000/repo",
		"file:///srv/git/repo.git",
		"file://localhost/srv/git/repo.git",
		"/srv/git/repo.git",
		"ssh://git@git.example.com:2222/org/repo.git",
		"git@git.example.com:org/repo.git",
		"git.example.com:org/repo.git",
		"./repo@old",
		"repo",
	} {
		if _, err := sources.New(sources.Config{URL: url, Branch: "main"}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func noSecret(context.Context) (map[string][]byte, error) { return nil, nil }

func TestNewRefusesWhatItCannotRead(t *testing.T) {
	const token = "ghp_t0ken"
	for name, tc := range map[string]struct {
		cfg  sources.Config
		says string
	}{
		"no URL":               {sources.Config{}, "none is given"},
		"token as user":        {sources.Config{URL: "https://" + token + "@github.com/o/r"}, "user information"},
		"token as password":    {sources.Config{URL: "https://u:" + token + "@github.com/o/r"}, "user information"},
		"token over http":      {sources.Config{URL: "http://" + token + "@github.com/o/r"}, "user information"},
		"token in the query":   {sources.Config{URL: "https://github.com/o/r?access_token=" + token}, "query"},
		"token as fragment":    {sources.Config{URL: "https://github.com/o/r#" + token}, "fragment"},
		"token, no scheme":     {sources.Config{URL: token + "@github.com/o/r"}, "https://host/path"},
		"token, odd URL":       {sources.Config{URL: "https://" + token + "@git hub.com:x/"}, "cannot be parsed"},
		"token in a file URL":  {sources.Config{URL: "file://" + token + "@localhost/r"}, "file:///path"},
		"ssh with a password":  {sources.Config{URL: "ssh://git:" + token + "@github.com/o/r"}, "it carries a password"},
		"ssh with a query":     {sources.Config{URL: "ssh://git@github.com/o/r?" + token}, "query"},
		"ssh without a path":   {sources.Config{URL: "ssh://git@github.com/"}, "no host or no path"},
		"scp-like, two colons": {sources.Config{URL: token + ":x@github.com:o/r.git"}, "ssh://git@host/path"},
		"scp-like, no path":    {sources.Config{URL: "git@github.com:"}, "ssh://git@host/path"},
		"two references":       {sources.Config{URL: "/r", Tag: "v1"}, "main and v1 are given; give one"},
		"bad tag":              {sources.Config{URL: "/r", Branch: "-", Tag: "v..1"}, `tag "v..1"`},
		"bad range":            {sources.Config{URL: "/r", Branch: "-", Semver: "latest"}, `range of versions "latest"`},
		"short commit":         {sources.Config{URL: "/r", Branch: "-", Commit: "abcdef0"}, "all 40 digits"},
		"two places":           {sources.Config{URL: "/r", Auth: sources.Auth{Dir: "/d", Secret: noSecret}}, "both a directory and a Secret"},
		"bad pattern":          {sources.Config{URL: "/r", Include: []string{"!a"}}, `"!a"`},
		"git":                  {sources.Config{URL: "git://github.com/o/r"}, `scheme "git" is not supported`},
		"jump, not over ssh":   {sources.Config{URL: "https://github.com/o/r", SSHJump: "a@b"}, "not reached over SSH"},
		"jump without a user":  {sources.Config{URL: "ssh://git@github.com/o/r", SSHJump: "b:22"}, "user@host"},
		"two jumps":            {sources.Config{URL: "ssh://git@github.com/o/r", SSHJump: "a@b,a@c"}, "give one"},
		"jump with a password": {sources.Config{URL: "ssh://git@github.com/o/r", SSHJump: "a:" + token + "@b"}, "carries a password"},
		"jump with a path":     {sources.Config{URL: "ssh://git@github.com/o/r", SSHJump: "a@b/" + token}, "user@host"},
		"no host":              {sources.Config{URL: "https:///o/r"}, "no host"},
		"file on another host": {sources.Config{URL: "file://server/r"}, "file:///path"},
		"no branch":            {sources.Config{URL: "/r", Branch: "-"}, "branch"},
		"bad branch":           {sources.Config{URL: "/r", Branch: "a..b"}, `branch "a..b"`},
		"path upwards":         {sources.Config{URL: "/r", Path: "a/../../b"}, `".."`},
		"two credentials": {sources.Config{URL: "/r", Auth: sources.Auth{
			PasswordFile: "/p", BearerTokenFile: "/b",
		}}, "both a password and a bearer token"},
		"user alone": {sources.Config{URL: "/r", Auth: sources.Auth{UsernameFile: "/u"}}, "without a password"},
	} {
		t.Run(name, func(t *testing.T) {
			switch tc.cfg.Branch {
			case "":
				tc.cfg.Branch = "main"
			case "-":
				tc.cfg.Branch = ""
			}
			_, err := sources.New(tc.cfg)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q does not say %q", err, tc.says)
			}
			if strings.Contains(err.Error(), token) {
				t.Errorf("error %q shows the token", err)
			}
		})
	}
}

// 142: two daemons know each other by what they follow.
func TestSourceNamesWhatIsWatched(t *testing.T) {
	for _, tc := range []struct{ url, path, want string }{
		{"https://git.example.com/org/repo.git", "clusters", "https://git.example.com/org/repo.git@main:clusters"},
		{"HTTPS://Git.example.com/org/repo.git/", "./clusters/", "https://git.example.com/org/repo.git@main:clusters"},
		{"https://git.example.com/Org/repo.git", "", "https://git.example.com/Org/repo.git@main"},
		{"https://git.example.com/org/repo.git", ".", "https://git.example.com/org/repo.git@main"},
		{"file:///srv/git/repo.git", "a/b", "/srv/git/repo.git@main:a/b"},
		{"/srv/git/repo.git/", "", "/srv/git/repo.git@main"},
		{"git@Git.example.com:org/repo.git", "a", "ssh://git@git.example.com/org/repo.git@main:a"},
		{"ssh://git.example.com/org/repo.git", "a", "ssh://git@git.example.com/org/repo.git@main:a"},
	} {
		r, err := sources.New(sources.Config{URL: tc.url, Path: tc.path, Branch: "main"})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Source(); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.url, tc.path, got, tc.want)
		}
	}
}
