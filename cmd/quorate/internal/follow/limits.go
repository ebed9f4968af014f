package follow

import (
	"fmt"
	"maps"
	"slices"

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

// changedClusters lists the clusters that are removed, deleted or given another version
// between two commits, and reports whether they are too many. The names of files do not
// matter.
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
		case is.Version != was.Version:
			changes = append(changes, fmt.Sprintf("%s %s → %s", key, was.Version, is.Version))
		}
	}
	n := len(changes)
	tooMany = limits.Clusters > 0 && n > limits.Clusters ||
		limits.Percent > 0 && n > exemptChanges && n*100 > limits.Percent*len(before)
	return changes, tooMany
}
