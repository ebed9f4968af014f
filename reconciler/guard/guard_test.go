package guard

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
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

// logOf is how a file of a write-ahead log begins: the one of a member and a
// cluster.
func logOf(member, cluster uint64) string {
	metadata := binary.AppendUvarint([]byte{1 << 3}, member)
	metadata = binary.AppendUvarint(append(metadata, 2<<3), cluster)
	return logRecords(0, logRecord{kind: crcRecord}, logRecord{kind: metadataRecord, data: metadata}) + strings.Repeat("\x00", 100)
}

// logTo is a log of cluster cdf8 that goes on to a term and an index: an entry beyond that was replaced by the last one,
// and what a crash has left of another one follows.
func logTo(member, term, index uint64) string {
	begins := logOf(member, 0xcdf8)
	begins = begins[:len(begins)-100]
	torn := logRecords(0, entryOf(term, index+2, 600))
	return begins + logRecords(0,
		logRecord{kind: snapshotRecord, data: message(0, 0)}, entryOf(term, index+1, 100000), entryOf(term, index, 3),
		logRecord{kind: stateRecord, data: message(term, 5, index)}, logRecord{kind: snapshotRecord, data: message(1, 1)},
	) + torn[:8] + strings.Repeat("\x00", 1000)
}

// message is a protobuf message of numbers in its first fields.
func message(numbers ...uint64) (text []byte) {
	for i, n := range numbers {
		text = binary.AppendUvarint(append(text, byte(i+1)<<3), n)
	}
	return text
}

// entryOf is an entry with some bytes of data.
func entryOf(term, index uint64, size int) logRecord {
	data := binary.AppendUvarint(append(message(0, term, index), 4<<3|2), uint64(size))
	return logRecord{kind: entryRecord, data: append(data, bytes.Repeat([]byte{0xa}, size)...)}
}

// logRecords encodes records as etcd does, with their checksums.
func logRecords(crc uint32, records ...logRecord) string {
	var text []byte
	for _, r := range records {
		if r.kind != crcRecord {
			crc = crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), r.data)
		}
		message := binary.AppendUvarint([]byte{1 << 3}, r.kind)
		message = binary.AppendUvarint(append(message, 2<<3), uint64(crc))
		if r.data != nil {
			message = append(binary.AppendUvarint(append(message, 3<<3|2), uint64(len(r.data))), r.data...)
		}
		length, padding := uint64(len(message)), (8-uint64(len(message))%8)%8
		if padding > 0 {
			length |= (0x80 | padding) << 56
		}
		text = binary.LittleEndian.AppendUint64(text, length)
		text = append(append(text, message...), make([]byte, padding)...)
	}
	return string(text)
}

