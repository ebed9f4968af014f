// Command quorate reconciles etcd clusters on Kubernetes to the state declared in Git.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/docs"
	"github.com/quorate/quorate/cmd/quorate/internal/status"
	"github.com/quorate/quorate/schema/release"
	"github.com/quorate/quorate/sources"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(executeAs(ctx, filepath.Base(os.Args[0]), os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return executeAs(ctx, programName, args, stdout, stderr)
}

// executeAs does so as a program of that name.
func executeAs(ctx context.Context, program string, args []string, stdout, stderr io.Writer) int {
	root := newRoot(program)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var status cli.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	_, _ = fmt.Fprintln(stderr, "quorate:", explainCommand(err.Error()))
	return 1
}

// explainCommand makes one line of cobra's errors about unknown commands and unexpected
// arguments:
//
//	unknown command "validat" for "quorate"
//
//	Did you mean this?
//		validate
func explainCommand(text string) string {
	unknown, isUnknown := strings.CutPrefix(text, "unknown command ")
	if !isUnknown {
		return text
	}
	unknown, near, found := strings.Cut(unknown, "\n\nDid you mean this?\n")
	if found {
		return "unknown command " + unknown + ", did you mean " + strings.Join(strings.Fields(near), " or ") + "?"
	}
	given, command, _ := strings.Cut(unknown, " for ")
	if command = strings.Trim(command, `"`); command != programName && command != pluginName {
		return fmt.Sprintf("%s takes no argument %s: leave it out; see %s --help", command, given, command)
	}
	return text + "; " + command + " --help lists the commands"
}

// What quorate is called, by itself and as a plugin of kubectl, which runs the program
// kubectl-quorate for kubectl quorate.
const (
	programName = "quorate"
	pluginName  = "kubectl quorate"
)

// asPlugin lets all help speak of kubectl quorate.
func asPlugin(cmd *cobra.Command) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "  "+programName+" ", "  "+pluginName+" ")
	for _, sub := range cmd.Commands() {
		asPlugin(sub)
	}
}

// newRoot returns the command without a verb, as the program of that name.
func newRoot(program string) *cobra.Command {
	root := &cobra.Command{
		Use:   "quorate",
		Short: "Reconcile etcd clusters on Kubernetes to the state declared in Git",
		Long: `quorate reads declarative etcd files from a Git repository, compares them with
the live clusters, plans safe ordered steps, and applies them one at a time.`,
		Example: `  quorate validate clusters/                                # check files
  quorate plan --offline --base origin/main clusters/       # what a branch would do
  quorate run --repo https://git.example.com/etcd.git       # do it`,
		SilenceUsage: true, SilenceErrors: true,
		Version: buildVersion(),
	}
	root.SetFlagErrorFunc(explainFlag)
	root.SetUsageFunc(printUsage)
	root.AddCommand(newRun(), newPlan(), newStatus(), newExplain(), newValidate(), newConvert(), newSchema(), newSnapshot(), newDocs(), newVersion(), newRestoreVolume(), newCompareTrial(), newTakeBackup())
	if strings.HasPrefix(program, "kubectl-quorate") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginName}
		asPlugin(root)
	}
	return root
}

// newDocs prints the documentation, and knows what it was built from.
func newDocs() *cobra.Command {
	b := thisBuild()
	return docs.Command(docs.Build{Version: b.Version, Time: b.CommitTime})
}

// explainFlag adds which flag may be meant, or which values it takes.
func explainFlag(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%s; see %s --help", flagHint(cmd, err), cmd.CommandPath())
}

func flagHint(cmd *cobra.Command, err error) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near := release.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Sprintf("%v, did you mean --%s?", err, near)
		}
		return err.Error()
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	flag := invalid.GetFlag()
	// -output is -o with the value utput.
	if flag.Shorthand != "" && slices.Contains(names, flag.Shorthand+invalid.GetValue()) {
		return fmt.Sprintf("-%s%s is -%s and a value: did you mean --%s?", flag.Shorthand, invalid.GetValue(), flag.Shorthand, flag.Name)
	}
	if want := wanted(flag.Value.Type()); want != "" {
		return fmt.Sprintf("invalid --%s %q: want %s", flag.Name, invalid.GetValue(), want)
	}
	return err.Error()
}

// wanted describes the values of a type of flag; "" for one that does so itself.
func wanted(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 30s"
	case "int":
		return "a whole number"
	}
	return ""
}

// newStatus keeps client-go from writing between the lines of a text that is watched: what
// matters of a port that is forwarded no more, quorate says itself.
func newStatus() *cobra.Command {
	repository := &repositoryFlags{}
	cmd := status.Command(userAgent(), status.Git{
		Add:   repository.addAccess,
		Named: func() bool { return repository.config.URL != "" },
		Open: func(branch string) (*sources.Repository, error) {
			repository.config.Branch = branch
			return repository.open(nil)
		},
	})
	cmd.PreRun = func(*cobra.Command, []string) { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) }
	return cmd
}
