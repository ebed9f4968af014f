package sources_test

import (
	"testing"

	"github.com/quorate/quorate/sources"
)

func TestIncludeAndIgnoreChooseFiles(t *testing.T) {
	u := newUpstreamWith(t, map[string]string{
		"clusters/a.yaml": "", "clusters/a-draft.yaml": "", "clusters/prod/b.yaml": "", "clusters/prod/old/c.yaml": "", "clusters/test/prod.yaml": "",
	})
	for name, tc := range map[string]struct {
		include, ignore, want []string
	}{
		"all":                  {nil, nil, []string{"clusters/a-draft.yaml", "clusters/a.yaml", "clusters/prod/b.yaml", "clusters/prod/old/c.yaml", "clusters/test/prod.yaml"}},
		"a directory":          {[]string{"/prod/"}, nil, []string{"clusters/prod/b.yaml", "clusters/prod/old/c.yaml"}},
		"without another":      {[]string{"prod/"}, []string{"old/"}, []string{"clusters/prod/b.yaml"}},
		"by name":              {nil, []string{"*-draft.yaml", "prod"}, []string{"clusters/a.yaml", "clusters/test/prod.yaml"}},
		"at any depth":         {[]string{"**/c.yaml", "/a.yaml"}, nil, []string{"clusters/a.yaml", "clusters/prod/old/c.yaml"}},
		"nothing that matches": {[]string{"none"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			wantPaths(t, fetch(t, open(t, sources.Config{URL: u.bare, Path: "clusters", Include: tc.include, Ignore: tc.ignore})), tc.want...)
		})
	}
}
