package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/backup"
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
cluster, from the volume itself or from the backup that the environment variable
` + jobs.BackupURLEnv + ` names by an http or https URL. What was on the volume is kept beside it.

It is internal: run by the Jobs that quorate run creates.`,
		Example: `  quorate restore-volume --volume /var/lib/etcd --member orders-1 --peer-url https://orders-1:2380 \
    --former-token orders-1f2e --token orders-3d4c`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Volume == "" || r.Member == "" || r.PeerURL == "" || r.Token == "" {
				return errors.New("--volume, --member, --peer-url and --token are needed")
			}
			b.url = os.Getenv(jobs.BackupURLEnv)
			if b.url != "" {
				b.ca = os.Getenv(jobs.BackupCAEnv)
				b.identity, b.encrypted = os.LookupEnv(jobs.BackupIdentityEnv)
				r.Fetch = func(path string) error { return b.fetch(cmd.Context(), path) }
			}
			r.AcceptHashMismatch = accepted != "" && accepted == b.sum
			err := restore.Run(r, zap.NewNop())
			if errors.Is(err, restore.ErrUnfit) {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "quorate:", err)
				return exitError(unfitStatus(err, r.Trial))
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
	f.StringVar(&b.sum, "sha256", "", "sha256 of the backup in hexadecimal")
	f.Int64Var(&b.size, "size", 0, "size of the backup in bytes")
	return cmd
}

// unfitStatus is the exit status for a backup that is unfit. A drill condemns it all the
// same; a person may accept another hash of its keys in a restore.
func unfitStatus(err error, trial bool) int {
	if errors.Is(err, restore.ErrHashMismatch) && !trial {
		return jobs.ExitHashMismatch
	}
	return jobs.ExitUnfit
}

// storedBackup is a backup that was verified, and how it is read.
type storedBackup struct {
	url, ca, sum string
	size         int64
	identity     string
	encrypted    bool
}

// fetch stores the snapshot in a file, decrypted, and wants the object to be the one
// that was verified. Its errors repeat neither the URL nor the key.
func (b storedBackup) fetch(ctx context.Context, path string) error {
	body, err := b.get(ctx)
	if err != nil {
		return fmt.Errorf("fetch the backup: %w", err)
	}
	defer func() { _ = body.Close() }()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("fetch the backup: %w", err)
	}
	hash := sha256.New()
	stored := io.TeeReader(body, hash)
	n, err := b.write(f, stored)
	// It need not outlive a power cut: what is made of it is put on the disk, and who
	// comes after an earlier try fetches anew.
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("fetch the backup: %w", err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); n != b.size || got != b.sum {
		return fmt.Errorf("%w: it has %d bytes and sha256 %s, and the one that was verified has %d and %s", restore.ErrUnfit, n, got, b.size, b.sum)
	}
	return nil
}

// get asks for the object.
func (b storedBackup) get(ctx context.Context) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url, nil)
	if err != nil {
		return nil, errors.New("the URL is not understood")
	}
	client, err := b.client()
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		// The error repeats the URL; the wrapped one has the reason.
		return nil, errors.Unwrap(err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the store answers %s", resp.Status)
	}
	return resp.Body, nil
}

// client trusts the store's CA, too, where it has one of its own.
func (b storedBackup) client() (*http.Client, error) {
	if b.ca == "" {
		return http.DefaultClient, nil
	}
	transport := backup.Trusting([]byte(b.ca))
	if transport == nil {
		return nil, errors.New("the CA of the store has no certificate in PEM")
	}
	return &http.Client{Transport: transport}, nil
}

// write writes the snapshot in the stored object, which it reads to its end, and
// returns how long that was.
func (b storedBackup) write(f io.Writer, stored io.Reader) (int64, error) {
	counted := &counter{r: stored}
	plain := io.Reader(counted)
	if b.encrypted {
		var err error
		if plain, err = backup.Decrypt(counted, b.identity); err != nil {
			return counted.n, err
		}
	}
	_, err := io.Copy(f, plain)
	return counted.n, err
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
