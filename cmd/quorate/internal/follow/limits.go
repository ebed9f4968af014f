package follow

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// Limits bound how many clusters one commit may change: a typo in what many files
// share, or a directory that was moved, passes for an intended change.
type Limits struct {
	// Clusters is the most that may change; 0 for no limit.
	Clusters int
	// Percent is the largest share that may change; 0 for no limit. It does not
	// apply to exemptChanges or fewer.
	Percent int
}

// exemptChanges are allowed however few clusters there are.
const exemptChanges = 2

// changedClusters lists the clusters that are removed, deleted or stopped between two
// commits, or given another version, image, security context or storage, and reports whether
// they are too many. The names of files do not matter.
func changedClusters(before, after map[string]desired.Origin, limits Limits) (changes []string, tooMany bool) {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		was := before[key]
		is, there := after[key]
		switch {
		case was.State == schema.StateDeleted:
		case !there:
			changes = append(changes, key+" removed")
		case is.State == schema.StateDeleted:
			changes = append(changes, key+" deleted")
		default:
			if parts := changedParts(was, is); len(parts) > 0 {
				changes = append(changes, key+" "+strings.Join(parts, " and "))
			}
		}
	}
	n := len(changes)
	tooMany = limits.Clusters > 0 && n > limits.Clusters ||
		limits.Percent > 0 && n > exemptChanges && n*100 > limits.Percent*len(before)
	return changes, tooMany
}

// changedParts names what of a cluster that stays would stop it, restart its members or move
// their data, or decides what runs in them.
func changedParts(was, is desired.Origin) []string {
	var parts []string
	if is.Version != was.Version {
		parts = append(parts, was.Version+" → "+is.Version)
	}
	if is.State == schema.StateHibernated && was.State != is.State {
		parts = append(parts, "hibernated")
	}
	for _, p := range []struct{ name, was, is string }{
		{"image", was.Image, is.Image},
		{"security context", was.Security, is.Security},
		{"storage", was.Storage, is.Storage},
	} {
		if p.was != "" && p.was != p.is {
			parts = append(parts, p.name)
		}
	}
	return parts
}
