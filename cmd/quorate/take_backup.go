package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/manifest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/jobs"
)

// newTakeBackup is what the Job of a backup runs, with --backup-runner=job. It is
// hidden, since it is internal.
func newTakeBackup() *cobra.Command {
	var from storeFlags
	var address, host, id, url, about, certificates, root, result string
	var https, compress bool
	var bandwidth int64
	var stall time.Duration
	var recipients []string
	cmd := &cobra.Command{
		Use: "take-backup", Hidden: true, Args: cobra.NoArgs,
		Short: "Take one backup",
		Long: `take-backup streams the database of one member to an object URL, reads back what is
stored, and writes the manifest.

It is internal: run by the Jobs that quorate run creates.`,
		Example: "  quorate take-backup --address 10.0.0.7:2379 --host orders-1.orders-peers.shop.svc --url s3://b/1.db",
		RunE: func(cmd *cobra.Command, _ []string) error {
			boundMemory()
			var m backup.Manifest
			if err := json.Unmarshal([]byte(about), &m); err != nil {
				return fmt.Errorf("read --manifest: %w", err)
			}
			store, err := from.store()
			if err != nil {
				return err
			}
			store.Recipients, store.Compress = recipients, compress
			var secret map[string][]byte
			if certificates != "" {
				if secret, err = readSecret(certificates); err != nil {
					return fmt.Errorf("read --tls: %w", err)
				}
			}
			var passwords map[string][]byte
			if root != "" {
				if passwords, err = readSecret(root); err != nil {
					return fmt.Errorf("read --root: %w", err)
				}
			}
			member := etcd.Target{
				Endpoint:  etcd.Endpoint{Member: m.Member, Host: host, Address: address},
				ClusterID: m.ClusterID, ID: id,
			}
			m, err = jobs.Take(cmd.Context(), jobs.Task{
				From: member, HTTPS: https, Secret: secret, Root: etcd.Passwords(passwords), Store: store, URL: url, Manifest: m, Bandwidth: bandwidth, Stall: stall,
			})
			if err != nil {
				return err
			}
			if err := tellWritten(result, m); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: revision %d, %d bytes, sha256 %s\n", m.Object, m.Revision, m.Size, m.SHA256)
			return err
		},
	}
	from.add(cmd)
	f := cmd.Flags()
	f.StringVar(&address, "address", "", "IP:port of the member")
	f.StringVar(&host, "host", "", "name of the member that its certificate carries")
	f.StringVar(&id, "member-id", "", "ID of the member in hexadecimal")
	f.BoolVar(&https, "https", false, "the member speaks TLS")
	f.StringVar(&certificates, "tls", "", "directory with ca.crt, tls.crt and tls.key for the member")
	f.StringVar(&root, "root", "", "directory with the passwords that user root of etcd may have")
	f.StringVar(&url, "url", "", "object URL of the backup")
	f.StringVar(&about, "manifest", "", "what the manifest says of the backup, as JSON")
	f.Int64Var(&bandwidth, "bandwidth", 0, "bytes a second that it may take; 0 for no limit")
	f.DurationVar(&stall, "stall-timeout", backup.DefaultStall, "how long nothing of it may move before it fails")
	f.StringVar(&result, "result", "", "file to write the digest of the manifest to, by which the daemon signs it; default none")
	f.BoolVar(&compress, "compress", true, "store it compressed")
	f.StringArrayVar(&recipients, "recipient", nil, "public key of age of one who can decrypt the backup; may be given several times")
	return cmd
}

// tellWritten writes which manifest was written to a file, "" for none.
func tellWritten(file string, m backup.Manifest) error {
	if file == "" {
		return nil
	}
	text, err := m.Encode()
	if err != nil {
		return fmt.Errorf("write --result: %w", err)
	}
	digest, err := manifest.Digest(text)
	if err == nil {
		err = os.WriteFile(file, []byte(digest), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write --result: %w", err)
	}
	return nil
}

// backupMemory is what this process tries to keep within. What is needed at a time is
// 20 MiB, and without a limit Go lets twice as much pile up before it collects: too close
// to the 40 MiB that are promised, also where a loaded machine collects late. With a
// limit of 32 MiB a backup to S3 took twice the CPU time and half as long again, to
// collect; with this one neither can be measured.
const backupMemory = 38 << 20

// boundMemory sets the limit, where GOMEMLIMIT sets no other.
func boundMemory() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(backupMemory)
	}
}
