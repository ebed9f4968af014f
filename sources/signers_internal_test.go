package sources

import (
	"testing"
	"time"
)

// A key that begins or ends makes a head be judged again: what was found of it is kept
// for as long as the keys are the same.
func TestKeysAreOtherOnesWhenOneBeginsOrEnds(t *testing.T) {
	const line = `ada@example.com valid-after="20260101Z",valid-before="20270101Z" ` +
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g test"
	digests := map[string]string{}
	for name, at := range map[string]time.Time{
		"before": time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC),
		"first":  time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"last":   time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		"after":  time.Date(2027, 1, 1, 0, 0, 1, 0, time.UTC),
	} {
		k, err := parseKeys(map[string][]byte{"a": []byte(line)}, at)
		if err != nil {
			t.Fatal(err)
		}
		digests[name] = k.digest
	}
	if digests["first"] != digests["last"] || digests["before"] == digests["first"] || digests["after"] == digests["last"] {
		t.Errorf("the keys are known as %v", digests)
	}
}
