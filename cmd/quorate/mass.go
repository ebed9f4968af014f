package main

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// massLimits bound what one commit may do to many clusters at once: a slip of the
// pen in what many files have in common, or a directory that was moved, looks
// like a wish.
type massLimits struct {
	// clusters is the most that may change; 0 for no limit.
	clusters int
	// percent is the largest part that may change; 0 for no limit. It does not
	// count for as few as fewClusters.
	percent int
}

// fewClusters are not a mass, however few there are in all.
const fewClusters = 2

// check refuses limits that mean nothing.
func (l massLimits) check() error {
	if l.clusters < 0 || l.percent < 0 || l.percent > 100 {
		return fmt.Errorf("--max-changed-clusters is %d and --max-changed-percent %d: give 0 for no limit, or a number, which for the percentage is at most 100", l.clusters, l.percent)
	}
	return nil
}

// checkHash refuses an approval of anything but one commit.
func checkHash(hash string) error {
	if decoded, err := hex.DecodeString(hash); hash != "" && (err != nil || len(decoded) != 20) {
		return fmt.Errorf("--approve-commit is %q: give all 40 digits of the commit's hash", hash)
	}
	return nil
}

// massChange lists the clusters that a step from one state of Git to the next
// removes, deletes or gives another version, and says whether they are too many.
// What a file is called does not matter.
func massChange(before, after map[string]desired.Origin, limits massLimits) (changes []string, tooMany bool) {
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
	tooMany = limits.clusters > 0 && n > limits.clusters ||
		limits.percent > 0 && n > fewClusters && n*100 > limits.percent*len(before)
	return changes, tooMany
}
