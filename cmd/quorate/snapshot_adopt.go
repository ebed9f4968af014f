package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/restore"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// adoption is what only a person knows of a snapshot that another tool has taken.
type adoption struct {
	from                                   storeFlags
	namespace, name, etcdVersion, at, form string
	signingKey                             string
}

// newSnapshotAdopt makes backups of the snapshots of other tools.
func newSnapshotAdopt() *cobra.Command {
	var a adoption
	cmd := &cobra.Command{
		Use:   "adopt URL",
		Short: "Let an EtcdRestore take a snapshot of another tool",
		Long: `adopt reads the whole snapshot at the URL, checks it, measures what is in it, and writes
a manifest beside it. From then on it is a backup, and an EtcdRestore takes it by
spec.source.objectURL. The snapshot itself is never changed, and no manifest overwritten.

It takes what etcd sends: "etcdctl snapshot save", coreos/etcd-operator,
improbable-eng/etcd-cluster-operator, and the full snapshots of etcd-druid. What is
compressed or encrypted must be unpacked before. A copy of a member's file
(member/snap/db) has no checksum and is refused; so are etcd-druid's delta snapshots.

The snapshot is copied into the directory for temporary files (TMPDIR), and the copy
is removed. The minor of etcd is read from the snapshot; to note the patch as well, or
where the snapshot does not say it, give --etcd-version. No hash of the keys is known of
such a backup, so that a restore compares its sha256 and etcd's checksum alone.

With --signing-key-file the manifest is signed. Without, a daemon that trusts keys takes the
backup where the file accepts it by its sha256, in spec.source.acceptUnsigned.`,
		Example: "  quorate snapshot adopt --namespace shop --name orders 's3://backups/orders-last.db?region=eu-west-1'",
		Args:    oneURL,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(time.Now()); err != nil {
				return err
			}
			m, err := a.adopt(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printAdopted(cmd.OutOrStdout(), a.form, m)
		},
	}
	a.from.add(cmd)
	cli.OutputFlag(cmd, &a.form, cli.Text, cli.JSON)
	flags := cmd.Flags()
	flags.StringVar(&a.namespace, "namespace", "", "namespace of the cluster that the snapshot stands for (required)")
	flags.StringVar(&a.name, "name", "", "name of that cluster (required)")
	flags.StringVar(&a.etcdVersion, "etcd-version", "", "release of the etcd that sent it, such as 3.4.34; default the minor that is noted in it")
	flags.StringVar(&a.at, "time", "", "when it was taken, such as 2026-11-20T02:00:00Z; default when the object was stored")
	flags.StringVar(&a.signingKey, "signing-key-file", "", "file with the Ed25519 private key in PEM that signs the manifest, such as that of --backup-signing-key-file of quorate run; default none, so that where keys are trusted a restore must accept it by its sha256")
	return cmd
}

// check rejects flags that are missing or make no sense.
func (a *adoption) check(now time.Time) error {
	for _, f := range []struct{ flag, value string }{{"--namespace", a.namespace}, {"--name", a.name}} {
		switch {
		case f.value == "":
			return fmt.Errorf("%s is required: the namespace and the name of the cluster that the snapshot stands for", f.flag)
		case len(validation.IsDNS1123Label(f.value)) > 0:
			return fmt.Errorf("%s %q is no name in Kubernetes: use lower-case letters, digits and -", f.flag, f.value)
		}
	}
	if _, err := release.Parse(a.etcdVersion); a.etcdVersion != "" && err != nil {
		return fmt.Errorf("--etcd-version: %w", err)
	}
	switch taken, err := time.Parse(time.RFC3339, a.at); {
	case a.at == "":
		return nil
	case err != nil:
		return fmt.Errorf("--time %q is no time: write it as 2026-11-20T02:00:00Z", a.at)
	case taken.After(now):
		return fmt.Errorf("--time %s is in the future: give the time at which the snapshot was taken", a.at)
	}
	return nil
}

// adopt measures a copy of the snapshot, and writes its manifest.
func (a *adoption) adopt(ctx context.Context, url string) (m backup.Manifest, err error) {
	store, err := a.from.store()
	if err != nil {
		return m, err
	}
	if store.Key, err = readSigningKey("--signing-key-file", a.signingKey); err != nil {
		return m, err
	}
	file, err := os.CreateTemp("", "quorate-adopt-*")
	if err != nil {
		return m, fmt.Errorf("adopt snapshot: %w; name another directory for temporary files with TMPDIR", err)
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	defer func() { _ = file.Close() }()
	return store.Adopt(ctx, url, file, func(m *backup.Manifest) error {
		found, err := restore.Measure(file.Name())
		if err != nil {
			return err
		}
		return a.describe(m, found)
	})
}

// describe puts what was measured, and what the flags say, into the manifest.
func (a *adoption) describe(m *backup.Manifest, found restore.Measured) (err error) {
	m.Namespace, m.Name = a.namespace, a.name
	m.Revision, m.Keys, m.StorageVersion = found.Revision, found.Keys, found.StorageVersion
	if a.at != "" {
		if m.Time, err = time.Parse(time.RFC3339, a.at); err != nil {
			return err
		}
	}
	m.EtcdVersion = cmp.Or(a.etcdVersion, found.Release())
	if m.EtcdVersion == "" {
		return errors.New("which etcd it is from is not noted in it: give the release with --etcd-version")
	}
	noted, err := release.Parse(cmp.Or(found.Release(), m.EtcdVersion))
	if err != nil {
		return err
	}
	if given, _ := release.Parse(m.EtcdVersion); given.Line() != noted.Line() {
		return fmt.Errorf("--etcd-version is %s, and what is in it is of etcd %s: leave the flag out, or correct the URL", m.EtcdVersion, noted.Line())
	}
	return nil
}

// printAdopted prints the new backup.
func printAdopted(out io.Writer, format string, m backup.Manifest) error {
	if format == cli.JSON {
		return cli.PrintJSON(out, shown(m))
	}
	more := ""
	if m.Signature == nil {
		more = fmt.Sprintf(" Where the daemon trusts keys, accept it\nthere without a signature: spec.source.acceptUnsigned: %q.", m.SHA256)
	}
	_, err := fmt.Fprintf(out, `%s: adopted; the checksum that etcd appended is right
  cluster %s/%s, etcd %s, revision %d, keys %d, %s, taken %s
  sha256 %s
  %s
To restore it, give its URL to an EtcdRestore as spec.source.objectURL.%s
`,
		m.Object, m.Namespace, m.Name, m.EtcdVersion, m.Revision, m.Keys, state.SizeText(m.Size), m.Time.UTC().Format(time.RFC3339), m.SHA256, signatureWord(m), more)
	return err
}
