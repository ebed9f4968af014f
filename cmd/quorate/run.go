package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/daemon"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/cmd/quorate/internal/publish"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/sources"
)

// runFlags are the flags of quorate run.
type runFlags struct {
	repository   repositoryFlags
	forge        forgeFlags
	status       statusFlags
	kube         kubeFlags
	bounds       boundsFlags
	signing      signingFlags
	lease        daemon.Lease
	mass         follow.Limits
	approve      string
	insecure     bool
	interval     time.Duration
	listeners    daemon.Listeners
	pageBranches string
	logFormat    string
	logLevel     string
}

// minInterval keeps a typo from overloading the Git server.
const minInterval = 100 * time.Millisecond

// newRun is the daemon.
func newRun() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `run polls a branch of a Git repository, and reconciles the etcd clusters of the
Kubernetes cluster with its files: one action at a time, each with a reason.
It depends on no state in memory, and may be killed at any time.`,
		Example: "  quorate run --repo https://git.example.com/etcd.git --path clusters",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkExpanded(cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd.Context())
		},
	}
	f.add(cmd)
	return cmd
}

// checkExpanded rejects a flag that is still $(VARIABLE): Kubernetes leaves it so where a pod has
// no such variable, and what it means would be guessed.
func checkExpanded(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		variable, isVariable := strings.CutPrefix(f.Value.String(), "$(")
		if variable, closed := strings.CutSuffix(variable, ")"); isVariable && closed && err == nil {
			err = fmt.Errorf("--%s is %q, for the pod has no variable %s: add %s to the ConfigMap quorate-settings, as deploy/base/kustomization.yaml does", f.Name, f.Value, variable, variable)
		}
	})
	return err
}

func (f *runFlags) add(cmd *cobra.Command) {
	f.repository.add(cmd)
	f.forge.add(cmd)
	f.status.add(cmd)
	f.kube.add(cmd)
	f.bounds.add(cmd)
	f.signing.add(cmd)
	f.addLease(cmd)
	f.addPace(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&f.interval, "interval", 30*time.Second, "Git poll interval")
	flags.IntVar(&f.mass.Clusters, "max-changed-clusters", 10, "a commit that removes, deletes, hibernates or changes the version, image, security context or storage of more clusters waits for approval; 0 for no limit")
	flags.IntVar(&f.mass.Percent, "max-changed-percent", 50, "the same as part of all clusters, from three on; 0 for no limit")
	flags.StringVar(&f.approve, "approve-commit", "", "approve one transition, FROM..TO by the full hashes of the commit in force and of the one that may follow it, or TO for whichever is in force, whatever the history and signatures are and however much it changes; it counts once, as the annotation quorate.dev/approve on the ConfigMap that the log names does")
	flags.BoolVar(&f.insecure, "insecure-git", false, "follow a repository over http:// without signed commits: anyone who can change network traffic decides what is applied")
	f.addListeners(cmd)
	cli.ChoiceFlag(cmd, &f.logFormat, "log-format", "format of the log lines; deploy/base sets json", cli.Text, cli.JSON)
	cli.ChoiceFlag(cmd, &f.logLevel, "log-level", "least level that is logged: waiting is info, a stop or a refusal a warning, a failure or a lost quorum an error", "info", "debug", "warn", "error")
}

// addListeners adds the flags about where the daemon answers.
func (f *runFlags) addListeners(cmd *cobra.Command) {
	l, flags, auth := &f.listeners, cmd.Flags(), []string{string(daemon.AuthNone), string(daemon.AuthToken)}
	flags.StringVar(&l.Health, "listen", ":8080", "address for /healthz and /readyz, and for /metrics without --metrics-listen")
	flags.StringVar(&l.Metrics.Listen, "metrics-listen", "", "address for /metrics alone, for example :8443; default on --listen")
	cli.ChoiceFlag(cmd, (*string)(&l.Metrics.Auth), "metrics-auth", "who may read --metrics-listen: anyone who can reach the address, or only those who give a token of Kubernetes whose account may get /metrics", auth...)
	flags.StringVar(&l.Page.Listen, "page-listen", "", "address for the read-only page and its API, for example 127.0.0.1:8081, which kubectl port-forward reaches; default none")
	cli.ChoiceFlag(cmd, (*string)(&l.Page.Auth), "page-auth", "who may read the page and its API: anyone who can reach the address, or only those who give a token of Kubernetes whose account may get /quorate", auth...)
	flags.StringVar(&f.pageBranches, "page-status-branches", "", "also show on the page, to everyone who may read it, the clusters of other Kubernetes clusters whose daemons write a status branch to --repo: what the names of these branches begin with, such as "+sources.DefaultStatusBranch+"; default none")
	flags.StringVar(&l.Webhook, "webhook-listen", "", "address for /webhook, which the Git provider calls after a push; default none")
	flags.StringVar(&l.WebhookSecretFile, "webhook-secret-file", "", "file with the secret that the Git provider signs its webhook calls with")
	flags.StringVar(&l.CertFile, "tls-cert-file", "", "certificate in PEM, with those between it and its authority, for TLS at --metrics-listen, --page-listen and --webhook-listen, but not on loopback; read again when it changes")
	flags.StringVar(&l.KeyFile, "tls-key-file", "", "private key of --tls-cert-file in PEM")
}

