package manifest_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/manifest"
)

// full is a manifest with something in each field that is stored.
func full(t *testing.T) manifest.Manifest {
	t.Helper()
	m := manifest.Manifest{}
	v := reflect.ValueOf(&m).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("<" + v.Type().Field(i).Name + " & co>")
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i) + 1<<53)
		case reflect.Uint32:
			f.SetUint(1 << 31)
		case reflect.Bool:
			f.SetBool(true)
		}
	}
	m.Recipients, m.Time = []string{"age1a", "age1b"}, time.Date(2026, 11, 20, 2, 0, 0, 7, time.UTC)
	m.Origin, m.Forged = "", false
	return m
}

func encode(t *testing.T, m manifest.Manifest) []byte {
	t.Helper()
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t *testing.T, text []byte) manifest.Manifest {
	t.Helper()
	m, err := manifest.Decode(text)
	if err != nil {
		t.Fatalf("%v of %s", err, text)
	}
	return m
}

// What is signed reads as it was, and no field can be changed, added or taken out but what
// a drill found.
func TestASignatureCoversEveryField(t *testing.T) {
	_, key := backuptest.NewKeyFile(t)
	m := full(t)
	if err := m.Sign(key); err != nil {
		t.Fatal(err)
	}
	text := encode(t, m)
	if got := decode(t, text); !reflect.DeepEqual(got, m) || got.Forged {
		t.Errorf("%+v, want %+v", got, m)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil || len(fields) < 20 {
		t.Fatalf("%d fields, %v", len(fields), err)
	}
	without := func(name string, value any) []byte {
		changed := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &changed); err != nil {
			t.Fatal(err)
		}
		delete(changed, name)
		if value != nil {
			changed[name], _ = json.Marshal(value)
		}
		edited, _ := json.Marshal(changed)
		return edited
	}
	zero := reflect.TypeFor[manifest.Manifest]()
	for i := range zero.NumField() {
		name, _, _ := strings.Cut(zero.Field(i).Tag.Get("json"), ",")
		if name == "-" || name == "drill" || name == "signature" {
			continue
		}
		if !decode(t, without(name, nil)).Forged {
			t.Errorf("%s may be taken out", name)
		}
		if !decode(t, without(name, reflect.Zero(zero.Field(i).Type).Interface())).Forged {
			t.Errorf("%s may be changed", name)
		}
	}
	if got := decode(t, without("drill", manifest.Drill{Result: manifest.DrillPassed})); got.Forged || got.Drill.Result != manifest.DrillPassed {
		t.Errorf("a drill: %+v", got)
	}
	if got := decode(t, without("signature", nil)); got.Forged || got.Signature != nil {
		t.Errorf("no signature: %+v", got)
	}
}

