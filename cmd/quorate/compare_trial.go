package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/jobs"
)

// newCompareTrial is what the pod of a restore drill runs beside its etcd. It is
// hidden, since it is internal.
func newCompareTrial() *cobra.Command {
	var b backup.Verified
	var address, result string
	var limit time.Duration
	cmd := &cobra.Command{
		Use: "compare-trial", Hidden: true, Args: cobra.NoArgs,
		Short: "Compare a restored etcd with the backup that it began with",
		Long: `compare-trial waits until the throw-away etcd of a restore drill answers, compares
its revision, the number of its keys and their hash with what was noted when the
backup was taken, and writes what it finds as JSON.

It is internal: run by the Jobs that quorate run creates.`,
		Example: "  quorate compare-trial --at-least 7 --hash 99 --hash-revision 6",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			found, err := jobs.Compare(ctx, address, b)
			if err != nil {
				return err
			}
			text, err := json.Marshal(found)
			if err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
			if err := os.WriteFile(result, text, 0o600); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&address, "address", "127.0.0.1:2379", "where etcd listens")
	f.StringVar(&result, "result", jobs.TerminationLog, "file to write the result to")
	f.DurationVar(&limit, "limit", 30*time.Minute, "how long to wait for etcd")
	f.Int64Var(&b.Revision, "at-least", 0, "revision that etcd must have reached")
	f.Uint32Var(&b.Hash, "hash", 0, "etcd's hash of the keys in the backup")
	f.Int64Var(&b.HashRevision, "hash-revision", 0, "revision up to which they were hashed; 0 compares nothing")
	f.Int64Var(&b.Keys, "keys", 0, "number of keys at that revision; 0 compares nothing")
	f.Int64Var(&b.CompactRevision, "compact-revision", 0, "revision up to which history was compacted then")
	return cmd
}
