package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/daemon"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/forward"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
)

// liveTimeout limits how long all clusters are observed.
const liveTimeout = 2 * time.Minute

// planFlags are the flags of quorate plan.
type planFlags struct {
	repository repositoryFlags
	kube       kubeFlags
	bounds     boundsFlags
	offline    bool
	base, head string
	output     planOutput
	// notes is where it is said how the members were reached.
	notes io.Writer
}

// newPlan is the verb that shows what the daemon would do.
func newPlan() *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan [PATH...]",
		Short: "Show what would be done, and change nothing",
		Long: `plan compares files with the live clusters and prints the steps that quorate run
would take, in order, each with its reason and until when it can be undone.
It reads the given files and directories, or with --repo a branch of a Git
repository. It changes nothing.

With --offline it needs no cluster and compares two Git revisions: --base with the
files on disk, or with --head. It assumes that each cluster is healthy and is what
the base says, and it names what it cannot know. Only clusters that differ are
listed. Give the commit that the branch left as the base, so that what the target
branch got since then does not count as a change.

Members that do not answer at their own addresses, as from outside of the cluster, are
reached through the API server, where the account may create pods/portforward; standard
error says so.

-o json is one object: clusters (namespace, name, change, version, changes, hold,
steps, disruption, restarts, warnings, unknown), others, problems, summary; a step
has kind, member, from, to and reversibility besides its text. docs/plan-json.md has
all fields.
-o markdown is a comment for a pull request. Its first line is a marker,
<!-- quorate-plan part 1 -->, by which a bot finds the comment that it wrote before.
What is longer than --limit continues in part 2.

Exit status: 0 when there is nothing to do, 2 when a cluster differs from its file
(steps are due, or something holds them) or, offline, when the revisions differ,
and 1 on an error, a file with errors included.`,
		Example: `  quorate plan clusters/
  quorate plan --repo https://git.example.com/etcd.git --branch main --path clusters -o json
  quorate plan --offline --base origin/main clusters
  quorate plan --offline --base origin/main -o markdown --output-dir comment clusters`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			f.notes = cmd.ErrOrStderr()
			return f.run(cmd.Context(), cmd.OutOrStdout(), paths)
		},
	}
	f.repository.add(cmd)
	f.kube.add(cmd)
	f.bounds.add(cmd)
	f.output.add(cmd)
	cmd.Flags().BoolVar(&f.offline, "offline", false, "compare two Git revisions without access to a cluster")
	cmd.Flags().StringVar(&f.base, "base", "", "with --offline: the Git revision to compare with, such as origin/main")
	cmd.Flags().StringVar(&f.head, "head", "", "with --offline: the Git revision that is wanted; default the files on disk")
	return cmd
}

func (f *planFlags) run(ctx context.Context, out io.Writer, paths []string) error {
	if err := errors.Join(f.output.check(), f.kube.check(), f.check()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	if f.kube.options.Render.GuardImage == "" {
		// Which image the guard has does not matter for what would be done.
		f.kube.options.Render.GuardImage = "quorate"
	}
	compute := f.live
	if f.offline {
		compute = f.compare
	}
	report, err := compute(ctx, paths)
	if err != nil {
		return err
	}
	return f.output.print(out, report)
}

// check rejects flags that contradict each other.
func (f *planFlags) check() error {
	remote := f.repository.config.URL != ""
	switch {
	case f.offline && remote:
		return errors.New("--offline compares revisions of a repository on disk: clone it, and leave out --repo")
	case f.offline && f.base == "":
		return errors.New("--base is required with --offline: a Git revision such as origin/main")
	case !f.offline && (f.base != "" || f.head != ""):
		return errors.New("--base and --head are for --offline: add it, or leave them out")
	}
	return nil
}

// live plans for the clusters that are running.
func (f *planFlags) live(ctx context.Context, paths []string) (*preview.Report, error) {
	set, commit, err := f.read(ctx, paths)
	if err != nil {
		return nil, err
	}
	r, stop, err := f.reconciler(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	return preview.Live(ctx, r, preview.Revision{Set: set, Commit: commit}, daemon.PreviewOptions(f.kube.options))
}

// read reads the files that the command line names.
func (f *planFlags) read(ctx context.Context, paths []string) (schema.Set, string, error) {
	parser, err := f.bounds.parser()
	if err != nil {
		return schema.Set{}, "", err
	}
	f.kube.options.Namespaces = parser.Namespaces
	switch {
	case len(paths) > 0 && f.repository.config.URL != "":
		return schema.Set{}, "", errors.New("give either paths or --repo, not both")
	case len(paths) > 0:
		set, err := readPaths(ctx, parser, paths)
		return set, "", err
	case f.repository.config.URL == "":
		return schema.Set{}, "", errors.New("specify paths or --repo")
	}
	repository, err := f.repository.open(f.kube.connect)
	if err != nil {
		return schema.Set{}, "", err
	}
	f.kube.options.Owner.Source = repository.Source()
	s, err := repository.Fetch(ctx)
	if err != nil {
		return schema.Set{}, "", err
	}
	return follow.Parse(parser, s), s.Commit, nil
}

// reconciler returns one whose caches are filled, and what ends its ways to the members.
func (f *planFlags) reconciler(ctx context.Context) (*reconciler.Reconciler, func(), error) {
	kube, config, err := cli.Connect(f.kube.kubeconfig, userAgent())
	if err != nil {
		return nil, nil, err
	}
	if err := daemon.Reachable(ctx, kube); err != nil {
		return nil, nil, err
	}
	members := &forward.Members{Client: etcd.New(), Open: forward.Forwarder{Kube: kube, Config: config}.Open, Told: f.tellOfWay}
	r := reconciler.New(kube, members, &record.FakeRecorder{},
		report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler), f.kube.options)
	return r, members.Close, r.Start(ctx)
}

// tellOfWay says how the members of a cluster were asked that do not answer at their own
// addresses, or that they were not: then the plan rests on what Kubernetes says of them.
func (f *planFlags) tellOfWay(cluster string, err error) {
	if err == nil {
		fmt.Fprintf(f.notes, "%s: no member answers at its own address from here; they were asked through the API server, as kubectl port-forward does\n", cluster)
		return
	}
	fmt.Fprintf(f.notes, "%s: no member could be asked from here, neither at its own address nor through the API server: %s. The daemon may well reach them: quorate status shows what it sees\n", cluster, err)
}