func TestGuard(t *testing.T) {
	const (
		walFile   = "data/member/wal/0000000000000000-0000000000000000.wal"
		newerWAL  = "data/member/wal/0000000000000001-00000000000027a3.wal"
		dir       = "/"
		ownMarker = `{"token":"orders-1f2e","member":"orders-1"}`
		oldMarker = `{"token":"old","member":"orders-1"}`
		// Marked for member 91 when the record had the revision 7.
		newMarker = `{"token":"orders-1f2e","member":"orders-1","id":"91","revision":7}`
		unformed  = `{"formatVersion":1,"token":"orders-1f2e","clusterID":"","members":{}}`
		formed    = `{"formatVersion":1,"token":"orders-1f2e","clusterID":"cdf8","members":{"orders-0":"8e","orders-1":"91","orders-2":"fd"}}`
	)
	var (
		without = strings.Replace(formed, `"orders-1":"91",`, "", 1)
		with    = func(more string) string { return strings.Replace(without, `:1,`, `:1,`+more+`,`, 1) }
		joining = with(`"revision":7,"joining":{"member":"orders-1","id":"91"}`)
		// The learner is about to be added, and may have been promoted.
		begun     = with(`"revision":6,"joining":{"member":"orders-1","id":""}`)
		promoting = with(`"revision":8,"joining":{"member":"orders-1","id":"91","promoting":true}`)
		another   = with(`"revision":9,"joining":{"member":"orders-1","id":"92"}`)
		somebody  = with(`"revision":9,"joining":{"member":"orders-3","id":"92"}`)
		own       = logOf(0x91, 0xcdf8)
		// The log of member 91 went to term 4 and index 1000 at least.
		noted = strings.Replace(formed, `:1,`, `:1,"floors":{"orders-1":{"id":"91","term":4,"index":1000},"orders-2":{"id":"fd","term":9,"index":9000}},`, 1)
		// The cluster lost its quorum once, and continued under another token.
		recovered = func(record string) string {
			return strings.Replace(record, `:1,`, `:1,"recovered":[{"clusterID":"aaaa","token":"old"}],`, 1)
		}
	)
	type volume = map[string]string
	for _, test := range []struct {
		name   string
		record string
		files  volume
		code   int
		refuse string // a part of the sentence, "" to start
	}{
		{"first start", unformed, nil, 0, ""},
		{"first start on a fresh file system", unformed, volume{"lost+found": dir}, 0, ""},
		{"first start after a crash while marking", unformed, volume{"quorate.json.tmp": `{"tok`}, 0, ""},
		{"first start with an empty data directory", unformed, volume{"data": dir}, 0, ""},
		{"restart before forming", unformed, volume{"quorate.json": ownMarker, walFile: own}, 0, ""},
		{"restart under a record from before forming", unformed, volume{"quorate.json": newMarker, walFile: own}, 0, ""},
		{"restart before etcd wrote anything", unformed, volume{"quorate.json": ownMarker}, 0, ""},
		{"restart", formed, volume{"quorate.json": ownMarker, walFile: own, "lost+found": dir}, 0, ""},
		{"restart with a newer log", formed, volume{"quorate.json": ownMarker, walFile: "x", newerWAL: own}, 0, ""},
		{"restart under a newer record", strings.Replace(formed, `:1,`, `:9,"more":[1],`, 1), volume{"quorate.json": ownMarker, walFile: own}, 0, ""},
		{"restart under a record with padded IDs", strings.Replace(formed, `"91"`, `"0091"`, 1), volume{"quorate.json": ownMarker, walFile: own}, 0, ""},

		{"new volume after joining", formed, nil, 3, "empty although this member had joined"},
		{"new file system after joining", formed, volume{"lost+found": dir}, 3, "empty although this member had joined"},
		{"wiped data", formed, volume{"quorate.json": ownMarker}, 3, "wiped"},
		{"wiped data of one that joined later", formed, volume{"quorate.json": newMarker}, 3, "wiped"},
		{"wiped log", formed, volume{"quorate.json": ownMarker, "data/member/wal": dir, "data/member/snap/db": "x"}, 3, "wiped"},
		{"log without a finished file", formed, volume{"quorate.json": ownMarker, "data/member/wal/0.tmp": "\x00"}, 3, "wiped"},
		{"data without marker", formed, volume{walFile: own}, 4, "foreign data (data) and no quorate.json, and a log of member 91 of cluster cdf8, and this is cluster cdf8 of token orders-1f2e"},
		{"somebody's damaged log", formed, volume{walFile: "x"}, 4, "does not name its owner"},
		{"another incarnation's damaged log", formed, volume{"quorate.json": `{"token":"old","member":"orders-1"}`, walFile: "x"}, 4, "cluster token old, and this is member orders-1 of cluster token orders-1f2e"},
		{"data without marker before forming", unformed, volume{walFile: own}, 4, "foreign data (data)"},
		{"somebody's files", unformed, volume{"pgdata/PG_VERSION": "17"}, 4, "foreign data (pgdata)"},
		{"another incarnation", formed, volume{"quorate.json": `{"token":"old","member":"orders-1"}`, walFile: own}, 4, "cluster token old"},
		{"another member's volume", formed, volume{"quorate.json": `{"token":"orders-1f2e","member":"orders-2"}`, walFile: own}, 4, "belongs to member orders-2"},
		{"another member's volume before forming", unformed, volume{"quorate.json": `{"token":"orders-1f2e","member":"orders-2"}`}, 4, "belongs to member orders-2"},
		{"another cluster's log", formed, volume{"quorate.json": ownMarker, walFile: logOf(0x91, 0xcdf9)}, 4, "data of cluster cdf9"},
		{"another member's log", formed, volume{"quorate.json": ownMarker, walFile: logOf(0x8e, 0xcdf8)}, 4, "data of member 8e, which is another member of cluster cdf8 now"},
		{"the log of one that joins under another name", strings.Replace(formed, `:1,`, `:1,"joining":{"member":"orders-3","id":"92"},`, 1), volume{"quorate.json": ownMarker, walFile: logOf(0x92, 0xcdf8)}, 4, "which is another member"},
		{"a log that goes as far as was noted", noted, volume{"quorate.json": ownMarker, walFile: logTo(0x91, 4, 1000)}, 0, ""},
		{"one that goes further", noted, volume{"quorate.json": ownMarker, walFile: logTo(0x91, 5, 1001)}, 0, ""},
		{"an older log", noted, volume{"quorate.json": ownMarker, walFile: logTo(0x91, 4, 999)}, 8, "older than what this member had written, as if a snapshot was put back: its log ends at term 4 and index 999, and it had come to term 4 and index 1000"},
		{"a log of an older term, with entries that never counted", noted, volume{"quorate.json": ownMarker, walFile: logTo(0x91, 3, 1200)}, 8, "term 3 and index 1200"},
		{"a log without an entry", noted, volume{"quorate.json": ownMarker, walFile: own}, 8, "term 0 and index 0"},
		{"a log that has gone on in another file", noted, volume{"quorate.json": ownMarker, walFile: logTo(0x91, 4, 10), newerWAL: own}, 0, ""},
		{"one whose newer file is of an older time", noted, volume{"quorate.json": ownMarker, walFile: logTo(0x91, 3, 10), newerWAL: own}, 8, "term 3 and index 10146"},
		{"what was noted of an earlier ID", strings.Replace(noted, `{"id":"91"`, `{"id":"90"`, 1), volume{"quorate.json": ownMarker, walFile: own}, 0, ""},
		{"an older log of an earlier ID", strings.Replace(noted, `{"id":"91"`, `{"id":"90"`, 1), volume{"quorate.json": ownMarker, walFile: logTo(0x90, 4, 1)}, 7, "data of member 90"},
		{"the log of an earlier ID", formed, volume{"quorate.json": ownMarker, walFile: logOf(0x90, 0xcdf8)}, 7, "data of member 90, which the record does not know any more"},
		{"while the cluster is being recovered", strings.Replace(formed, `:1,`, `:1,"recovering":{"clusterID":"cdf8"},`, 1), volume{"quorate.json": ownMarker, walFile: own}, 6, "cluster cdf8 is being recovered; orders-1 does not start meanwhile"},
		{"while it is being restored", strings.Replace(unformed, `:1,`, `:1,"recovering":{"clusterID":""},`, 1), nil, 6, "the cluster is being restored from a backup; orders-1 does not start meanwhile"},
		{"restart, whoever says that the present incarnation is lost", strings.Replace(formed, `:1,`, `:1,"recovered":[{"clusterID":"cdf8","token":"orders-1f2e"}],`, 1), volume{"quorate.json": ownMarker, walFile: own}, 0, ""},
		{"the first member of a recovered cluster", strings.Replace(formed, `:1,`, `:1,"recovering":{"clusterID":"aaaa"},`, 1), volume{"quorate.json": ownMarker, walFile: own, "data-old/member/snap/db": "x"}, 0, ""},
		{"a lost incarnation's volume, not a member yet", recovered(without), volume{"quorate.json": oldMarker, walFile: own}, 6, "holds data of a lost cluster, which is kept; it does not start until quorate has added it to cluster cdf8"},
		{"a lost incarnation's volume, joining without an ID", recovered(begun), volume{"quorate.json": oldMarker, walFile: own}, 6, "data of a lost cluster"},
		{"a lost incarnation's volume, perhaps promoted", recovered(promoting), volume{"quorate.json": oldMarker, walFile: own}, 6, "data of a lost cluster"},
		{"a lost incarnation's volume, joining", recovered(joining), volume{"quorate.json": oldMarker, walFile: own}, 0, ""},
		{"a lost incarnation's damaged log, joining", recovered(joining), volume{"quorate.json": oldMarker, walFile: "x"}, 0, ""},
		{"a lost incarnation's empty volume, joining", recovered(joining), volume{"quorate.json": oldMarker}, 0, ""},
		{"another member's lost volume, joining", recovered(joining), volume{"quorate.json": `{"token":"old","member":"orders-2"}`, walFile: own}, 4, "belongs to member orders-2"},
		{"an unknown incarnation's volume, joining", recovered(joining), volume{"quorate.json": `{"token":"older","member":"orders-1"}`, walFile: own}, 4, "cluster token older"},
		{"damaged marker", formed, volume{"quorate.json": "{", walFile: own}, 5, "quorate.json is damaged"},
		{"damaged marker beside an earlier ID's log", formed, volume{"quorate.json": "{", walFile: logOf(0x90, 0xcdf8)}, 5, "quorate.json is damaged"},
		{"damaged marker beside another cluster's log", formed, volume{"quorate.json": "{", walFile: logOf(0x91, 0xcdf9)}, 4, "does not name its owner (quorate.json is damaged"},
		{"damaged marker beside another member's log", formed, volume{"quorate.json": "{", walFile: logOf(0x8e, 0xcdf8)}, 4, "does not name its owner"},
		{"damaged marker and log", formed, volume{"quorate.json": "{", walFile: "x"}, 4, "does not name its owner"},
		{"damaged marker and nothing else", formed, volume{"quorate.json": "{"}, 4, "this is cluster cdf8 of token orders-1f2e"},
		{"damaged marker before forming", unformed, volume{"quorate.json": "{"}, 4, "this is cluster token orders-1f2e"},
		{"empty marker", unformed, volume{"quorate.json": "{}"}, 4, "quorate.json is damaged"},
		{"damaged log", formed, volume{"quorate.json": ownMarker, walFile: "x"}, 5, "0000000000000000-0000000000000000.wal is damaged"},
		{"damaged newest log", formed, volume{"quorate.json": ownMarker, walFile: own, newerWAL: strings.Repeat("\x00", 64)}, 5, "00000000000027a3.wal is damaged"},
		{"not a member", without, volume{"quorate.json": ownMarker, walFile: own}, 7, "data of member 91"},
		{"not a member, without data", without, volume{"quorate.json": ownMarker}, 6, "not a member"},
		{"not a member yet", without, nil, 6, "not a member"},
		{"no record", "", nil, 1, "record cannot be read"},
		{"empty record", "{}", nil, 1, "no formatVersion"},
		{"record without token", `{"formatVersion":1,"clusterID":"","members":{}}`, nil, 1, "no token"},
		{"record without ID field", `{"formatVersion":1,"token":"t","members":{}}`, nil, 1, "no field clusterID"},
		{"record without members field", `{"formatVersion":1,"token":"t","clusterID":""}`, nil, 1, "no field members"},
		{"record that lost its members", `{"formatVersion":1,"token":"t","clusterID":"cdf8","members":{}}`, nil, 1, "0 members"},
		{"record with a joining member of no ID", with(`"joining":{"member":"orders-1","id":"x"}`), nil, 1, "the ID \"x\" of the joining member"},
		{"record with a cluster ID that is no number", strings.Replace(formed, `"cdf8"`, `"x"`, 1), nil, 1, "the ID \"x\" of the cluster"},
		{"record with an ID that is nobody's", strings.Replace(formed, `"91"`, `"0"`, 1), nil, 1, "the ID \"0\" of orders-1"},
		{"record with an ID that is too long", strings.Replace(formed, `"91"`, `"1ffffffffffffffff"`, 1), nil, 1, "the ID \"1ffffffffffffffff\" of orders-1"},

		{"a joining member's first start", joining, nil, 0, ""},
		{"a joining member's next start", joining, volume{"quorate.json": newMarker, walFile: own}, 0, ""},
		{"a joining member that crashed before its log", joining, volume{"quorate.json": newMarker, "data/member/snap/db": "x"}, 0, ""},
		{"a joining member on a volume that was marked and never used", joining, volume{"quorate.json": ownMarker, "data": dir}, 0, ""},
		{"a joining member on what another learner never used", joining, volume{"quorate.json": strings.Replace(newMarker, `"91"`, `"90"`, 1)}, 0, ""},
		{"between promotion and its record", promoting, volume{"quorate.json": newMarker, walFile: own}, 0, ""},
		{"after promotion, under a record without joining", with(`"revision":6`), volume{"quorate.json": newMarker, walFile: own}, 0, ""},
		{"after joining, under the record of its beginning", begun, volume{"quorate.json": newMarker, walFile: own}, 0, ""},

		{"a joining member with a damaged marker", joining, volume{"quorate.json": "{", walFile: own}, 5, "quorate.json is damaged"},
		{"joining what has not formed, on a lost incarnation's volume", recovered(strings.Replace(unformed, `:1,`, `:1,"joining":{"member":"orders-1","id":"91"},`, 1)), volume{"quorate.json": oldMarker, walFile: own}, 6, "data of a lost cluster"},
		{"lost by a member, whoever says that it joins", strings.Replace(formed, `:1,`, `:1,"joining":{"member":"orders-1","id":"91"},`, 1), nil, 3, "empty although this member had joined"},
		{"joining, but not added yet", begun, nil, 6, "not a member"},
		{"somebody else joins", somebody, nil, 6, "not a member"},
		{"somebody else joins, and there is old data", somebody, volume{"quorate.json": ownMarker, walFile: own}, 7, "data of member 91"},
		{"lost after it may have been promoted", promoting, nil, 3, "empty although this member had joined"},
		{"wiped after it may have been promoted", promoting, volume{"quorate.json": newMarker}, 3, "wiped"},
		{"joining on the log of an earlier ID", another, volume{"quorate.json": ownMarker, walFile: own}, 7, "data of member 91"},
		{"joining on the log of a learner before", another, volume{"quorate.json": newMarker, walFile: own}, 7, "data of member 91"},
		{"joining on the remains of a learner before", another, volume{"quorate.json": newMarker, "data/member/snap/db": "x"}, 7, "an earlier member of that name left behind"},
		{"removed, under a newer record", with(`"revision":7`), volume{"quorate.json": newMarker, walFile: own}, 7, "data of member 91"},
		{"an older record that knows another member's log", with(`"revision":6`), volume{"quorate.json": newMarker, walFile: logOf(0x90, 0xcdf8)}, 7, "data of member 90"},
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
				if ExitCode(err) != test.code {
					t.Fatalf("exit code %d of %v, want %d", ExitCode(err), err, test.code)
				}
			}
			checkMarker(t, volumePath, test.files["quorate.json"], test.refuse == "", test.record == joining || test.record == recovered(joining))
		})
	}
}

