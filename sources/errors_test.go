package sources

import (
	"strings"
	"testing"
)

func TestScrubTakesSecretsOutOfForeignErrors(t *testing.T) {
	secrets := disguises("ada", "p/ss")
	for in, want := range map[string]string{
		"refused p/ss":                          "refused ***",
		"GET https://h/p%2Fss now":              "GET https://h/*** now",
		"Authorization: Basic YWRhOnAvc3M=":     "Authorization: Basic ***",
		"to https://tok3n@host/path?key=k3y no": "to https://host/path no",
		"to https://u:tok3n@host/path":          "to https://host/path",
		"two\nlines\tand \x00":                  "two lines and ?",
	} {
		if got := scrub(in, secrets); got != want {
			t.Errorf("scrub(%q) is %q, want %q", in, got, want)
		}
	}
	if got := scrub(strings.Repeat("long ", 1000), nil); len(got) > 310 {
		t.Errorf("an error of %d bytes stayed %d bytes", 5000, len(got))
	}
}
