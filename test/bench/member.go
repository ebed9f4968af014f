package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/test/lab"
)

// member is a cluster of one member with data in it, and the stores that it is backed
// up to.
type member struct {
	tools
	etcd   *lab.EtcdServer
	client *clientv3.Client
	store  *lab.S3Server
	// dir is for files of this run.
	dir string
	// about is what quorate knows of a backup before it takes it, id the member's.
	about backup.Manifest
	id    string
	// taken counts the backups, so that each has its own key.
	taken int
}

// startMember starts etcd and the S3 server, and fills etcd. The caller closes it,
// also after an error.
func startMember(ctx context.Context, t tools, dir string, size int64) (*member, error) {
	m := &member{tools: t, dir: dir}
	for _, name := range []string{"kept", "volume"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return m, err
		}
	}
	var err error
	// Few entries of raft in memory: those of 1 GiB would be 1 GiB.
	m.etcd, err = t.sandbox.StartEtcd(ctx, benchEtcd, filepath.Join(dir, "etcd"), "--log-level=error",
		"--quota-backend-bytes="+strconv.Itoa(4<<30), "--snapshot-count=500", "--snapshot-catchup-entries=100")
	if err != nil {
		return m, err
	}
	if m.client, err = m.etcd.Dial("", ""); err != nil {
		return m, err
	}
	if m.store, err = lab.StartS3Server(t.versitygw, "127.0.0.1"); err != nil {
		return m, err
	}
	if err := fill(ctx, m.client, size); err != nil {
		return m, err
	}
	return m, m.describe(ctx)
}

// describe asks the member what the daemon asks before a backup.
func (m *member) describe(ctx context.Context) error {
	status, err := m.client.Status(ctx, m.etcd.URL)
	if err != nil {
		return fmt.Errorf("status of the member: %w", err)
	}
	hash, err := m.client.HashKV(ctx, m.etcd.URL, status.Header.Revision)
	if err != nil {
		return fmt.Errorf("hash of the member's keys: %w", err)
	}
	m.id = strconv.FormatUint(status.Header.MemberId, 16)
	m.about = backup.Manifest{
		Namespace: "shop", Name: "orders", Member: m.etcd.Name, ClusterID: strconv.FormatUint(status.Header.ClusterId, 16),
		EtcdVersion: status.Version, Revision: status.Header.Revision, Time: time.Now(), Reason: "bench",
		Hash: hash.Hash, HashRevision: status.Header.Revision, CompactRevision: hash.CompactRevision,
	}
	return nil
}

// close ends the servers; the caller removes the directory.
func (m *member) close() {
	if m.client != nil {
		_ = m.client.Close()
	}
	if m.etcd != nil && m.etcd.Server != nil {
		m.etcd.Close()
	}
	if m.store != nil {
		m.store.Close()
	}
}

// command is a program with the credentials of the S3 server in its environment.
func (m *member) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = os.Environ()
	for name, value := range m.store.Credentials() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// key is one for one more backup.
func (m *member) key() string {
	m.taken++
	return fmt.Sprintf("%d.db", m.taken)
}

// path is that of a file of this run.
func (m *member) path(name ...string) string {
	return filepath.Join(append([]string{m.dir}, name...)...)
}

// address of the member, as a pod has one.
func (m *member) address() string { return strings.TrimPrefix(m.etcd.URL, "http://") }
