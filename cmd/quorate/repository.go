package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/sources"
)

// repositoryFlags are the flags that name a Git repository.
type repositoryFlags struct {
	config sources.Config
	// secret is the name of a Secret with credentials.
	secret string
	// signers is the name of a Secret with public keys.
	signers string
}

func (f *repositoryFlags) add(cmd *cobra.Command) {
	f.addAccess(cmd)
	flags := cmd.Flags()
	c := &f.config
	flags.StringVar(&c.Branch, "branch", "", "branch to read; default main")
	flags.StringVar(&c.Tag, "tag", "", "tag to read, instead of a branch")
	flags.StringVar(&c.Semver, "semver", "", `read the tag with the highest version in a range, for example "1.x" or ">=1.2.0 <2.0.0"`)
	flags.StringVar(&c.Commit, "commit", "", "commit to read, by its full hash")
	flags.StringVar(&c.Path, "path", "", "directory in the repository to read; default the whole repository")
	flags.StringSliceVar(&c.Include, "include", nil, "read only files below --path that match one of these patterns, as in a .gitignore")
	flags.StringSliceVar(&c.Ignore, "ignore", nil, "leave out files below --path that match one of these patterns")
	flags.StringVar(&f.secret, "git-secret", "", "Secret with the same, in the namespace of $POD_NAMESPACE or quorate-system; read at each poll of the repository")
	flags.StringVar(&c.Signers.File, "git-signers-file", "", "file with the public keys, OpenPGP or SSH, that may sign commits and tags; then every commit, and a tag that is followed, must be signed by one of them")
	flags.StringVar(&f.signers, "git-signers-secret", "", "Secret with such keys, in quorate's namespace")
}

// addAccess adds those about where it is and how it is read.
func (f *repositoryFlags) addAccess(cmd *cobra.Command) {
	flags := cmd.Flags()
	c := &f.config
	flags.StringVar(&c.URL, "repo", "", "Git repository: an https://, ssh:// or file:// URL, git@HOST:PATH, a path, or an http:// URL without credentials")
	flags.StringVar(&c.Auth.UsernameFile, "git-username-file", "", "file with the user name for the repository")
	flags.StringVar(&c.Auth.PasswordFile, "git-password-file", "", "file with the password or token for the repository")
	flags.StringVar(&c.Auth.BearerTokenFile, "git-token-file", "", "file with a bearer token for the repository")
	flags.StringVar(&c.Auth.Dir, "git-credentials-dir", "", "directory with credentials for the repository, such as a mounted Secret: username, password, bearerToken, identity (an SSH key), jumpIdentity (another one for --git-ssh-jump) and known_hosts, ca.crt, tls.crt and tls.key, githubAppID, githubAppInstallationID, githubAppPrivateKey")
	flags.StringVar(&c.CAFile, "git-ca-file", "", "file with additional certificate authorities for the repository")
	flags.StringVar(&c.SSHJump, "git-ssh-jump", "", "SSH server to go through to the repository's, as USER@HOST or USER@HOST:PORT, like ssh's ProxyJump; known_hosts must have its key")
	flags.DurationVar(&c.Timeout, "git-timeout", time.Minute, "longest time for one read of the repository")
}

// ownNamespace is the namespace that quorate runs in.
func ownNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	return "quorate-system"
}

// open prepares the repository. kube is called for a client if a Secret is named.
func (f *repositoryFlags) open(kube func() (kubernetes.Interface, error)) (*sources.Repository, error) {
	c := f.config
	c.Branch = branchOf(c)
	var err error
	if c.Auth.Secret, err = readerOf(kube, f.secret); err != nil {
		return nil, err
	}
	if c.Signers.Secret, err = readerOf(kube, f.signers); err != nil {
		return nil, err
	}
	return sources.New(c)
}

// branchOf returns the branch that is followed; "" if it is a tag or a commit.
func branchOf(c sources.Config) string {
	if cmp.Or(c.Branch, c.Tag, c.Semver, c.Commit) == "" {
		return "main"
	}
	return c.Branch
}

// readerOf returns a function that reads a Secret of quorate's namespace at each call.
// It is nil, and kube is not called, if none is named.
func readerOf(kube func() (kubernetes.Interface, error), name string) (func(context.Context) (map[string][]byte, error), error) {
	if name == "" {
		return nil, nil
	}
	client, err := kube()
	if err != nil {
		return nil, err
	}
	namespace := ownNamespace()
	return func(ctx context.Context) (map[string][]byte, error) {
		secret, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
		}
		return secret.Data, nil
	}, nil
}
