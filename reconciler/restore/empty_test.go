package restore

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/state"
)

// intoNothing is the request of a restore into a new cluster, from a backup as etcd
// sends it.
func intoNothing(t *testing.T) Request {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source")
	database(t, source, nil)
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	r := request(t.TempDir())
	r.Former = ""
	r.Fetch = func(path string) error { return os.WriteFile(path, append(text, sum[:]...), 0o600) }
	return r
}

// 117, 121, I8: an empty volume becomes that of a new cluster's first member, with
// nothing beside the data; a second run, and one after a crash, change nothing.
func TestABackupBecomesANewCluster(t *testing.T) {
	for name, cut := range map[string]func(Request){
		"at once":          func(Request) {},
		"after the marker": func(r Request) { _, _ = r.handover().Begin() },
		"in the middle of the download": func(r Request) {
			_, _ = r.handover().Begin()
			_ = os.WriteFile(r.handover().PreparedDir()+".download", []byte("half of"), 0o600)
		},
		"after the data is prepared": func(r Request) { _, _ = r.handover().Begin(); _ = r.prepare(r.handover(), zap.NewNop()) },
	} {
		t.Run(name, func(t *testing.T) {
			r := intoNothing(t)
			cut(r)
			for range 2 {
				if err := Run(r, zap.NewNop()); err != nil {
					t.Fatal(err)
				}
			}
			last, reached, err := revisions(filepath.Join(r.Volume, "data", "member", "snap", "db"))
			if err != nil || last != state.RevisionBump+11 || reached != last {
				t.Errorf("the database is at %d and %d: %v", last, reached, err)
			}
			if names := namesIn(t, r.Volume); strings.Join(names, " ") != "data quorate.json" {
				t.Errorf("the volume has %v", names)
			}
		})
	}
}

// I5, I7: a volume that holds anything is left as it is.
func TestABackupOnAVolumeThatIsNotEmpty(t *testing.T) {
	for name, put := range map[string]func(dir string) error{
		"somebody's file": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), nil, 0o600) },
		"another cluster's member": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "quorate.json"), []byte(`{"token":"other","member":"orders-1"}`), 0o600)
		},
		"data without an owner": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "data", "member"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			r := intoNothing(t)
			if err := put(r.Volume); err != nil {
				t.Fatal(err)
			}
			before := namesIn(t, r.Volume)
			if err := Run(r, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "nothing on it is touched") {
				t.Errorf("%v", err)
			}
			if after := namesIn(t, r.Volume); strings.Join(after, " ") != strings.Join(before, " ") {
				t.Errorf("the volume has %v", after)
			}
		})
	}
	r := intoNothing(t)
	r.Fetch = nil
	if err := Run(r, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "none is named") {
		t.Errorf("%v", err)
	}
}

// I8: a restore that cannot end says so, and tidies nothing away.
func TestABackupThatCannotTakeItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		dir, want string
	}{
		"the new data was lost before it had its place":         {"data-new-empty", "the new data is gone"},
		"data came to the empty volume, and is not thrown away": {"data", "tidy up the volume"},
	} {
		t.Run(name, func(t *testing.T) {
			r := intoNothing(t)
			if _, err := r.handover().Begin(); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(r.Volume, c.dir, "member"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := Run(r, zap.NewNop()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if _, err := os.Stat(filepath.Join(r.Volume, "data-new-empty", "member")); err != nil {
				t.Error(err)
			}
		})
	}
}
