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

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// planTimeout bounds the look at all clusters.
const planTimeout = 2 * time.Minute

// planFlags are the flags of quorate plan.
type planFlags struct {
	repository repositoryFlags
	kube       kubeFlags
	output     string
}

// newPlan shows what the daemon would do.
func newPlan() *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan [PATH...]",
		Short: "Show what would be done, and touch nothing",
		Long: `plan compares files with the live clusters and prints the steps that quorate run
would take, in order and each with its reason. It reads the given files and
directories, or with --repo a branch of a Git repository. It changes nothing.

It ends with 0 when there is nothing to do, with 2 when a cluster differs from
its file (steps are due, or something holds them), and with 1 on an error.`,
		Example: "  quorate plan clusters/\n  quorate plan --repo https://git.example.com/etcd.git --branch main --path clusters -o json",
		RunE: func(cmd *cobra.Command, paths []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), paths)
		},
	}
	f.repository.add(cmd)
	f.kube.add(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func (f *planFlags) run(ctx context.Context, out io.Writer, paths []string) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	set, commit, err := f.read(ctx, paths)
	if err != nil {
		return err
	}
	plans, err := f.planAll(ctx, wishes(set, commit, nil))
	if err != nil {
		return err
	}
	return f.print(out, set, plans)
}

// read reads the files from where the command line says.
func (f *planFlags) read(ctx context.Context, paths []string) (schema.Set, string, error) {
	switch {
	case len(paths) > 0 && f.repository.config.URL != "":
		return schema.Set{}, "", errors.New("give either paths or --repo, not both")
	case len(paths) > 0:
		set, err := readPaths(ctx, paths)
		return set, "", err
	case f.repository.config.URL == "":
		return schema.Set{}, "", errors.New("say what to plan: paths, or --repo with a Git repository")
	}
	repository, err := sources.New(f.repository.config)
	if err != nil {
		return schema.Set{}, "", err
	}
	s, err := repository.Fetch(ctx)
	if err != nil {
		return schema.Set{}, "", err
	}
	return parse(s), s.Commit, nil
}

// clusterPlan is the plan of one cluster, as it is printed.
type clusterPlan struct {
	Cluster string    `json:"cluster"`
	Version string    `json:"version,omitempty"`
	Plan    plan.Plan `json:"-"`
	// The parts of the plan, for scripts.
	Hold     *holdJSON  `json:"hold,omitempty"`
	Steps    []stepJSON `json:"steps"`
	Warnings []string   `json:"warnings,omitempty"`
}

type holdJSON struct {
	Kind    string `json:"kind"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

type stepJSON struct {
	Action     string `json:"action"`
	Reason     string `json:"reason"`
	Disruptive bool   `json:"disruptive"`
}

// planAll looks at every cluster.
func (f *planFlags) planAll(ctx context.Context, clusters []reconciler.Cluster) ([]clusterPlan, error) {
	if f.kube.options.Render.GuardImage == "" {
		// Which image the guard has does not matter for what would be done.
		f.kube.options.Render.GuardImage = "quorate"
	}
	kube, err := f.kube.connect()
	if err != nil {
		return nil, err
	}
	if err := reachable(ctx, kube); err != nil {
		return nil, err
	}
	r := reconciler.New(kube, reconciler.NewClients(), record.NewFakeRecorder(0),
		reconciler.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler), f.kube.options)
	if err := r.Start(ctx); err != nil {
		return nil, err
	}
	var plans []clusterPlan
	for _, c := range clusters {
		p, err := r.Plan(ctx, c)
		if err != nil {
			return nil, err
		}
		plans = append(plans, describePlan(c, p))
	}
	return plans, nil
}

func describePlan(c reconciler.Cluster, p plan.Plan) clusterPlan {
	out := clusterPlan{Cluster: c.Key(), Version: c.Spec.Version, Plan: p, Steps: []stepJSON{}, Warnings: p.Warnings}
	if h := p.Hold; h != nil {
		out.Hold = &holdJSON{string(h.Kind), h.Rule, h.Message, h.Do}
	}
	for _, s := range p.Steps {
		out.Steps = append(out.Steps, stepJSON{s.Action.String(), s.Reason, s.Action.Disruptive()})
	}
	return out
}

// print prints the plans, and returns the exit status.
func (f *planFlags) print(out io.Writer, set schema.Set, plans []clusterPlan) error {
	changes := false
	for _, p := range plans {
		changes = changes || !p.Plan.Idle()
	}
	switch f.output {
	case "json":
		if err := printJSON(out, plans); err != nil {
			return err
		}
	case "text":
		for _, p := range set.Problems {
			_, _ = fmt.Fprintln(out, p)
		}
		for _, p := range plans {
			_, _ = fmt.Fprintf(out, "%s\n%s", p.Cluster, indent(p.Plan.Text()))
		}
	}
	if _, failed := countProblems(set.Problems); failed > 0 {
		return exitError(1)
	}
	if changes {
		return exitError(2)
	}
	return nil
}
