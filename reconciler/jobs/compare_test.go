package jobs_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/etcd/memberstest"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/restore"
)

// 107: the look at a real etcd that began with a backup.
func TestLookAtTrial(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, false)
	for i := range 5 {
		s.MustPut(fmt.Sprint("key-", i), "value")
	}
	m := memberstest.Round(t, s, true).Members[0]
	good := backup.Verified{Revision: m.Revision, Hash: m.Hash, HashRevision: m.HashRevision, CompactRevision: m.CompactRevision, Keys: m.Keys}
	for name, c := range map[string]struct {
		change func(*backup.Verified)
		want   string
	}{
		"the same":                   {func(*backup.Verified) {}, fmt.Sprintf("passed: 5 keys at %d, hash %d", m.Revision, m.Hash)},
		"nobody has hashed":          {func(b *backup.Verified) { b.HashRevision = 0 }, fmt.Sprintf("passed: 5 keys at %d, hash 0", m.Revision)},
		"compacted otherwise":        {func(b *backup.Verified) { b.CompactRevision = 3 }, fmt.Sprintf("passed: 5 keys at %d, hash 0", m.Revision)},
		"a key is missing":           {func(b *backup.Verified) { b.Keys++ }, fmt.Sprintf("bad: it has 5 keys at revision %d, and etcd had 6 when the backup was taken", m.Revision)},
		"missing in another history": {func(b *backup.Verified) { b.Keys++; b.CompactRevision = 3 }, "bad: it has 5 keys"},
		"nobody has counted":         {func(b *backup.Verified) { b.Keys = 0 }, fmt.Sprintf("passed: 5 keys at %d, hash %d", m.Revision, m.Hash)},
		"another hash":               {func(b *backup.Verified) { b.Hash++ }, "bad: the hash of its keys at revision"},
		"an older revision":          {func(b *backup.Verified) { b.Revision++ }, "bad: it is at revision"},
	} {
		b := good
		c.change(&b)
		found, err := jobs.Compare(t.Context(), s.Members[0].Address, b)
		if got := (jobs.Judgement{Over: true, Result: found}).Words(); err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// 107, 116, 165: the snapshot of a real cluster with authentication is restored on trial
// as a drill's pod does it, by each release: the same steps, the same flags, and nobody
// needs a password. That history was compacted, and keys were written and deleted since,
// changes nothing.
func TestARealSnapshotIsRestoredOnTrial(t *testing.T) {
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		s := etcdtest.Start(t, version, 1, false)
		for i := range 7 {
			s.MustPut(fmt.Sprint("key-", i), "value")
		}
		compactAndChange(t, s.Members[0].Client())
		b, path := guardedSnapshot(t, s)
		dir, peer, client := t.TempDir(), backuptest.FreeAddress(t), backuptest.FreeAddress(t)
		err := restore.Run(restore.Request{
			Volume: dir, Member: jobs.DrillMember, PeerURL: "http://" + peer, Token: "t", AtLeast: b.Revision, Trial: true,
			Keys:  restore.KeyHash{Hash: b.Hash, Revision: b.HashRevision, CompactRevision: b.CompactRevision},
			Fetch: func(to string) error { return os.Link(path, to) },
		}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		args := jobs.DrillEtcd("etcd", "t", jobs.DrillURL(naming.PeerPort), resource.Quantity{}).Args
		place := strings.NewReplacer(naming.VolumePath, dir, jobs.DrillURL(naming.PeerPort), "http://"+peer,
			jobs.DrillURL(naming.ClientPort), "http://"+client)
		for i := range args {
			args[i] = place.Replace(args[i])
		}
		etcd := exec.Command(s.Path, args...)
		etcd.Env = []string{}
		if err := etcd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = etcd.Process.Kill(); _ = etcd.Wait() })
		found, err := jobs.Compare(t.Context(), client, b)
		if err != nil || found.Problem != "" || found.Keys != 5 || found.Hash != b.Hash || found.Revision < b.Revision {
			t.Errorf("%+v, %v, want %+v", found, err, b)
		}
	})
}

// compactAndChange drops history and changes what it has left of some keys: one is
// written again, and two are deleted, one of them just before.
func compactAndChange(t *testing.T, c *clientv3.Client) {
	t.Helper()
	removed, err := c.Delete(t.Context(), "key-1")
	if err == nil {
		_, err = c.Compact(t.Context(), removed.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = c.Put(t.Context(), "key-2", "again")
	}
	if err == nil {
		_, err = c.Delete(t.Context(), "key-3")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// guardedSnapshot switches authentication on, and takes a snapshot into a file.
func guardedSnapshot(t *testing.T, s *etcdtest.Servers) (backup.Verified, string) {
	t.Helper()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, port, err := net.SplitHostPort(s.Members[0].Address)
	must(nil, err)
	config := clientv3.Config{Endpoints: []string{"http://127.0.0.1:" + port}, Logger: zap.NewNop(), DialTimeout: 5 * time.Second}
	open, err := clientv3.New(config)
	must(nil, err)
	defer func() { _ = open.Close() }()
	must(open.RoleAdd(t.Context(), "root"))
	must(open.UserAdd(t.Context(), "root", "pw"))
	must(open.UserGrantRole(t.Context(), "root", "root"))
	must(open.AuthEnable(t.Context()))
	config.Username, config.Password = "root", "pw"
	root, err := clientv3.New(config)
	must(nil, err)
	defer func() { _ = root.Close() }()
	at, err := root.Get(t.Context(), "key-0")
	must(nil, err)
	hash, err := root.HashKV(t.Context(), config.Endpoints[0], at.Header.Revision)
	must(nil, err)
	stream, err := root.Snapshot(t.Context())
	must(nil, err)
	path := filepath.Join(t.TempDir(), "snapshot")
	f, err := os.Create(path)
	must(nil, err)
	must(io.Copy(f, stream))
	must(nil, f.Close())
	return backup.Verified{Revision: at.Header.Revision, Hash: hash.Hash, HashRevision: at.Header.Revision, CompactRevision: hash.CompactRevision}, path
}

// 107: what nobody has counted is not compared.
func TestTheTrialIsToldHowManyKeysThereWere(t *testing.T) {
	b := backup.Verified{Revision: 7, Hash: 99, HashRevision: 6, CompactRevision: 2, Keys: 3}
	if args := strings.Join(jobs.DrillCompare("quorate", b).Args, " "); args != "compare-trial --at-least=7 --hash=99 --hash-revision=6 --compact-revision=2 --keys=3" {
		t.Error(args)
	}
	b.Keys = 0
	if args := strings.Join(jobs.DrillCompare("quorate", b).Args, " "); strings.Contains(args, "--keys") {
		t.Error(args)
	}
}
