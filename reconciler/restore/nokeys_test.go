package restore

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/state"
)

// 263, I8: a cluster without a single key is at revision 1, which no key tells of: its
// backup passes its drill, and is restored.
func TestABackupWithoutKeysIsRestored(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		server := etcdtest.Start(t, version, 1, false, "--unsafe-no-fsync").Members[0]
		conn, err := etcd.Dial(etcd.Endpoint{Member: server.Name, Host: server.Host, Address: server.Address})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		said, err := conn.HashKV(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := conn.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken, err := io.ReadAll(sent)
		if err != nil {
			t.Fatal(err)
		}
		for name, trial := range map[string]bool{"a drill": true, "a restore": false} {
			r := request(t.TempDir())
			r.Former, r.Trial, r.AtLeast = "", trial, said.Revision
			r.Keys = KeyHash{Hash: said.Sum, Revision: said.Revision, CompactRevision: said.Compacted}
			r.Fetch = func(path string) error { return os.WriteFile(path, taken, 0o600) }
			if err := Run(r, zap.NewNop()); err != nil {
				t.Errorf("%s of revision %d: %v", name, said.Revision, err)
				continue
			}
			m, err := Measure(filepath.Join(r.Volume, "data", "member", "snap", "db"))
			want := map[bool]int64{true: said.Revision, false: state.RevisionBump}[trial]
			if err != nil || m.Revision < want || m.Keys != 0 {
				t.Errorf("%s has made %+v: %v", name, m, err)
			}
		}
	})
}
