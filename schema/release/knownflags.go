package release

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// KnownFlag reports whether v takes the flag of that name, written without dashes.
func KnownFlag(v Version, name string) bool {
	since, ok := flagSince(v, name)
	return ok && !v.before(since)
}

// KnownFlags are the names of all flags that v takes, sorted.
func KnownFlags(v Version) []string {
	var names []string
	for _, group := range flagGroups() {
		if since, ok := group.since(v); ok && !v.before(since) {
			names = append(names, group.names...)
		}
	}
	slices.Sort(names)
	return names
}

// CheckFlag is nil when v takes the flag of that name. The error says since when
// there is such a flag, or what became of it.
func CheckFlag(v Version, name string) error {
	if KnownFlag(v, name) {
		return nil
	}
	if err := Known(v); err != nil {
		return err
	}
	group, ok := groupOf(name)
	if !ok {
		return fmt.Errorf("etcd has no flag %s%s", quoted(name), didYouMean(name, KnownFlags(v)))
	}
	first, last := group.first[0], group.first[len(group.first)-1]
	if since, ok := group.since(v); ok {
		return fmt.Errorf("%s does not take the flag %s, which came with %s: leave it out until then", v, name, since)
	}
	if v.before(first) {
		return fmt.Errorf("%s does not take the flag %s, which came with %s: leave it out until then", v, name, first)
	}
	if gone, ok := next(last); ok && !v.before(Version{gone.Major, gone.Minor, 0}) {
		return fmt.Errorf("%s does not take the flag %s, which etcd %s removed: %s", v, name, gone.Line(), instead(name))
	}
	return fmt.Errorf("%s does not take the flag %s", v, name)
}

// flagSince is the first release of v's line that takes the flag.
func flagSince(v Version, name string) (Version, bool) {
	group, ok := groupOf(name)
	if !ok {
		return Version{}, false
	}
	return group.since(v)
}

// groupOf finds the group of a flag.
func groupOf(name string) (flagGroup, bool) {
	group, ok := flagIndex()[name]
	return group, ok
}

// flagIndex is the table of flags by their names. It is made once: a file with
// ten options asks for it a hundred times.
//
//nolint:gochecknoglobals // a constant, but for the compiler
var flagIndex = sync.OnceValue(func() map[string]flagGroup {
	index := map[string]flagGroup{}
	for _, group := range flagGroups() {
		for _, name := range group.names {
			index[name] = group
		}
	}
	return index
})

// since is the first release of v's line that takes the flags of the group.
func (g flagGroup) since(v Version) (Version, bool) {
	for _, first := range g.first {
		if first.sameLine(v) {
			return first, true
		}
	}
	return Version{}, false
}

// experimental is the prefix that a flag loses when it grows up.
const experimental = "experimental-"

// newestName is the name of a flag after it lost its prefix, if it ever did.
func newestName(name string) string {
	short, ok := strings.CutPrefix(name, experimental)
	if !ok {
		return name
	}
	if _, grown := groupOf(short); grown {
		return short
	}
	return name
}
