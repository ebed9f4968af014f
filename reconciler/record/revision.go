package record

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quorate/quorate/reconciler/state"
)

// Reached is the highest revision that is known of the cluster and of all whose place
// it has taken. Each may have written since: a cluster that comes after them begins
// state.RevisionBump above it, as if it was restored from there.
//
// A record from before revisions were noted still tells how often it was begun
// with something older, and each time raised what it had.
func (r Record) Reached() (int64, error) {
	reached := r.HighestRevision
	if b := r.Backup; b != nil {
		reached = max(reached, b.Revision)
	}
	if c := r.Compacted; c != nil {
		reached = max(reached, c.Revision)
	}
	begun := int64(len(r.Recovered)) * state.RevisionBump
	if w := r.Restored; w != nil && r.Formed() {
		begun += w.Revision + state.RevisionBump
	}
	if g := r.Recovering; g != nil {
		begun = max(begun, g.Revision, g.Above)
		if r.ClusterID == g.NewClusterID {
			begun = max(begun, max(g.Revision, g.Above)+state.RevisionBump)
		}
	}
	reached = max(reached, begun)
	for _, p := range r.Predecessors {
		var was Record
		if err := json.Unmarshal(p.Record, &was); err != nil {
			return 0, fmt.Errorf("the record of the cluster whose place was taken at %s is not readable: %w", p.At.UTC().Format("2006-01-02T15:04:05Z"), err)
		}
		before, err := was.Reached()
		if err != nil {
			return 0, err
		}
		reached = max(reached, before)
	}
	return reached, nil
}

// Saw notes a revision that the cluster was seen at.
func (r *Record) Saw(revision int64) { r.HighestRevision = max(r.HighestRevision, revision) }

// Lineage are the IDs of the clusters whose data the cluster continues, and its own:
// what it was restored or recovered from, and those whose place it has taken. Empty for
// one that has not formed yet and follows none.
func (r Record) Lineage() []string {
	ids := []string{r.ClusterID}
	for _, done := range r.Recovered {
		ids = append(ids, done.ClusterID)
	}
	if r.Recovering != nil {
		ids = append(ids, r.Recovering.ClusterID)
	}
	if r.Restored != nil {
		ids = append(ids, r.Restored.FromCluster)
	}
	for _, p := range r.Predecessors {
		var was Record
		if json.Unmarshal(p.Record, &was) == nil { // Reached tells of one that is not readable
			ids = append(ids, was.Lineage()...)
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}
