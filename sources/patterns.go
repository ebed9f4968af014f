package sources

import (
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// patterns choose files by their paths below the watched directory, by the rules of
// a .gitignore: * and ? within a name, ** over directories, a slash at the end for
// a directory and all in it.
type patterns struct {
	include, ignore []gitignore.Pattern
}

func newPatterns(include, ignore []string) (patterns, error) {
	var p patterns
	for _, list := range []struct {
		texts []string
		to    *[]gitignore.Pattern
	}{{include, &p.include}, {ignore, &p.ignore}} {
		for _, text := range list.texts {
			if strings.Trim(text, "/ ") == "" || strings.HasPrefix(text, "!") || strings.HasPrefix(text, "#") {
				return p, fmt.Errorf("pattern %q: it is not one for paths; give one such as production/** or *-draft.yaml", text)
			}
			*list.to = append(*list.to, gitignore.ParsePattern(text, nil))
		}
	}
	return p, nil
}

// choose reports whether a file is read: it is among the included, if any are named,
// and not among the ignored.
func (p patterns) choose(path string) bool {
	parts := strings.Split(path, "/")
	return (len(p.include) == 0 || matches(p.include, parts)) && !matches(p.ignore, parts)
}

func matches(list []gitignore.Pattern, parts []string) bool {
	for _, p := range list {
		for n := range parts {
			if p.Match(parts[:n+1], n+1 < len(parts)) == gitignore.Exclude {
				return true
			}
		}
	}
	return false
}
