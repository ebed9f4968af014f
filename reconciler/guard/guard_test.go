package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// guardWorld writes a record file and a volume.
func guardWorld(t *testing.T, record string, files map[string]string) (recordPath, volume string) {
	t.Helper()
	dir := t.TempDir()
	recordPath, volume = filepath.Join(dir, "record.json"), filepath.Join(dir, "volume")
	if record != "" {
		writeTestFile(t, recordPath, record)
	}
	if err := os.MkdirAll(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		writeTestFile(t, filepath.Join(volume, name), text)
	}
	return recordPath, volume
}

// writeTestFile writes a file with its directories; the text "/" makes an empty
// directory.
func writeTestFile(t *testing.T, path, text string) {
	t.Helper()
	dir := filepath.Dir(path)
	if text == "/" {
		dir = path
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir == path {
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGuard(t *testing.T) {
	const (
		walFile   = "data/member/wal/0000000000000000-0000000000000000.wal"
		dir       = "/"
		ownMarker = `{"token":"orders-1f2e","member":"orders-1"}`
		unformed  = `{"formatVersion":1,"token":"orders-1f2e","clusterID":"","members":{}}`
		formed    = `{"formatVersion":1,"token":"orders-1f2e","clusterID":"cdf8","members":{"orders-0":"8e","orders-1":"91","orders-2":"fd"}}`
	)
	type volume = map[string]string
	for _, test := range []struct {
		name   string
		record string
		files  volume
		refuse string // a part of the sentence, "" to start
	}{
		{"first start", unformed, nil, ""},
		{"first start on a fresh file system", unformed, volume{"lost+found": dir}, ""},
		{"first start after a crash while marking", unformed, volume{"quorate.json.tmp": `{"tok`}, ""},
		{"first start with an empty data directory", unformed, volume{"data": dir}, ""},
		{"restart before forming", unformed, volume{"quorate.json": ownMarker, walFile: "x"}, ""},
		{"restart before etcd wrote anything", unformed, volume{"quorate.json": ownMarker}, ""},
		{"restart", formed, volume{"quorate.json": ownMarker, walFile: "x", "lost+found": dir}, ""},
		{"restart under a newer record", strings.Replace(formed, `:1,`, `:9,"more":[1],`, 1), volume{"quorate.json": ownMarker, walFile: "x"}, ""},

		{"new volume after joining", formed, nil, "empty although this member had joined"},
		{"new file system after joining", formed, volume{"lost+found": dir}, "empty although this member had joined"},
		{"wiped data", formed, volume{"quorate.json": ownMarker}, "wiped"},
		{"wiped log", formed, volume{"quorate.json": ownMarker, "data/member/wal": dir, "data/member/snap/db": "x"}, "wiped"},
		{"data without marker", formed, volume{walFile: "x"}, "foreign data (data)"},
		{"data without marker before forming", unformed, volume{walFile: "x"}, "foreign data (data)"},
		{"somebody's files", unformed, volume{"pgdata/PG_VERSION": "17"}, "foreign data (pgdata)"},
		{"another incarnation", formed, volume{"quorate.json": `{"token":"old","member":"orders-1"}`, walFile: "x"}, "cluster token old"},
		{"another member's volume", formed, volume{"quorate.json": `{"token":"orders-1f2e","member":"orders-2"}`, walFile: "x"}, "belongs to member orders-2"},
		{"another member's volume before forming", unformed, volume{"quorate.json": `{"token":"orders-1f2e","member":"orders-2"}`}, "belongs to member orders-2"},
		{"damaged marker", formed, volume{"quorate.json": "{", walFile: "x"}, "quorate.json is damaged"},
		{"empty marker", unformed, volume{"quorate.json": "{}"}, "quorate.json is damaged"},
		{"not a member", strings.Replace(formed, `"orders-1":"91",`, "", 1), volume{"quorate.json": ownMarker, walFile: "x"}, "not a member"},
		{"not a member yet", strings.Replace(formed, `"orders-1":"91",`, "", 1), nil, "not a member"},
		{"no record", "", nil, "record cannot be read"},
		{"empty record", "{}", nil, "record is damaged"},
		{"record without ID field", `{"formatVersion":1,"token":"t","members":{}}`, nil, "no field clusterID"},
		{"record without members field", `{"formatVersion":1,"token":"t","clusterID":""}`, nil, "no field members"},
		{"record that lost its members", `{"formatVersion":1,"token":"t","clusterID":"cdf8","members":{}}`, nil, "0 members"},
	} {
		t.Run(test.name, func(t *testing.T) {
			recordPath, volumePath := guardWorld(t, test.record, test.files)
			// The second time stands for the pod's next start.
			for range 2 {
				err := Check(recordPath, volumePath, "orders-1")
				if test.refuse == "" && err != nil {
					t.Fatalf("refused: %v", err)
				}
				if test.refuse != "" && (err == nil || !strings.Contains(err.Error(), test.refuse) || !strings.Contains(err.Error(), "orders-1")) {
					t.Fatalf("got %v, want a refusal about orders-1 with %q", err, test.refuse)
				}
			}
			checkMarker(t, volumePath, test.files["quorate.json"], test.refuse == "")
		})
	}
}

// checkMarker checks that a start leaves the marker and a refusal leaves the
// volume as it was.
func checkMarker(t *testing.T, volume, before string, started bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(volume, "quorate.json"))
	if !started {
		if string(text) != before {
			t.Errorf("a refusal changed the marker from %q to %q", before, text)
		}
		return
	}
	if err != nil || strings.TrimSpace(string(text)) != `{"token":"orders-1f2e","member":"orders-1"}` {
		t.Errorf("marker %q, %v", text, err)
	}
}

// TestGuardTakesUnreadableForUnknown: what cannot be examined is not empty.
func TestGuardTakesUnreadableForUnknown(t *testing.T) {
	const unformed = `{"formatVersion":1,"token":"t","clusterID":"","members":{}}`
	recordPath, volume := guardWorld(t, unformed, map[string]string{"data": "a file in place of the directory"})
	if err := Check(recordPath, volume, "orders-1"); err == nil {
		t.Error("started although the data directory cannot be listed")
	}
	if err := Check(recordPath, filepath.Join(volume, "absent"), "orders-1"); err == nil {
		t.Error("started without a volume")
	}
}
