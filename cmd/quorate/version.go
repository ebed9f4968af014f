package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// version is set where quorate is built outside of a Git checkout, which says it otherwise:
// go build -ldflags='-X main.version=v0.1.0'.
var version = ""

// build is what a binary was built from, and for what.
type build struct {
	// Version is the release's tag, else Go's pseudo-version of the commit, with +dirty where the
	// checkout had changes; "development" where nothing is known.
	Version string `json:"version"`
	// Commit and CommitTime (RFC 3339) are of the commit; empty where there was no checkout.
	Commit     string `json:"commit,omitempty"`
	CommitTime string `json:"commitTime,omitempty"`
	// Modified is true if the checkout had changes that are in no commit.
	Modified  bool   `json:"modified"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// newVersion prints what this quorate is.
func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "version", Short: "Print quorate's version",
		Long:    "version prints the release of quorate, the commit that it was built from and its date,\nthe version of Go, and the platform.",
		Example: "  quorate version\n  quorate version -o json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if output == cli.JSON {
				return cli.PrintJSON(cmd.OutOrStdout(), b)
			}
			return b.print(cmd.OutOrStdout())
		},
	}
	cli.OutputFlag(cmd, &output, cli.Text, cli.JSON)
	return cmd
}

func (b build) print(out io.Writer) error {
	commit := cmp.Or(b.Commit, "unknown")
	if b.Modified {
		commit += ", with changes"
	}
	_, err := fmt.Fprintf(out, "quorate %s\ncommit:   %s\ndate:     %s\ngo:       %s\nplatform: %s\n",
		b.Version, commit, cmp.Or(b.CommitTime, "unknown"), b.GoVersion, b.Platform)
	return err
}

// thisBuild reads what Go has stamped into this binary.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return buildOf(info, version)
}

// buildOf reads what Go stamps; a version that was given stands.
func buildOf(info *debug.BuildInfo, given string) build {
	b := build{Version: cmp.Or(given, info.Main.Version), GoVersion: info.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "development"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.CommitTime = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// buildVersion is the release, or Go's name of the commit that the binary was built from.
func buildVersion() string { return thisBuild().Version }
