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

	"github.com/quorate/quorate/reconciler/restore"
)

// backupURLEnv holds the URL of a backup. It is no flag, because who reads it
// has the data.
const backupURLEnv = "QUORATE_BACKUP_URL"

// newRestoreVolume is what the Job of a recovery or a restore runs. It is hidden, since nobody
// needs it by hand.
func newRestoreVolume() *cobra.Command {
	var r restore.Request
	var sum string
	var size int64
	cmd := &cobra.Command{
		Use: "restore-volume", Hidden: true, Args: cobra.NoArgs,
		Short: "Make a volume that of a recovered cluster's first member",
		Long: `restore-volume makes a volume that of the first member of a recovered cluster. The
data is that of the volume itself, or of the backup that the environment variable
` + backupURLEnv + ` names by an http or https URL. What was on the volume is kept beside it.

quorate run starts it in a Job of its own; nobody needs it by hand.`,
		Example: `  quorate restore-volume --volume /var/lib/etcd --member orders-1 --peer-url https://orders-1:2380 \
    --former-token orders-1f2e --token orders-3d4c`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Volume == "" || r.Member == "" || r.PeerURL == "" || r.Token == "" {
				return errors.New("--volume, --member, --peer-url and --token are needed")
			}
			if url := os.Getenv(backupURLEnv); url != "" {
				r.Fetch = func(path string) error { return fetchBackup(cmd.Context(), url, path, sum, size) }
			}
			if err := restore.Run(r, zap.NewNop()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "the volume is that of %s of the recovered cluster\n", r.Member)
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
	f.StringVar(&sum, "sha256", "", "sha256 of the backup in hexadecimal")
	f.Int64Var(&size, "size", 0, "size of the backup in bytes")
	return cmd
}

// fetchBackup stores a backup in a file, and wants it to be the one that was
// verified. Its errors do not repeat the URL.
func fetchBackup(ctx context.Context, url, path, sum string, size int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return errors.New("fetch the backup: the URL is not understood")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		// The error repeats the URL; what it wraps says why.
		return fmt.Errorf("fetch the backup: %w", errors.Unwrap(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("fetch the backup: the store answers %s", resp.Status)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("fetch the backup: %w", err)
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), resp.Body)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("fetch the backup: %w", err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); n != size || got != sum {
		return fmt.Errorf("the backup has %d bytes and sha256 %s, and the one that was verified has %d and %s", n, got, size, sum)
	}
	return nil
}
