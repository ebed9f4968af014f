package follow

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// Limits bound what one commit may do to many clusters at once: a slip of the
// pen in what many files have in common, or a directory that was moved, looks
// like a wish.
type Limits struct {
	// Clusters is the most that may change; 0 for no limit.
	Clusters int
	// Percent is the largest part that may change; 0 for no limit. It does not
	// count for as few as fewClusters.
	Percent int
}

// fewClusters are not a mass, however few there are in all.
const fewClusters = 2

// massChange lists the clusters that a step from one state of Git to the next
// removes, deletes or gives another version, and says whether they are too many.
// What a file is called does not matter.
func massChange(before, after map[string]desired.Origin, limits Limits) (changes []string, tooMany bool) {
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
		limits.Percent > 0 && n > fewClusters && n*100 > limits.Percent*len(before)
	return changes, tooMany
}
