package sources

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Branch is a branch by its name, without refs/heads/, and what it holds.
type Branch struct {
	Name string
	Snapshot
	// Heartbeat is after how long its writer commits again though nothing has changed, as the
	// newest commit says; 0 where it does not.
	Heartbeat time.Duration
	// Err is why it could not be read; then only its name and its commit are known.
	Err error
}

// maxBranches bounds how many branches are read at once.
const maxBranches = 256

// FetchBranches reads the watched path on the branches whose name begins with a prefix, by name,
// and calls read with one after the other. wanted is asked first, with the name of a branch and
// the commit that it is at, and what it returns false for is not read; nil for all. One that
// cannot be read hides no other. Like FetchProposal it asks for no signature and keeps nothing:
// what it returns is for showing only and must never be followed.
func (r *Repository) FetchBranches(ctx context.Context, prefix string, wanted func(name, commit string) bool, read func(Branch)) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := r.fetchBranches(ctx, prefix, wanted, read); err != nil {
		return explain(ctx, fmt.Sprintf("fetch the branches %s* of %s", prefix, r.where), err)
	}
	return nil
}

const heads = "refs/heads/"

func (r *Repository) fetchBranches(ctx context.Context, prefix string, wanted func(name, commit string) bool, read func(Branch)) error {
	session, err := r.origin.open(ctx)
	if err != nil {
		return err
	}
	defer session.close()
	refs, err := session.refs(ctx, heads+prefix)
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		return refGone("no branch "+prefix+"*", "see what --status-branch the daemons have")
	}
	if len(refs) > maxBranches {
		return fmt.Errorf("%d branches begin with %s, and %d are read at most: give a longer prefix", len(refs), prefix, maxBranches)
	}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		name, commit := strings.TrimPrefix(ref, heads), refs[ref].commit
		if wanted != nil && !wanted(name, commit.String()) {
			continue
		}
		b, err := r.readBranch(ctx, session, commit)
		if b.Name = name; err != nil {
			if ctx.Err() != nil {
				return err
			}
			b.Snapshot = Snapshot{Commit: commit.String()}
			b.Err = explain(ctx, fmt.Sprintf("fetch the branch %s of %s", name, r.where), err)
		}
		read(b)
	}
	return nil
}

// readBranch reads the commit that a branch is at.
func (r *Repository) readBranch(ctx context.Context, s session, commit plumbing.Hash) (Branch, error) {
	objs, err := s.objects(ctx, commit)
	if err != nil {
		return Branch{}, err
	}
	snapshot, err := readCommit(ctx, objs, commit, place{r.path, r.choice}, r.limits)
	if err != nil {
		return Branch{}, err
	}
	made, err := newTreeReader(objs, r.limits).commit(commit)
	if err != nil {
		return Branch{}, err
	}
	b := Branch{Snapshot: snapshot}
	if beat, err := time.ParseDuration(readTrailers(made.Message)[trailerHeartbeat]); err == nil && beat > 0 {
		b.Heartbeat = beat
	}
	return b, nil
}
