package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/test/lab"
)

// contents is what a backup has besides keys.
type contents struct{ auth, alarm bool }

// TestRestoreFrom restores backups of real etcds, each with a lease, some with users
// and with a database that is full, into the same minor and into the next one, with one
// member and with three (117, 122 to 126, 128).
func TestRestoreFrom(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		replicas int
		contents
		long bool
	}{
		{"3.5.35", "3.6.16", 1, contents{auth: true, alarm: true}, false},
		{"3.4.34", "3.4.34", 1, contents{}, true},
		{"3.4.34", "3.5.35", 3, contents{auth: true}, true},
		{"3.5.35", "3.5.35", 3, contents{alarm: true}, true},
		{"3.6.16", "3.6.16", 3, contents{auth: true, alarm: true}, true},
		{"3.6.16", "3.7.3", 1, contents{}, true},
	} {
		t.Run(fmt.Sprintf("%s→%s with %d", tc.from, tc.to, tc.replicas), func(t *testing.T) {
			if tc.long {
				takesLong(t)
			}
			t.Parallel()
			w := newWorld(t, strings.ReplaceAll(fmt.Sprintf("from-%s-to-%s-%d", tc.from, tc.to, tc.replicas), ".", ""))
			s := w.backUpOther(tc.from, tc.contents)
			want := spec{version: tc.to, replicas: tc.replicas}
			w.commitFiles("Restore", map[string]string{"clusters/restore.yaml": w.restoreFile(fmt.Sprintf("{objectURL: %q}", desired.WithoutQuery(s.url)), want)})
			w.start()
			w.awaitIdle(tc.to, 2*rollLimit)
			w.expectVersion(tc.replicas, tc.to)
			w.expectRestored(s)
		})
	}
}

// source is a backup, and what it must bring back.
type source struct {
	contents
	url      string
	lease    clientv3.LeaseID
	ids      *etcdserverpb.ResponseHeader
	revision int64
}

// backUpOther fills an etcd that quorate does not manage, and backs it up.
func (w *world) backUpOther(version string, c contents) source {
	w.Helper()
	sandbox := w.cluster.Sandbox
	if sandbox == nil {
		w.Skip("only the sandbox has an etcd of every release to start")
	}
	const quota = 4 << 20
	e, err := sandbox.StartEtcd(w.Context(), version, filepath.Join(w.TempDir(), "etcd"), fmt.Sprintf("--quota-backend-bytes=%d", quota))
	w.must(err)
	defer e.Close()
	client, err := e.Dial("", "")
	w.must(err)
	defer func() { _ = client.Close() }()
	for n := range 20 {
		_, err := client.Put(w.Context(), fmt.Sprintf("key/%d", n), fmt.Sprint(n))
		w.must(err)
	}
	lease, err := client.Grant(w.Context(), 3600)
	w.must(err)
	_, err = client.Put(w.Context(), "leased", "1", clientv3.WithLease(lease.ID))
	w.must(err)
	if c.alarm {
		w.fillDatabase(client)
	}
	s := source{contents: c, lease: lease.ID, url: shared.store.ObjectURL(w.namespace + "/1.db")}
	if c.auth {
		s.ids = w.backUpWithUsers(e, client, s.url)
	} else {
		w.must(shared.store.UseCredentials())
		storeBackup(w.T, client, s.url, backup.Manifest{})
		now, err := client.Get(w.Context(), "leased")
		w.must(err)
		s.ids = now.Header
	}
	s.revision = s.ids.Revision
	return s
}

// backUpWithUsers switches authentication on, and backs up as the user root.
func (w *world) backUpWithUsers(e *lab.EtcdServer, client *clientv3.Client, url string) *etcdserverpb.ResponseHeader {
	w.Helper()
	for _, user := range []string{"root", "shop"} {
		_, err := client.UserAdd(w.Context(), user, user+"-password")
		w.must(err)
		_, err = client.RoleAdd(w.Context(), user)
		w.must(err)
		_, err = client.UserGrantRole(w.Context(), user, user)
		w.must(err)
	}
	_, err := client.RoleGrantPermission(w.Context(), "shop", "key/", "key0", clientv3.PermissionType(clientv3.PermRead))
	w.must(err)
	_, err = client.AuthEnable(w.Context())
	w.must(err)
	root, err := e.Dial("root", "root-password")
	w.must(err)
	defer func() { _ = root.Close() }()
	w.must(shared.store.UseCredentials())
	storeBackup(w.T, root, url, backup.Manifest{})
	now, err := root.Get(w.Context(), "leased")
	w.must(err)
	return now.Header
}

// expectRestored wants everything of the backup in a cluster that is another one.
func (w *world) expectRestored(s source) {
	w.Helper()
	rec := w.record()
	if rec.Restored == nil || rec.Restored.At.IsZero() {
		w.Errorf("the record is %+v", rec)
	}
	w.awaitService()
	// The certificate of quorate's own Secret is that of root.
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	keys, err := client.Get(w.Context(), "key/", clientv3.WithPrefix())
	w.must(err)
	if len(keys.Kvs) != 20 {
		w.Errorf("%d keys of 20 are back", len(keys.Kvs))
	}

	// 122, 123: other IDs, and later revisions.
	members, err := client.MemberList(w.Context())
	w.must(err)
	for _, m := range members.Members {
		if m.ID == s.ids.MemberId {
			w.Errorf("%s has the ID of the member that gave the backup", m.Name)
		}
	}
	if h := keys.Header; h.ClusterId == s.ids.ClusterId || h.Revision < s.revision+state.RevisionBump {
		w.Errorf("cluster %x at revision %d, after cluster %x at %d", h.ClusterId, h.Revision, s.ids.ClusterId, s.revision)
	}

	// 124: the lease holds its key, and takes it along.
	left, err := client.TimeToLive(w.Context(), s.lease, clientv3.WithAttachedKeys())
	w.must(err)
	if left.GrantedTTL != 3600 || left.TTL <= 0 || len(left.Keys) != 1 {
		w.Errorf("the lease is %+v", left)
	}
	_, err = client.Revoke(w.Context(), s.lease)
	w.must(err)
	if gone, err := client.Get(w.Context(), "leased"); err != nil || len(gone.Kvs) > 0 {
		w.Errorf("a key has outlived its lease: %v, %v", gone, err)
	}

	// 126: the alarm is over, and there is room.
	alarms, err := client.AlarmList(w.Context())
	w.must(err)
	if len(alarms.Alarms) > 0 {
		w.Errorf("alarms: %v", alarms.Alarms)
	}
	_, err = client.Put(w.Context(), "new", "1")
	w.must(err)
	w.expectUsers(client, s.auth)
}

// expectUsers wants authentication to be on with the users of the backup, or off.
func (w *world) expectUsers(client *clientv3.Client, auth bool) {
	w.Helper()
	users, err := client.UserList(w.Context())
	w.must(err)
	if !auth {
		if len(users.Users) > 0 {
			w.Errorf("users: %v", users.Users)
		}
		return
	}
	// 125: a read-only user stays read-only.
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	defer cancel()
	shop, err := w.cluster.DialAs(ctx, w.namespace, name, "shop", "shop-password")
	w.must(err)
	defer func() { _ = shop.Close() }()
	if answer, err := shop.Get(ctx, "key/1"); err != nil || len(answer.Kvs) != 1 {
		w.Errorf("shop reads %v, %v", answer, err)
	}
	if _, err := shop.Put(ctx, "key/1", "2"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		w.Errorf("shop may write: %v", err)
	}
}
