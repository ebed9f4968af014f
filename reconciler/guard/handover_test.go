package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// put writes a file, whose directory need not exist, on a volume.
func put(t *testing.T, volume string, path ...string) {
	t.Helper()
	file := filepath.Join(append([]string{volume}, path...)...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Join(path, "/")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// handed is the volume of orders-1, whose cluster has gone from old to new.
func handed(volume string, prepared bool) Handover {
	return Handover{Volume: volume, Member: "orders-1", Former: "old", Token: "new", Prepared: prepared}
}

// The table of Handover. A case is what a crash may have left, and each ends in
// the same: the old data kept, the new in its place or none, and the new marker.
func TestHandoverGoesOnFromEveryState(t *testing.T) {
	for _, c := range []struct {
		name                         string
		marker                       string
		data, kept, ready, prepared  bool
		wantData, wantKept, wantFail string
	}{
		{name: "a survivor", marker: "old", data: true, ready: true, prepared: true, wantData: "prepared-new", wantKept: "data"},
		{name: "with the old data aside", marker: "old", kept: true, ready: true, prepared: true, wantData: "prepared-new", wantKept: "data-old"},
		{name: "with the new data in place", marker: "old", data: true, kept: true, prepared: true, wantData: "data", wantKept: "data-old"},
		{name: "done", marker: "new", data: true, kept: true, prepared: true, wantData: "data", wantKept: "data-old"},
		{name: "wiped before", marker: "old", ready: true, prepared: true, wantData: "prepared-new", wantKept: "empty"},
		{name: "an empty volume", ready: true, prepared: true, wantFail: "foreign data (prepared-new)"},
		{name: "nothing prepared", marker: "old", data: true, prepared: true, wantFail: "no new data was prepared"},
		{name: "the prepared data is gone", marker: "old", kept: true, prepared: true, wantFail: "the new data is gone"},
		{name: "a new member", marker: "old", data: true, wantKept: "data"},
		{name: "a new member, cut off", marker: "old", kept: true, wantKept: "data-old"},
		{name: "a new member, wiped before", marker: "old", wantKept: "empty"},
		{name: "a new member on an empty volume", wantKept: "empty"},
		{name: "a new member that is done", marker: "new", data: true, kept: true, wantData: "data", wantKept: "data-old"},
		{name: "a new member beside data of both", marker: "old", data: true, kept: true, wantFail: "data of both incarnations"},
		{name: "data of both", marker: "old", data: true, kept: true, ready: true, prepared: true, wantFail: "data of both incarnations"},
		{name: "another token", marker: "older", data: true, wantFail: "belongs to member orders-1 of cluster token older"},
		{name: "no owner", data: true, wantFail: "foreign data (data)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			volume := t.TempDir()
			if c.marker != "" {
				if err := writeMarker(volume, volumeMarker{Token: c.marker, Member: "orders-1"}); err != nil {
					t.Fatal(err)
				}
			}
			for name, there := range map[string]bool{"data": c.data, "data-old": c.kept, "prepared-new": c.ready} {
				if there {
					put(t, volume, name, "member", "snap", "db")
				}
			}
			for range 2 {
				err := handed(volume, c.prepared).Finish()
				if c.wantFail != "" {
					if err == nil || !strings.Contains(err.Error(), c.wantFail) {
						t.Fatalf("want %q, have %v", c.wantFail, err)
					}
					for name, there := range map[string]bool{"data": c.data, "data-old": c.kept, "prepared-new": c.ready} {
						if there {
							contents(t, volume, name, name)
						}
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				m, err := readMarker(volume)
				if err != nil || m == nil || *m != (volumeMarker{Token: "new", Member: "orders-1"}) {
					t.Errorf("the marker is %v: %v", m, err)
				}
				contents(t, volume, "data", c.wantData)
				contents(t, volume, "data-old", c.wantKept)
			}
		})
	}
}

// A volume that cannot be examined is not handed over.
func TestHandoverTouchesNothingUnreadable(t *testing.T) {
	for name, there := range map[string]string{"the marker": MarkerFile, "the data": DataDir} {
		volume := t.TempDir()
		writeTestFile(t, filepath.Join(volume, there), map[string]string{MarkerFile: "/", DataDir: "a file"}[there])
		if _, err := handed(volume, false).Begin(); err == nil || !strings.Contains(err.Error(), "the volume of orders-1 cannot be examined") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where nobody can report whether new data is there, the old data stays where it is.
func TestHandoverSetsNothingAsideForAnUnknown(t *testing.T) {
	volume := t.TempDir()
	if err := writeMarker(volume, volumeMarker{Token: "old", Member: "orders-1"}); err != nil {
		t.Fatal(err)
	}
	put(t, volume, "data", "member", "snap", "db")
	h := handed(volume, false)
	h.Token = strings.Repeat("x", 300) // longer than a name can be
	if err := h.Finish(); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Error(err)
	}
	contents(t, volume, "data", "data")
	contents(t, volume, "data-old", "")
}

// New data takes the place of a directory that etcd has made and not written to.
func TestHandoverReplacesAnEmptyDirectory(t *testing.T) {
	volume := t.TempDir()
	if err := writeMarker(volume, volumeMarker{Token: "old", Member: "orders-1"}); err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, filepath.Join(volume, DataDir), "/")
	put(t, volume, "prepared-new", "member", "snap", "db")
	if err := handed(volume, true).Finish(); err != nil {
		t.Fatal(err)
	}
	contents(t, volume, "data", "prepared-new")
	contents(t, volume, "data-old", "empty")
}

// The volume of another member of the same cluster is not handed over.
func TestHandoverIsOfTheVeryMember(t *testing.T) {
	volume := t.TempDir()
	if err := writeMarker(volume, volumeMarker{Token: "old", Member: "orders-2"}); err != nil {
		t.Fatal(err)
	}
	if err := handed(volume, false).Finish(); err == nil || !strings.Contains(err.Error(), "belongs to member orders-2 of cluster token old") {
		t.Error(err)
	}
}

// contents wants a directory to be the one that was made under a name: "" for
// no directory, "empty" for an empty one.
func contents(t *testing.T, volume, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(volume, dir, "member", "snap", "db"))
	if name == "" || name == "empty" {
		_, there := os.Stat(filepath.Join(volume, dir))
		if err == nil || (there == nil) != (name == "empty") {
			t.Errorf("%s holds %q, %v", dir, text, there)
		}
		return
	}
	if want := name + "/member/snap/db"; string(text) != want {
		t.Errorf("%s holds %q, want %q: %v", dir, text, want, err)
	}
}

// Two recoveries keep two directories.
func TestASecondHandoverKeepsTheFirst(t *testing.T) {
	volume := t.TempDir()
	if err := writeMarker(volume, volumeMarker{Token: "old", Member: "orders-1"}); err != nil {
		t.Fatal(err)
	}
	put(t, volume, "data", "member", "snap", "db")
	if err := handed(volume, false).Finish(); err != nil {
		t.Fatal(err)
	}
	put(t, volume, "data", "member", "snap", "db")
	if err := (Handover{Volume: volume, Member: "orders-1", Former: "new", Token: "newer"}).Finish(); err != nil {
		t.Fatal(err)
	}
	contents(t, volume, "data-old", "data")
	contents(t, volume, "data-new", "data")
	contents(t, volume, "data", "")
}

// A member that joins a recovered cluster begins empty, on the volume of the lost
// one: what was there is kept, however often the guard runs and wherever it dies.
func TestGuardKeepsWhatALostClusterLeft(t *testing.T) {
	record := `{"formatVersion":1,"revision":7,"token":"new","clusterID":"cdf8","members":{"orders-0":"8e"},` +
		`"joining":{"member":"orders-1","id":"91"},"recovered":[{"clusterID":"aaaa","token":"old"}]}`
	recordPath, volume := guardWorld(t, record, map[string]string{"quorate.json": `{"token":"old","member":"orders-1"}`})
	put(t, volume, "data", "member", "snap", "db")
	for range 2 {
		if err := Check(recordPath, volume, "orders-1"); err != nil {
			t.Fatal(err)
		}
		contents(t, volume, "data-old", "data")
		contents(t, volume, "data", "")
		if m, err := readMarker(volume); err != nil || m == nil || m.Token != "new" || m.ID != "91" {
			t.Errorf("the marker is %+v: %v", m, err)
		}
	}
}
