// Command quorate keeps etcd clusters on Kubernetes the way Git says.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/schema/release"
)

// version is set when a release is built.
var version = ""

// exitError ends the program with a status other than 1, after everything that
// is to be said has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var status exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	_, _ = fmt.Fprintln(stderr, "quorate:", err)
	if isUsage(err) {
		_, _ = fmt.Fprintln(stderr, "quorate --help lists the commands and flags")
	}
	return 1
}

// isUsage says whether cobra did not understand the command line.
func isUsage(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown ")
}

// newRoot is the command without a verb.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "quorate",
		Short: "Keep etcd clusters on Kubernetes the way Git says",
		Long: `quorate reads declarative etcd files from a Git repository, compares them with
the live clusters, plans safe ordered steps, and carries them out one at a time.`,
		Example: `  quorate validate clusters/                                # check files
  quorate plan --offline --base origin/main clusters/       # what a branch would do
  quorate run --repo https://git.example.com/etcd.git       # do it`,
		SilenceUsage: true, SilenceErrors: true,
		Version: buildVersion(),
	}
	root.SetFlagErrorFunc(explainFlag)
	root.AddCommand(newRun(), newPlan(), newValidate(), newConvert(), newSchema(), newVersion())
	return root
}

// explainFlag says which flag was meant.
func explainFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := ""
	if near := release.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		hint = ", did you mean --" + near + "?"
	}
	return fmt.Errorf("%w%s; see %s --help", err, hint, cmd.CommandPath())
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print quorate's version", Long: "version prints the release of quorate, or the commit that it was built from.",
		Example: "  quorate version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "quorate", buildVersion())
			return err
		},
	}
}

// buildVersion is the release, or the commit that the binary was built from.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "commit " + s.Value
		}
	}
	return "development"
}
