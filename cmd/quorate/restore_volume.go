package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/compression"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/restore"
)

// newRestoreVolume is what the Job of a recovery, a restore or a drill runs. It is
// hidden, since it is internal.
func newRestoreVolume() *cobra.Command {
	var r restore.Request
	var b storedBackup
	var accepted string
	cmd := &cobra.Command{
		Use: "restore-volume", Hidden: true, Args: cobra.NoArgs,
		Short: "Prepare the data directory of a recovered cluster's first member",
		Long: `restore-volume prepares the data directory of the first member of a recovered
cluster, from the volume itself or from a backup: the one that --offer names, or the
environment variable ` + jobs.BackupURLEnv + ` by an http or https URL. What was on the volume
is kept beside it. A download that breaks off or stalls continues where it was, and one
whose URL has expired with the next URL in --offer.

It is internal: run by the Jobs that quorate run creates.`,
		Example: `  quorate restore-volume --volume /var/lib/etcd --member orders-1 --peer-url https://orders-1:2380 \
    --former-token orders-1f2e --token orders-3d4c`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Volume == "" || r.Member == "" || r.PeerURL == "" || r.Token == "" {
				return errors.New("--volume, --member, --peer-url and --token are needed")
			}
			b.url = os.Getenv(jobs.BackupURLEnv)
			if b.url != "" || b.offer != "" {
				b.limits, b.log = restorePatience(), cmd.ErrOrStderr()
				b.ca = os.Getenv(jobs.BackupCAEnv)
				b.identity, b.encrypted = os.LookupEnv(jobs.BackupIdentityEnv)
				r.Fetch = func(path string) error { return b.fetch(cmd.Context(), path) }
			}
			r.AcceptHashMismatch = accepted != "" && accepted == b.sum
			wait := roomWait
			if r.Trial {
				wait = 0 // its room is the node's, which nobody enlarges
			}
			err := awaitRoom(cmd.Context(), wait, func() error { return restore.Run(r, zap.NewNop()) })
			if status := restoreStatus(err, r.Trial); status != 0 {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "quorate:", err)
				return cli.ExitError(status)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the volume is that of %s of the recovered cluster\n", r.Member)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Volume, "volume", "", "directory of the member's volume")
	f.StringVar(&r.Member, "member", "", "name of the member")
	f.StringVar(&r.PeerURL, "peer-url", "", "where the member's peers find it")
	f.StringVar(&r.Former, "former-token", "", "token of the lost cluster; without one the volume must be empty")
	f.StringVar(&r.Token, "token", "", "token of the recovered or restored cluster")
	f.Int64Var(&r.AtLeast, "at-least", 0, "revision that the data must have reached")
	f.Int64Var(&r.Above, "above", 0, "highest revision that is known of the clusters that had this name before: the new one begins above it")
	f.Uint32Var(&r.Keys.Hash, "hash", 0, "etcd's hash of the keys in the backup")
	f.Int64Var(&r.Keys.Revision, "hash-revision", 0, "revision up to which they were hashed; 0 compares nothing")
	f.Int64Var(&r.Keys.CompactRevision, "compact-revision", 0, "revision up to which history was compacted then")
	f.StringVar(&accepted, "accept-hash-mismatch", "", "sha256 of the backup that is restored although its keys have another hash")
	f.BoolVar(&r.Trial, "trial", false, "leave revisions as they were, and switch authentication off: for a copy that is looked at and thrown away")
	f.StringVar(&b.offer, "offer", "", "directory with the keys of the Secret that offers the backup: url and ca.crt, or object")
	f.StringVar(&b.credentials, "credentials", "", "directory with the credentials of the store of an object, one file for each key of a Secret; default the environment")
	f.StringVar(&b.sum, "sha256", "", "sha256 of the backup in hexadecimal")
	f.Int64Var(&b.size, "size", 0, "size of the backup in bytes, as it is stored")
	f.Int64Var(&r.Size, "snapshot-size", 0, "size of the snapshot in it in bytes, for which the volume must have room; 0 asks for none")
	f.StringVar(&b.compression, "compression", "", "how the backup is compressed")
	return cmd
}

// restoreStatus is the exit status for what quorate must tell apart, else 0. A drill
// condemns an unfit backup in any case; a person may accept another hash of its keys in a
// restore.
func restoreStatus(err error, trial bool) int {
	switch {
	case errors.Is(err, restore.ErrNoRoom) && !trial:
		return jobs.ExitNoRoom
	case errors.Is(err, restore.ErrHashMismatch) && !trial:
		return jobs.ExitHashMismatch
	case errors.Is(err, errOtherBytes) && trial:
		return jobs.ExitOtherBytes
	case errors.Is(err, restore.ErrUnfit):
		return jobs.ExitUnfit
	}
	return 0
}

// roomWait is how long a restore waits for room before the next pod tries: a volume may
// be growing.
const roomWait = 2 * time.Minute

// awaitRoom tries again while the volume has no room.
func awaitRoom(ctx context.Context, most time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		err := try()
		if !errors.Is(err, restore.ErrNoRoom) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(2 * time.Second):
		}
	}
}

// storedBackup is a backup that was verified, and how it is read.
type storedBackup struct {
	// offer is the directory of a mounted Secret that says where it is, url and ca the
	// same for who has none, and credentials the directory of one that opens its store.
	offer, credentials string
	url, ca, sum       string
	size               int64
	identity           string
	encrypted          bool
	compression        string
	// limits bound the fetching, whose troubles are logged.
	limits patience
	log    io.Writer
}

// write writes the snapshot in the stored object, which it reads to its end.
func (b storedBackup) write(f io.Writer, stored io.Reader) error {
	plain, err := b.snapshot(stored)
	if err == nil {
		_, err = io.Copy(f, plain)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, stored)
	}
	return err
}

// snapshot reads the snapshot in the stored object.
func (b storedBackup) snapshot(stored io.Reader) (io.Reader, error) {
	if b.encrypted {
		var err error
		if stored, err = backup.Decrypt(stored, b.identity); err != nil {
			return nil, err
		}
	}
	return compression.Decompress(stored, b.compression)
}
