// Package status is quorate status: how clusters, backups and restores are, from the
// daemon, or from what it has written beside them.
package status

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// showFlags are the flags of quorate status.
type showFlags struct {
	daemon    daemonFlags
	branches  branchFlags
	namespace string
	kind      string
	output    string
	watch     bool
}

// exitNotReady is the exit status when something that was shown is not what Git says.
const exitNotReady cli.ExitError = 2

// Command is quorate status. The agent is what the API server logs, and git are the flags that
// name a repository.
func Command(agent string, git Git) *cobra.Command {
	f := &showFlags{daemon: daemonFlags{agent: agent}, branches: branchFlags{git: git}}
	cmd := &cobra.Command{
		Use:   "status [NAMESPACE/NAME]",
		Short: "Show how clusters, backups and restores are, and why",
		Long: `status shows what quorate knows: of all clusters in a table, or of one in detail, with its
members, its drift, what holds it and what to do, the plan and the backups.

It reads the status from the daemon, through the API server of the Kubernetes cluster or at
--server. If no daemon answers, it shows the status that the last one wrote into the Kubernetes
cluster, and says how old that is. It changes nothing.

With --all it shows the clusters of several Kubernetes clusters that follow one repository:
it reads the status branches at --repo, which their daemons write with --status=branch. Each
daemon has its own branch, whose name begins with --status-branch.

Exit status: 0 if everything that it shows is Ready, 2 if something is not, 1 on an error.
With --watch it runs until it is interrupted, and shows each change as the daemon reports
it: in place on a terminal, otherwise as a new text or document. Without a
daemon it polls every two seconds.`,
		Example: `  quorate status                      # all clusters
  quorate status shop/orders          # one of them, in detail
  quorate status shop/orders --watch  # an upgrade, live
  quorate status --kind schedule -n shop -o wide
  quorate status --all --repo https://git.example.com/etcd.git`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	f.daemon.add(cmd)
	f.branches.add(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.namespace, "namespace", "n", "", "only objects of this namespace; default all")
	cli.ChoiceFlag(cmd, &f.kind, "kind", "only objects of this kind", kindNames()...)
	flags.BoolVarP(&f.watch, "watch", "w", false, "keep showing what changes, until interrupted")
	cli.OutputFlag(cmd, &f.output, cli.Text, cli.Wide, cli.JSON, cli.YAML)
	return cmd
}

// allKinds is the value of --kind for objects of all kinds.
const allKinds = "all"

// kindNames are the values of --kind, the first of which is the default.
func kindNames() (names []string) {
	for _, kind := range schema.Kinds() {
		names = append(names, naming.StatusKind(kind))
	}
	return append(names, allKinds)
}

// kindOf is the kind of objects that a value of --kind names, "" for all.
func kindOf(name string) string {
	for _, kind := range schema.Kinds() {
		if naming.StatusKind(kind) == name {
			return kind
		}
	}
	return ""
}

func (f *showFlags) run(ctx context.Context, out, errs io.Writer, args []string) error {
	ask := query{Namespace: f.namespace, Kind: kindOf(f.kind)}
	if len(args) == 1 {
		namespace, name, found := strings.Cut(args[0], "/")
		if !found {
			namespace, name = f.namespace, args[0]
		}
		if namespace == "" || name == "" || strings.Contains(name, "/") || f.namespace != "" && namespace != f.namespace {
			return fmt.Errorf("%q names no object: give NAMESPACE/NAME, such as shop/orders, or -n NAMESPACE NAME", args[0])
		}
		ask = query{Namespace: namespace, Name: name, Kind: ask.Kind}
	}
	from, err := f.source()
	if err != nil {
		return err
	}
	if f.watch {
		return watch(ctx, out, errs, f, from, ask)
	}
	a, err := from.ask(ctx, ask)
	if err != nil {
		return err
	}
	if a.note != "" {
		_, _ = fmt.Fprintln(errs, "quorate:", a.note)
	}
	text, err := f.render(a, ask)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	if slices.ContainsFunc(a.items, notReady) || !a.whole {
		return exitNotReady
	}
	return nil
}

// source is what is asked.
func (f *showFlags) source() (source, error) {
	if err := f.branches.check(f); err != nil {
		return nil, err
	}
	if f.branches.all {
		return f.branches.source()
	}
	return f.daemon.source()
}

func notReady(s item) bool {
	phase, _ := s.Phase()
	return phase != schema.PhaseReady
}

// render is an answer in the format that was asked for.
func (f *showFlags) render(a answer, ask query) (string, error) {
	if ask.Name != "" && len(a.items) == 0 {
		return "", fmt.Errorf("no %s %s/%s is known: check its name, and that its file is in Git; quorate status lists what there is", nounOf(f.kind), ask.Namespace, ask.Name)
	}
	// An empty list is [], not null.
	var value any = map[string]any{"items": append([]item{}, a.items...), "whole": a.whole}
	if ask.Name != "" && len(a.items) == 1 {
		value = a.items[0]
	}
	var b strings.Builder
	switch f.output {
	case cli.JSON:
		err := cli.PrintJSON(&b, value)
		return b.String(), err
	case cli.YAML:
		text, err := yaml.Marshal(value)
		return string(text), err
	}
	if ask.Name != "" {
		for i, s := range a.items {
			if i > 0 {
				b.WriteString("\n")
			}
			if f.branches.all {
				fmt.Fprintf(&b, "On branch %s, written %s\n", cli.Shown(s.Branch), s.Written)
			}
			printDetail(&b, s.Status)
		}
		return b.String(), nil
	}
	printTables(&b, a.items, f.output == cli.Wide, f.branches.all)
	if len(a.items) == 0 {
		fmt.Fprintf(&b, "no %s is known\n", nounOf(f.kind))
	}
	return b.String(), nil
}

// nounOf is what is looked for, in words.
func nounOf(kind string) string {
	if kind == allKinds {
		return "object"
	}
	return kind
}