// run checks the flags, and runs the daemon.
func (f *runFlags) run(ctx context.Context) error {
	log := f.logger(os.Stderr)
	if f.interval < minInterval {
		return fmt.Errorf("--interval is %s; give at least %s", f.interval, minInterval)
	}
	if err := errors.Join(f.kube.check(), checkPace(f.kube.options), checkLimits(f.mass), checkShards(f.lease)); err != nil {
		return err
	}
	clock := &daemon.ServerClock{}
	connect := func() (kubernetes.Interface, error) {
		kube, _, err := cli.Connect(f.kube.kubeconfig, userAgent(), clock.Listen, queue.Requesting)
		return kube, err
	}
	c, err := f.config(connect)
	if err != nil {
		return err
	}
	c.Clock = clock
	if c.Options.BackupKeys, err = f.signing.open(log); err != nil {
		return err
	}
	if c.Kube, err = connect(); err != nil {
		return err
	}
	if c.Options.Notes, err = connect(); err != nil {
		return err
	}
	return daemon.Run(ctx, c, log)
}

// config turns the flags into a configuration. kube is called for a client if a Secret is
// named.
func (f *runFlags) config(kube func() (kubernetes.Interface, error)) (daemon.Config, error) {
	instance := f.kube.options.Owner.Instance
	c := daemon.Config{
		Version: buildVersion(), Options: f.kube.options, Lease: f.lease, Listeners: f.listeners,
	}
	c.Lease.Instance, c.GitTimeout = instance, f.repository.config.Timeout
	if f.repository.config.URL == "" {
		return c, errors.New("--repo is empty, which names the Git repository to follow, for example https://git.example.com/platform/etcd.git: give it; with deploy/base it is REPO of the ConfigMap quorate-settings, which an overlay sets, see deploy/base/kustomization.yaml")
	}
	if err := f.checkTransport(); err != nil {
		return c, err
	}
	repository, err := f.repository.open(kube)
	if err != nil {
		return c, err
	}
	approved, err := f.approval()
	if err != nil {
		return c, err
	}
	bounds, err := f.bounds.read()
	if err != nil {
		return c, err
	}
	if bounds.CheckHosts == nil {
		bounds.CheckHosts = []string{} // the daemon asks no host that it was not told to
	}
	c.Options.Namespaces, c.Options.CheckHosts = bounds.Namespaces, bounds.CheckHosts
	c.Follow = follow.Config{
		Repository: repository, Interval: f.interval, Bounds: bounds, Limits: f.mass, Approved: approved, Namespace: f.lease.Namespace, Instance: instance,
	}
	host, err := f.forge.open(f.repository, kube)
	if err != nil {
		return c, err
	}
	if f.forge.pulls {
		c.Pulls = &publish.PullsConfig{
			Host: host, Repository: repository, Branch: branchOf(f.repository.config), Instance: instance, Bounds: bounds, Forks: f.forge.forks, Interval: f.interval,
		}
	}
	if f.forge.statuses {
		c.CommitStatuses = &publish.CommitStatusesConfig{Host: host, Context: f.forge.statusContext}
		if f.status.mode == statusBranch {
			c.CommitStatuses.Link = host.BranchURL(f.status.config.Branch)
		}
	}
	if c.Branches, err = f.openBranches(kube); err != nil {
		return c, err
	}
	if c.Status, err = f.status.open(f.repository, kube); err == nil && c.Status != nil {
		c.Status.Instance = instance
		if len(bounds.Namespaces) > 0 {
			c.Status.Home = f.lease.Namespace
		}
	}
	return c, err
}

// maxBeside is how many objects of other Kubernetes clusters are kept for the page.
const maxBeside = 20_000

// openBranches is what reads the status branches of other Kubernetes clusters, by the way and with
// the credentials by which the repository is read; nil for nothing.
func (f *runFlags) openBranches(kube func() (kubernetes.Interface, error)) (*branches.Reader, error) {
	read := f.repository
	switch followed := branchOf(read.config); {
	case f.pageBranches == "":
		return nil, nil
	case f.listeners.Page.Listen == "":
		return nil, errors.New("--page-status-branches is for the page: add --page-listen")
	case followed != "" && strings.HasPrefix(followed, f.pageBranches):
		return nil, fmt.Errorf("--page-status-branches is %s, with which the name of the branch that is followed begins: give more of the names of the status branches", f.pageBranches)
	}
	c := read.config
	read.signers, read.config = "", sources.Config{URL: c.URL, Branch: f.pageBranches, Auth: c.Auth, CAFile: c.CAFile, SSHJump: c.SSHJump, Timeout: c.Timeout, Limits: c.Limits}
	repository, err := read.open(kube)
	if err != nil {
		return nil, fmt.Errorf("--page-status-branches: %w", err)
	}
	made := &branches.Reader{Repository: repository, Prefix: f.pageBranches, Most: maxBeside}
	if f.status.mode == statusBranch {
		made.Own = f.status.config.Branch
	}
	return made, nil
}

