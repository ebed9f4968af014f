package sources

import (
	"strings"
	"testing"
)

// The head of a tag is read as Git writes it, and in no other form.
func TestHeadOfATagIsReadAsGitWritesIt(t *testing.T) {
	const good = "object 0123456789012345678901234567890123456789\ntype commit\ntag v1\ntagger Ada <ada@example.com> 1714644000 +0200\n\nwords\n"
	got, err := parseTag([]byte(good))
	if err != nil || got.object != "0123456789012345678901234567890123456789" || got.kind != "commit" || got.name != "v1" || got.dated.Unix() != 1714644000 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, c := range []struct{ old, changed, says string }{
		{"\n\nwords\n", "\ntag v2\n\nwords\n", "more headers"},
		{"\n\nwords\n", "\ngpgsig-sha256 words\n\nwords\n", "more headers"},
		{"type commit\ntag v1\n", "tag v1\ntype commit\n", "no type"},
		{"tag v1\n", "", "no tag"},
		{"tag v1\n", "tag \n", "no tag"},
		{"tagger", "author", "no tagger"},
		{"\ntagger Ada <ada@example.com> 1714644000 +0200\n", "\n", "no tagger"},
		{"1714644000", "lately", "no date"},
		{"object 0123", "object v123", "names no object"},
		{"object", " object", "no object"},
		{good, "", "no object"},
	} {
		if got, err := parseTag([]byte(strings.Replace(good, c.old, c.changed, 1))); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q in the place of %q: got %+v, %v, want %q", c.changed, c.old, got, err, c.says)
		}
	}
}

// A signature begins where Git says: at the last line that may begin one.
func TestSignatureOfATagIsCutWhereGitDoes(t *testing.T) {
	for _, c := range []struct{ raw, text string }{
		{"words\n", "words\n"},
		{"words\n-----BEGIN SSH SIGNATURE-----\nx\n", "words\n"},
		{"words\n-----BEGIN PGP SIGNATURE-----\nx\n-----BEGIN SSH SIGNATURE-----\nx", "words\n-----BEGIN PGP SIGNATURE-----\nx\n"},
		{"a -----BEGIN SSH SIGNATURE-----\n-----BEGIN SSH SIGNATURE\n", "a -----BEGIN SSH SIGNATURE-----\n-----BEGIN SSH SIGNATURE\n"},
		{"-----BEGIN PGP MESSAGE-----", ""},
	} {
		text, signature := cutSignature([]byte(c.raw))
		if string(text) != c.text || string(text)+signature != c.raw {
			t.Errorf("%q: got %q and %q", c.raw, text, signature)
		}
	}
}
