package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/state"
)

// newSnapshot is about backups at an object URL.
func newSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "List, verify and adopt backups in an object store",
		Long: `snapshot lists and verifies backups in an object store, without Kubernetes. Only adopt
writes: the manifest of a snapshot that another tool has taken.

An object URL is s3://bucket/key, gs://bucket/key, azblob://container/key or
file:///dir/key, with the same parameters as in a file, such as ?region=eu-west-1.`,
		Example: `  quorate snapshot list 's3://backups/shop/?region=eu-west-1'
  quorate snapshot verify file:///backups/orders/20261120T020000Z-1f2e3d.db
  quorate snapshot adopt --namespace shop --name orders file:///backups/orders-last.db`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newSnapshotList(), newSnapshotVerify(), newSnapshotAdopt())
	return cmd
}

// storeFlags say how a store is reached.
type storeFlags struct {
	credentials, ca string
}

func (f *storeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.credentials, "credentials", "", "directory with the store's credentials, one file for each key of a Secret, as a pod mounts it; default the environment, as the store's own tools read it")
	flags.StringVar(&f.ca, "ca", "", "file with certificates of CAs to trust besides the system's, in PEM")
}

// store reads what the flags name.
func (f *storeFlags) store() (st backup.Store, err error) {
	st.Drivers = clouds.Drivers()
	if f.ca != "" {
		if st.CA, err = os.ReadFile(f.ca); err != nil {
			return st, fmt.Errorf("read --ca: %w", err)
		}
	}
	if f.credentials == "" {
		return st, nil
	}
	if st.Credentials, err = readSecret(f.credentials); err != nil {
		return st, fmt.Errorf("read --credentials: %w", err)
	}
	return st, nil
}

// readSecret reads the data of a Secret as a pod mounts it.
func readSecret(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		// The kubelet keeps its own directory and links beside the keys.
		if info, err := os.Stat(path); strings.HasPrefix(e.Name(), ".") || err == nil && info.IsDir() {
			continue
		}
		if data[e.Name()], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func newSnapshotList() *cobra.Command {
	var from storeFlags
	var format string
	cmd := &cobra.Command{
		Use:   "list URL",
		Short: "List the backups below an object URL",
		Long: `list reads the manifests of the backups below the URL's directory, newest first, by
time and then by revision. An object without a manifest is no backup.

VERIFIED says what is known of a backup: "read back", which holds for each that has a
manifest; "restored", where a restore drill has found it good; or "bad".

SIGNATURE names the key that has signed a manifest, and is checked against it. Whether
that key is one to trust, only a comparison with the fingerprint of one's own tells.`,
		Example: "  quorate snapshot list 's3://backups/shop/orders/?region=eu-west-1' -o json",
		Args:    oneURL,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := from.store()
			if err != nil {
				return err
			}
			list, err := store.List(cmd.Context(), args[0])
			var broken *backup.BrokenManifests
			if err != nil && !errors.As(err, &broken) {
				return err
			}
			if perr := printBackups(cmd.OutOrStdout(), format, list); perr != nil {
				return perr
			}
			return err
		},
	}
	from.add(cmd)
	cli.OutputFlag(cmd, &format, cli.Text, cli.JSON)
	return cmd
}

// oneURL wants one argument.
func oneURL(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one object URL, and %d were given; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}

// printBackups prints what there is.
func printBackups(out io.Writer, format string, list []backup.Manifest) error {
	if format == cli.JSON {
		all := make([]shownBackup, len(list))
		for i, m := range list {
			all[i] = shown(m)
		}
		return cli.PrintJSON(out, all)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "there are no backups")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "TIME\tCLUSTER\tVERSION\tREVISION\tSIZE\tVERIFIED\tSIGNATURE\tREASON\tOBJECT")
	for _, m := range list {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", m.Time.UTC().Format(time.RFC3339), cli.Shown(m.Namespace+"/"+m.Name),
			cli.Shown(m.EtcdVersion), m.Revision, state.SizeText(m.Size), verifiedWord(m), cli.Shown(signatureWord(m)), cli.Shown(m.Reason), cli.Shown(m.Object))
	}
	return table.Flush()
}