// checkMarker checks that a start leaves the marker and a refusal leaves the
// volume as it was.
func checkMarker(t *testing.T, volume, before string, started, joining bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(volume, "quorate.json"))
	if !started {
		if string(text) != before {
			t.Errorf("a refusal changed the marker from %q to %q", before, text)
		}
		return
	}
	want := before
	switch {
	case joining:
		want = `{"token":"orders-1f2e","member":"orders-1","id":"91","revision":7}`
	case before == "":
		want = `{"token":"orders-1f2e","member":"orders-1"}`
	}
	if err != nil || strings.TrimSpace(string(text)) != want {
		t.Errorf("marker %q, %v", text, err)
	}
}

// What cannot be examined is not empty, and what cannot be marked is not begun.
func TestGuardTakesUnreadableForUnknown(t *testing.T) {
	const unformed = `{"formatVersion":1,"token":"t","clusterID":"","members":{}}`
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a file in place of the data":            {map[string]string{"data": "x"}, "cannot be examined"},
		"the same on the member's own volume":    {map[string]string{"quorate.json": `{"token":"t","member":"orders-1"}`, "data": "x"}, "cannot be examined"},
		"a directory in place of the marker":     {map[string]string{"quorate.json": "/"}, "cannot be examined"},
		"a directory in place of the next one":   {map[string]string{"quorate.json.tmp": "/"}, "mark the volume of orders-1 as its own"},
		"a marker that is none":                  {map[string]string{"quorate.json": "x"}, "invalid character"},
		"a marker without a token":               {map[string]string{"quorate.json": `{"member":"orders-1"}`}, "names no token or no member"},
		"a marker without a member":              {map[string]string{"quorate.json": `{"token":"t"}`}, "names no token or no member"},
		"marker and log are damaged: one reason": {map[string]string{"quorate.json": "x", "data/member/wal/0000000000000000-0000000000000000.wal": "x"}, "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			recordPath, volume := guardWorld(t, unformed, c.files)
			if err := Check(recordPath, volume, "orders-1"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	recordPath, volume := guardWorld(t, unformed, nil)
	if err := Check(recordPath, filepath.Join(volume, "absent"), "orders-1"); err == nil || !strings.Contains(err.Error(), "cannot be examined") {
		t.Errorf("without a volume: %v", err)
	}
	writeTestFile(t, filepath.Join(volume, MarkerFile, "inside"), "x")
	if err := writeMarker(volume, volumeMarker{Token: "t", Member: "orders-1"}); err == nil {
		t.Error("a marker that was not put in its place counts as written")
	}
}

// A log is read as etcd writes it, or not at all: whatever one flips in its
// beginning is noticed.
func TestEveryByteOfALogsBeginningCounts(t *testing.T) {
	good := logOf(0x91bc3c398fb3c146, 0xcdf818194e3a8c32)
	id, err := parseHeader([]byte(good))
	if err != nil || id != (identity{0x91bc3c398fb3c146, 0xcdf818194e3a8c32}) {
		t.Fatalf("%x, %v", id, err)
	}
	end := len(strings.TrimRight(good, "\x00"))
	for i := range end {
		for bit := range 8 {
			text := []byte(good)
			text[i] ^= 1 << bit
			if got, err := parseHeader(text); err == nil && got != id {
				t.Errorf("bit %d of byte %d: taken for %x", bit, i, got)
			}
		}
	}
	for n := range end {
		if got, err := parseHeader([]byte(good[:n])); err == nil {
			t.Errorf("cut after %d bytes: taken for %x", n, got)
		}
	}
	metadata := func(data ...byte) string {
		return logRecords(0, logRecord{kind: crcRecord}, logRecord{kind: metadataRecord, data: data})
	}
	for name, text := range map[string]string{
		"member 0":                 metadata(1<<3, 0, 2<<3, 1),
		"cluster 0":                metadata(1<<3, 1, 2<<3, 0),
		"a tag that does not end":  metadata(1<<3, 1, 2<<3, 1, 0x80),
		"a field without a value":  metadata(1<<3, 1, 2<<3, 1, 1<<3),
		"a tag beyond 64 bits":     metadata(slices.Concat([]byte{1 << 3, 1, 2 << 3, 1}, bytes.Repeat([]byte{0xff}, 10), []byte{1, 1})...),
		"bytes without a length":   metadata(1<<3, 1, 2<<3, 1, 3<<3|2),
		"an unknown field":         metadata(1<<3, 1, 2<<3, 1, 4<<3, 0),
		"no checksum at its start": logRecords(0, logRecord{kind: metadataRecord}, logRecord{kind: metadataRecord, data: []byte{1 << 3, 1, 2 << 3, 1}}),
		"no metadata":              logRecords(0, logRecord{kind: crcRecord}, logRecord{kind: 2, data: []byte{1 << 3, 1, 2 << 3, 1}}),
	} {
		if got, err := parseHeader([]byte(text)); err == nil {
			t.Errorf("%s: taken for %x", name, got)
		}
	}
	// A file that continues from another begins with that one's checksum.
	next := logRecords(0xfeed, logRecord{kind: crcRecord}, logRecord{kind: metadataRecord, data: []byte{1 << 3, 5, 2 << 3, 6}})
	if got, err := parseHeader([]byte(next)); err != nil || got != (identity{5, 6}) {
		t.Errorf("a later file: %x, %v", got, err)
	}
}
