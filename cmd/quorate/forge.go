package main

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/sources/forge"
)

// forgeFlags are the flags about the code host of the repository.
type forgeFlags struct {
	kind, url         string
	tokenFile, secret string
	pulls, forks      bool
	statuses          bool
	statusContext     string
}

func (f *forgeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "forge", "", "Git provider of the repository: github, gitlab or gitea (also for Forgejo); for github.com and gitlab.com the default is derived from --repo")
	flags.StringVar(&f.url, "forge-url", "", "URL of the Git provider, such as https://git.example.com; the default is derived likewise")
	flags.StringVar(&f.tokenFile, "forge-token-file", "", "file with a token for the Git provider")
	flags.StringVar(&f.secret, "forge-secret", "", "Secret in quorate's namespace with that token (bearerToken or password) or a GitHub App, and ca.crt; read for each request")
	flags.BoolVar(&f.pulls, "pull-requests", false, "keep a comment on each open pull request for the branch that shows what it would do to the live clusters; drafts are skipped")
	flags.BoolVar(&f.forks, "pull-requests-from-forks", false, "with --pull-requests: comment also on pull requests from forks, which anyone may open")
	flags.BoolVar(&f.statuses, "commit-statuses", false, "set the status of commits to pending, success or failure, with how far they are applied")
	flags.StringVar(&f.statusContext, "commit-status-context", "quorate", "context of the commit statuses; must be unique for each quorate that follows the same repository")
}

// open prepares the client of the forge; it is nil without credentials for one.
func (f *forgeFlags) open(repository repositoryFlags, kube func() (kubernetes.Interface, error)) (*forge.Client, error) {
	if err := f.check(repository.config); err != nil || f.tokenFile == "" && f.secret == "" {
		return nil, err
	}
	secret, err := readerOf(kube, f.secret)
	if err != nil {
		return nil, err
	}
	auth := sources.Auth{BearerTokenFile: f.tokenFile, Secret: secret}
	return forge.New(forge.Config{
		Kind: forge.Kind(f.kind), URL: f.url, Repository: repository.config.URL, Auth: auth, CAFile: repository.config.CAFile,
	})
}

// check rejects flags that contradict each other.
func (f *forgeFlags) check(c sources.Config) error {
	switch {
	case f.forks && !f.pulls:
		return errors.New("--pull-requests-from-forks is for --pull-requests: add it")
	case !f.pulls && !f.statuses && cmp.Or(f.tokenFile, f.secret) != "":
		return errors.New("--forge-token-file and --forge-secret are for --pull-requests and --commit-statuses: add one")
	case !f.pulls && !f.statuses:
		return nil
	case f.tokenFile == "" && f.secret == "":
		return errors.New("--pull-requests and --commit-statuses write to where the repository is hosted: give a token with --forge-token-file or --forge-secret")
	case f.pulls && cmp.Or(c.Tag, c.Semver, c.Commit) != "":
		return errors.New("--pull-requests are those for a branch: follow one with --branch")
	}
	return nil
}