// verifiedWord is what is known of a backup.
func verifiedWord(m backup.Manifest) string {
	switch m.Drill.Result {
	case "":
		return "read back"
	case backup.DrillPassed:
		return "restored"
	}
	return "bad"
}

// sizeText is how much is stored, and of how much.
func sizeText(m backup.Manifest) string {
	if m.Compression == "" {
		return state.SizeText(m.Size)
	}
	return fmt.Sprintf("%s, %s of %s", state.SizeText(m.Size), m.Compression, state.SizeText(m.SnapshotSize))
}

func newSnapshotVerify() *cobra.Command {
	var from storeFlags
	var identity, format string
	cmd := &cobra.Command{
		Use:   "verify URL",
		Short: "Verify a backup, every byte of it",
		Long: `verify reads the manifest at the URL and the whole object, and recomputes its size and
sha256. The snapshot in it is then checked against the checksum that etcd appended. An
encrypted one is decrypted on the way with --identity; without, only what is stored is
checked, and the output says so. Where the manifest is signed, it must match its signature;
whether the key that it names is one to trust, only a comparison with one's own tells.

Exit status: 0 for a good backup, 1 for any other, with the reason.`,
		Example: "  quorate snapshot verify 's3://backups/shop/orders/1f2e3d.db?region=eu-west-1' --identity age-key.txt",
		Args:    oneURL,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := from.store()
			if err != nil {
				return err
			}
			if identity != "" {
				text, err := os.ReadFile(identity)
				if err != nil {
					return fmt.Errorf("read --identity: %w", err)
				}
				store.Identity = string(text)
			}
			m, err := store.Verify(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if perr := printVerified(cmd.OutOrStdout(), format, m, !m.Encrypted || identity != ""); perr != nil {
				return perr
			}
			if m.Forged {
				return fmt.Errorf("verify backup %s: the manifest does not match its signature: it was changed after it was signed; look at who else writes to the store, and rely on another backup", m.Object)
			}
			if verifiedWord(m) == "bad" {
				return fmt.Errorf("verify backup %s: a restore drill has found it bad: %s; rely on another backup", m.Object, cli.Shown(m.Drill.Result))
			}
			return nil
		},
	}
	from.add(cmd)
	cli.OutputFlag(cmd, &format, cli.Text, cli.JSON)
	cmd.Flags().StringVar(&identity, "identity", "", "file with age's private key, as age-keygen writes it")
	return cmd
}

// printVerified prints the result; opened is true if the snapshot itself was read.
func printVerified(out io.Writer, format string, m backup.Manifest, opened bool) error {
	if format == cli.JSON {
		return cli.PrintJSON(out, struct {
			// SnapshotChecked is true if the snapshot was read, and not only what is stored.
			SnapshotChecked bool        `json:"snapshotChecked"`
			Manifest        shownBackup `json:"manifest"`
		}{opened, shown(m)})
	}
	checked := "size, sha256 and the checksum that etcd appended are right"
	switch {
	case !opened:
		checked = "it is encrypted: size and sha256 of what is stored are right, and what is in it was not looked at; give --identity to do so"
	case m.Encrypted:
		checked = "it was decrypted; " + checked
	}
	if verifiedWord(m) == "bad" {
		checked += "; but a restore drill has found it bad: " + m.Drill.Result
	}
	for _, line := range []string{
		fmt.Sprintf("%s: %s", m.Object, checked),
		fmt.Sprintf("  cluster %s/%s (%s), etcd %s, revision %d, %s, taken %s: %s",
			m.Namespace, m.Name, m.ClusterID, m.EtcdVersion, m.Revision, sizeText(m), m.Time.UTC().Format(time.RFC3339), m.Reason),
		"  sha256 " + m.SHA256,
		"  " + signatureWord(m),
	} {
		if _, err := fmt.Fprintln(out, cli.Shown(line)); err != nil {
			return err
		}
	}
	return nil
}
