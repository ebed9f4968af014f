package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/publish"
	"github.com/quorate/quorate/sources"
)

// statusFlags are the flags about the branch that quorate writes.
type statusFlags struct {
	mode     string
	config   sources.PublishConfig
	secret   string
	interval time.Duration
}

// The values of --status.
const (
	statusNone   = "none"
	statusBranch = "branch"
)

// minStatusInterval limits the branch to one commit per second.
const minStatusInterval = time.Second

// minHeartbeat limits the commits that say nothing new.
const minHeartbeat = 10 * time.Minute

func (f *statusFlags) add(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.StringVar(&f.mode, "status", statusNone, "branch: publish the status of all objects to a branch (one file per object and an overview page); none: write nothing to Git")
	flags.StringVar(&c.Branch, "status-branch", sources.DefaultStatusBranch, "name of the branch, an orphan; one that quorate did not create is never written to")
	flags.DurationVar(&f.interval, "status-interval", time.Minute, "shortest time between two commits on it")
	flags.DurationVar(&c.Heartbeat, "status-heartbeat", time.Hour, "commit again after this time though nothing has changed, so that readers of the branch see that this daemon runs; 0 for never")
	flags.StringVar(&c.Auth.Dir, "status-credentials-dir", "", "directory with credentials that may write it, as in --git-credentials-dir; default those for reading")
	flags.StringVar(&f.secret, "status-secret", "", "Secret with the same, in quorate's namespace")
	flags.StringVar(&c.Author, "status-author", "quorate <quorate@localhost>", "author of its commits")
	flags.StringVar(&c.SigningKeyFile, "status-signing-key-file", "", "file with an OpenPGP or SSH private key that signs them")
	flags.IntVar(&c.Compact, "status-compact", 500, "restart its history after this many commits, if the server lets a branch be rewritten")
}

// check rejects flags that contradict each other, or that would let quorate follow what
// it writes.
func (f *statusFlags) check(followed sources.Config) error {
	switch {
	case f.mode == statusNone && cmp.Or(f.config.Auth.Dir, f.secret, f.config.SigningKeyFile) != "":
		return errors.New("--status-credentials-dir, --status-secret and --status-signing-key-file are for --status branch: add it")
	case f.mode == statusNone:
		return nil
	case f.mode != statusBranch:
		return errors.New("--status must be branch or none")
	case f.config.Auth.Dir != "" && f.secret != "":
		return errors.New("give --status-credentials-dir or --status-secret, not both")
	case f.interval < minStatusInterval:
		return fmt.Errorf("--status-interval is %s; give at least %s", f.interval, minStatusInterval)
	case f.config.Heartbeat != 0 && (f.config.Heartbeat < minHeartbeat || f.config.Heartbeat > branches.MaxHeartbeat):
		return fmt.Errorf("--status-heartbeat is %s; give %s to %s, or 0 for none", f.config.Heartbeat, minHeartbeat, branches.MaxHeartbeat)
	case branchOf(followed) == f.config.Branch:
		return fmt.Errorf("--status-branch is %s, which quorate follows: it would follow what it writes; name another one", f.config.Branch)
	}
	return nil
}

// open checks the flags; it returns nil if nothing should be written.
func (f *statusFlags) open(repository repositoryFlags, kube func() (kubernetes.Interface, error)) (*publish.BranchConfig, error) {
	read := repository.config
	if err := f.check(read); err != nil || f.mode == statusNone {
		return nil, err
	}
	c := f.config
	c.URL, c.CAFile, c.SSHJump, c.Timeout, c.Limits = read.URL, read.CAFile, read.SSHJump, read.Timeout, read.Limits
	secret := f.secret
	if c.Auth.Dir == "" && secret == "" {
		c.Auth, secret = read.Auth, repository.secret
	}
	var err error
	if c.Auth.Secret, err = readerOf(kube, secret); err != nil {
		return nil, err
	}
	check := c
	check.Owner = "not known yet"
	if _, err := sources.NewPublisher(check); err != nil {
		return nil, err
	}
	return &publish.BranchConfig{Publish: c, Interval: f.interval}, nil
}
