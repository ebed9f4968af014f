package sources

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Branch is a branch by its name, without refs/heads/, and what it holds.
type Branch struct {
	Name string
	Snapshot
}

// maxBranches bounds how many branches are read at once.
const maxBranches = 256

// FetchBranches reads the watched path on every branch whose name begins with a prefix, by name.
// Like FetchProposal it asks for no signature and keeps nothing: what it returns is for showing
// only and must never be followed.
func (r *Repository) FetchBranches(ctx context.Context, prefix string) ([]Branch, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	list, err := r.fetchBranches(ctx, prefix)
	if err != nil {
		return nil, explain(ctx, fmt.Sprintf("fetch the branches %s* of %s", prefix, r.where), err)
	}
	return list, nil
}

func (r *Repository) fetchBranches(ctx context.Context, prefix string) ([]Branch, error) {
	session, err := r.origin.open(ctx)
	if err != nil {
		return nil, err
	}
	defer session.close()
	const heads = "refs/heads/"
	refs, err := session.refs(ctx, heads+prefix)
	if err != nil {
		return nil, err
	}
	if len(refs) == 0 {
		return nil, refGone("no branch "+prefix+"*", "see what --status-branch the daemons have")
	}
	if len(refs) > maxBranches {
		return nil, fmt.Errorf("%d branches begin with %s, and %d are read at most: give a longer prefix", len(refs), prefix, maxBranches)
	}
	list := make([]Branch, 0, len(refs))
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		s, err := r.readOnce(ctx, session, refs[name].commit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(name, heads), err)
		}
		list = append(list, Branch{strings.TrimPrefix(name, heads), s})
	}
	return list, nil
}