// checkTransport refuses to apply what anyone on the network may have written, where no
// signature tells and nobody has said that it is meant.
func (f *runFlags) checkTransport() error {
	c := f.repository.config
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" || f.insecure || cmp.Or(c.Signers.File, f.repository.signers) != "" {
		return nil // what is no URL is told where it is opened
	}
	return errors.New("--repo is an http:// URL, and whoever can change what passes on the network could change what is applied: use https:// or ssh://, require signed commits with --git-signers-file or --git-signers-secret, or allow it with --insecure-git")
}

// addLease adds the flags about who may act when several daemons run.
func (f *runFlags) addLease(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.lease.Elect, "leader-elect", true, "enable leader election: act only while holding a lease, so that two daemons never act at the same time")
	cmd.Flags().StringVar(&f.lease.Namespace, "lease-namespace", ownNamespace(), "namespace of the lease; in a pod that of $POD_NAMESPACE")
	cmd.Flags().IntVar(&f.lease.Shards, "shards", 1, "how many parts the clusters are divided into among all daemons that run with the same number, several for each daemon; with 1, one daemon reconciles all of them (docs/shards.md)")
}

// addPace adds the flags about how many clusters are looked at, and how often.
func (f *runFlags) addPace(cmd *cobra.Command) {
	flags, o := cmd.Flags(), &f.kube.options
	flags.IntVar(&o.Workers, "workers", reconciler.DefaultWorkers, "how many clusters are planned at the same time; one that waits for its members or for the API server does not count")
	flags.IntVar(&o.MaxAsks, "max-asks", reconciler.DefaultMaxAsks, "how many clusters' members are probed at the same time; clusters whose members answered late the last time have a separate limit, eight times as high")
	flags.DurationVar(&o.Resync, "resync", reconciler.DefaultResync, "how often a cluster is reconciled without an event from Kubernetes; the status of its members is read each time, everything else about them every two minutes; with more than 6,000 clusters it is 5 ms for each cluster")
}

// minResync and maxResync keep a typo from overloading members, and alarms from being seen late.
const (
	minResync = time.Second
	maxResync = 10 * time.Minute
)

// checkPace rejects what no fleet could be looked at with.
func checkPace(o reconciler.Options) error {
	switch {
	case o.Workers < 1:
		return fmt.Errorf("--workers is %d: give at least 1", o.Workers)
	case o.MaxAsks < 1:
		return fmt.Errorf("--max-asks is %d: give at least 1", o.MaxAsks)
	case o.Resync < minResync || o.Resync > maxResync:
		return fmt.Errorf("--resync is %s: give %s to %s, for example 30s", o.Resync, minResync, maxResync)
	}
	return nil
}

// checkLimits rejects limits that make no sense.
func checkLimits(l follow.Limits) error {
	if l.Clusters < 0 || l.Percent < 0 || l.Percent > 100 {
		return fmt.Errorf("--max-changed-clusters is %d and --max-changed-percent %d: give 0 for no limit, or a number, which for the percentage is at most 100", l.Clusters, l.Percent)
	}
	return nil
}

// maxShards is how many leases are renewed every other second at most.
const maxShards = 128

// checkShards rejects a division that could not be kept.
func checkShards(l daemon.Lease) error {
	switch {
	case l.Shards < 1 || l.Shards > maxShards:
		return fmt.Errorf("--shards is %d: give 1, or up to %d, some four for each daemon", l.Shards, maxShards)
	case l.Shards > 1 && !l.Elect:
		return fmt.Errorf("--shards is %d with --leader-elect=false: leases say which daemon has which shard, leave one of the two out", l.Shards)
	}
	return nil
}

// approval reads --approve-commit.
func (f *runFlags) approval() (follow.Approval, error) {
	a, err := follow.ParseApproval(f.approve)
	if err != nil {
		return a, fmt.Errorf("--approve-commit: %w", err)
	}
	return a, nil
}

// logger writes to out, as do the messages of client-go.
func (f *runFlags) logger(out io.Writer) *slog.Logger {
	level := map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[f.logLevel]
	options := &slog.HandlerOptions{Level: level} // info is the zero level
	log := slog.New(slog.NewTextHandler(out, options))
	if f.logFormat == cli.JSON {
		log = slog.New(slog.NewJSONHandler(out, options))
	}
	klog.SetSlogLogger(log.With("source", "client-go"))
	return log
}

// indent puts two spaces before each line.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
