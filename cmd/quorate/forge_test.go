package main

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/sources"
)

func TestFlagsOfTheForgeAreChecked(t *testing.T) {
	for _, c := range []struct {
		flags  forgeFlags
		config sources.Config
		want   string
	}{
		{forgeFlags{}, sources.Config{}, ""},
		{forgeFlags{pulls: true, tokenFile: "t"}, sources.Config{Branch: "main"}, ""},
		{forgeFlags{pulls: true}, sources.Config{}, "give a token with --forge-token-file"},
		{forgeFlags{forks: true}, sources.Config{}, "is for --pull-requests"},
		{forgeFlags{pulls: true, secret: "s"}, sources.Config{Tag: "v1"}, "follow one with --branch"},
	} {
		err := c.flags.check(c.config)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.flags, err, c.want)
		}
	}
}