// Two readers of JSON may take one text differently: what is used is what was signed, or the
// signature does not match.
func TestWhatIsUsedIsWhatWasSigned(t *testing.T) {
	_, key := backuptest.NewKeyFile(t)
	m := full(t)
	if err := m.Sign(key); err != nil {
		t.Fatal(err)
	}
	text := string(encode(t, m))
	for name, added := range map[string]string{
		"a name twice, first":        `{"sha256":"evil",`,
		"another case":               `{"SHA256":"evil",`,
		"another case of the drill":  `{"Drill":{"result":"passed"},`,
		"another case of signatures": `{"SIGNATURE":{"key":"evil"},`,
		"an unknown field":           `{"tomorrow":1,`,
		"escaped":                    `{"sh\u0061256":"evil",`,
	} {
		got := decode(t, []byte(added+text[1:]))
		if !got.Forged && (got.SHA256 != m.SHA256 || got.Drill != m.Drill) || got.Signature == nil || got.Signature.Key != key.Fingerprint() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	last := strings.TrimSuffix(strings.TrimSpace(text), "}") + `,"sha256":"evil"}`
	if !decode(t, []byte(last)).Forged {
		t.Error("a name twice, last")
	}
	null := strings.TrimSuffix(strings.TrimSpace(text), "}") + `,"sha256":null}`
	if !decode(t, []byte(null)).Forged {
		t.Error("a name twice, null")
	}
}

// A manifest that a newer quorate has signed, with fields that this one does not know, matches,
// and goes on to match when a drill is noted in it. So does one that was written by hand.
func TestAnEditKeepsWhatIsSigned(t *testing.T) {
	_, key := backuptest.NewKeyFile(t)
	written := []byte(`{"tomorrow": {"b" : 1, "a":[ 1.50, "<é>"]},
		"formatVersion":1, "size": 7e0, "object":"s3://b/1.db", "sha256":"0a", "time":"2026-11-20T02:00:00Z"}`)
	signed, err := manifest.SignText(bytes.Replace(written, []byte("7e0"), []byte("7"), 1), key)
	if err != nil {
		t.Fatal(err)
	}
	was := decode(t, signed)
	if was.Forged || was.Signature == nil || was.Size != 7 {
		t.Fatalf("%+v of %s", was, signed)
	}
	is := was
	is.Drill = manifest.Drill{Result: manifest.DrillPassed, Keys: 3}
	edited, err := manifest.Edit(signed, was, is)
	if err != nil {
		t.Fatal(err)
	}
	if got := decode(t, edited); got.Forged || !reflect.DeepEqual(got, is) || !bytes.Contains(edited, []byte(`"tomorrow"`)) || !bytes.Contains(edited, []byte("1.50")) {
		t.Errorf("%+v of %s", got, edited)
	}
	back, err := manifest.Edit(edited, is, was)
	if err != nil || !bytes.Equal(back, signed) {
		t.Errorf("%s, %v, want %s", back, err, signed)
	}
	before, errBefore := manifest.Digest(written)
	after, errAfter := manifest.Digest(edited)
	if errBefore != nil || errAfter != nil || before == after || len(after) != 64 {
		t.Errorf("%s and %s", before, after)
	}
	if same, _ := manifest.Digest(signed); same != after {
		t.Errorf("a drill is in the digest: %s and %s", same, after)
	}
}

// What was written before there were signatures is not signed, and nothing else.
func TestOldManifestsAreUnsigned(t *testing.T) {
	m := full(t)
	if err := m.Sign(nil); err != nil || m.Signature != nil {
		t.Errorf("%v", err)
	}
	text := encode(t, m)
	if bytes.Contains(text, []byte("signature")) {
		t.Errorf("%s", text)
	}
	if got := decode(t, text); !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, want %+v", got, m)
	}
}

// A signature that makes no sense is none that matches, and no panic.
func TestSignaturesThatMakeNoSense(t *testing.T) {
	for _, s := range []string{`{}`, `{"key":"SHA256:x"}`, `{"key":"","publicKey":"AAAA","value":"AAAA"}`, `{"publicKey":"` + strings.Repeat("A", 43) + `=","value":""}`} {
		got, err := manifest.Decode([]byte(`{"formatVersion":1,"size":7,"sha256":"0a","time":"2026-11-20T02:00:00Z","signature":` + s + `}`))
		if err != nil || !got.Forged {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	if got, err := manifest.Decode([]byte(`{"size":7,"time":"2026-11-20T02:00:00Z","signature":null}`)); err != nil || got.Forged || got.Signature != nil {
		t.Errorf("null: %+v, %v", got, err)
	}
	for _, text := range []string{``, `{`, `7`, `{"signature":7}`, `{"drill":7}`, `{"size":"x"}`} {
		if got, err := manifest.Decode([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// Whatever byte of a signed manifest is changed, taken out or written twice: it makes no
// sense, does not match, is not signed any more, or says the same but for its drill.
func TestNoByteOfASignedManifestIsFree(t *testing.T) {
	_, key := backuptest.NewKeyFile(t)
	m := full(t)
	m.Drill = manifest.Drill{Result: manifest.DrillPassed, Keys: 3}
	if err := m.Sign(key); err != nil {
		t.Fatal(err)
	}
	text := encode(t, m)
	same := 0
	for i := range text {
		for _, changed := range [][]byte{
			{text[i] ^ 1}, {text[i] ^ 0x20}, {text[i] ^ 0x80}, {'0'}, {'"'}, {'}'}, {}, {text[i], text[i]}, {' ', text[i]},
		} {
			edited := append(append(bytes.Clone(text[:i]), changed...), text[i+1:]...)
			got, err := manifest.Decode(edited)
			if err != nil || got.Forged || got.Signature == nil {
				continue
			}
			same++
			if got.Drill = m.Drill; !reflect.DeepEqual(got, m) {
				t.Fatalf("%s\nreads as %+v", edited, got)
			}
		}
	}
	if same < 100 { // white space, and what the drill says
		t.Errorf("%d are the same", same)
	}
}
