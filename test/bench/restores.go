package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/state"
)

// signedFor is how long a restore may read its backup.
const signedFor = time.Hour

// restores is a restore of a backup that is in S3, and what a person does.
func (m *member) restores(ctx context.Context) ([]*way, error) {
	b, err := m.stored(ctx)
	if err != nil {
		return nil, fmt.Errorf("backup to restore: %w", err)
	}
	file, data := m.path("snapshot.db"), m.path("restored")
	get := func(ctx context.Context) *exec.Cmd {
		return m.command(ctx, m.s3copy, "get", file, m.store.ObjectURL(b.key))
	}
	plain := func(ctx context.Context) *exec.Cmd { return m.etcdutlRestore(ctx, file, data) }
	tidy := removing(file, data)
	return []*way{
		m.ownRestore(b),
		{name: "download, etcdutl snapshot restore", tidy: tidy, do: commands(get, plain)},
		{name: "download, sha256sum, etcdutl snapshot restore with the revision bumped, etcdutl hashkv", tidy: tidy, do: commands(
			get,
			func(ctx context.Context) *exec.Cmd { return m.command(ctx, "sha256sum", file) },
			func(ctx context.Context) *exec.Cmd {
				return m.etcdutlRestore(ctx, file, data, fmt.Sprintf("--bump-revision=%d", int64(state.RevisionBump)), "--mark-compacted")
			},
			// At the end, since it changes the file.
			func(ctx context.Context) *exec.Cmd { return m.command(ctx, m.etcdutl, "hashkv", file) },
		)},
	}, nil
}

// storedBackup is a backup in S3, and a URL by which it can be read without credentials.
type storedBackup struct {
	key, signed string
	manifest    backup.Manifest
}

// stored takes the backup.
func (m *member) stored(ctx context.Context) (b storedBackup, err error) {
	b.key = m.key()
	cmd, err := m.takeBackup(ctx, m.store.ObjectURL(b.key))
	if err != nil {
		return b, err
	}
	if _, err := measure(ctx, cmd); err != nil {
		return b, err
	}
	text, err := os.ReadFile(m.store.ObjectPath(b.key) + backup.ManifestSuffix)
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b.manifest); err != nil {
		return b, err
	}
	store := backup.Store{Drivers: clouds.Drivers(), Credentials: map[string][]byte{"access-key-id": []byte(m.store.AccessKey), "secret-access-key": []byte(m.store.SecretKey)}}
	b.signed, err = store.Sign(ctx, m.store.ObjectURL(b.key), signedFor)
	return b, err
}

// ownRestore is what the Job of a restore runs.
func (m *member) ownRestore(b storedBackup) *way {
	volume := m.path("volume")
	return &way{
		name: "quorate: fetched, sha256 and hash of the keys compared, restored with the revision bumped, fsynced",
		do: func(ctx context.Context) (usage, error) {
			cmd := m.command(ctx, m.quorate, "restore-volume", "--volume="+volume, "--member="+m.about.Member, "--peer-url="+m.etcd.PeerURL, "--token=restored",
				"--sha256="+b.manifest.SHA256, fmt.Sprintf("--size=%d", b.manifest.Size),
				fmt.Sprintf("--snapshot-size=%d", b.manifest.SnapshotSize), "--compression="+b.manifest.Compression, fmt.Sprintf("--at-least=%d", b.manifest.Revision),
				fmt.Sprintf("--hash=%d", b.manifest.Hash), fmt.Sprintf("--hash-revision=%d", b.manifest.HashRevision), fmt.Sprintf("--compact-revision=%d", b.manifest.CompactRevision))
			cmd.Env = append(cmd.Env, jobs.BackupURLEnv+"="+b.signed)
			return measure(ctx, cmd)
		},
		tidy: func() error {
			if err := os.RemoveAll(volume); err != nil {
				return err
			}
			return os.Mkdir(volume, 0o755)
		},
	}
}

// etcdutlRestore makes a data directory of a snapshot.
func (m *member) etcdutlRestore(ctx context.Context, file, data string, args ...string) *exec.Cmd {
	return m.command(ctx, m.etcdutl, append([]string{
		"snapshot", "restore", file, "--data-dir=" + data, "--name=" + m.about.Member,
		"--initial-cluster=" + m.about.Member + "=" + m.etcd.PeerURL, "--initial-advertise-peer-urls=" + m.etcd.PeerURL,
	}, args...)...)
}
