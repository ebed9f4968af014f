package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Proposal is what a reference other than the followed one would change.
type Proposal struct {
	// Base is what stood where the proposal left the accepted history: what the
	// branch got since then is no change of the proposal. It has no files where the
	// watched path was not there yet.
	Base Snapshot
	// Head is what the proposal says.
	Head Snapshot
}

// FetchProposal reads the watched path at a reference by its full name, such as
// refs/pull/7/head, within the limits of the followed branch. applied is the
// commit that was accepted last. It asks for no signature, and keeps nothing: what
// it returns is for planning only and must never be followed.
func (r *Repository) FetchProposal(ctx context.Context, name, applied string) (Proposal, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	p, err := r.propose(ctx, name, plumbing.NewHash(applied))
	if err != nil {
		return Proposal{}, explain(ctx, fmt.Sprintf("fetch %s of %s", name, r.where), err)
	}
	return p, nil
}

func (r *Repository) propose(ctx context.Context, name string, applied plumbing.Hash) (Proposal, error) {
	session, err := r.origin.open(ctx)
	if err != nil {
		return Proposal{}, err
	}
	defer session.close()
	refs, err := session.refs(ctx, name)
	if err != nil {
		return Proposal{}, err
	}
	named, there := refs[name]
	if !there {
		return Proposal{}, refGone("no "+name, "see whether the pull request is still open")
	}
	head := named.commit
	base, err := branchPoint(ctx, session, applied, head)
	if err != nil {
		return Proposal{}, err
	}
	p := Proposal{}
	if p.Head, err = r.readOnce(ctx, session, head); err != nil {
		return Proposal{}, err
	}
	p.Base, err = r.readOnce(ctx, session, base)
	if errors.Is(err, ErrPathGone) {
		p.Base, err = Snapshot{Commit: base.String()}, nil
	}
	return p, err
}

// readOnce reads a commit, unless it is the one that is followed.
func (r *Repository) readOnce(ctx context.Context, s session, commit plumbing.Hash) (Snapshot, error) {
	if kept, ok := r.recall(commit); ok {
		return kept, nil
	}
	objs, err := s.objects(ctx, commit)
	if err != nil {
		return Snapshot{}, err
	}
	return readCommit(ctx, objs, commit, place{r.path, r.choice}, r.limits)
}

// branchPoint is the commit at which the history of a head left that of the
// accepted one. Where the head has taken from it several times, it is the place of
// the last time.
func branchPoint(ctx context.Context, s session, applied, head plumbing.Hash) (plumbing.Hash, error) {
	if applied == head {
		return head, nil
	}
	objs, err := s.history(ctx, applied, head)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	common, err := walk(ctx, objs, applied, nil)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	own, err := walk(ctx, objs, head, func(hash plumbing.Hash) bool { return hash == applied || common[hash] != nil })
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if len(own) == 0 {
		return head, nil // it is in the accepted history already
	}
	point, err := newest(ctx, objs, parentsOf(own))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if point.IsZero() {
		return point, &failure{
			why:  fmt.Sprintf("commit %s has no commit in common with %s, accepted last", head, applied),
			next: "rebase it on the followed branch", kinds: []error{ErrRewritten},
		}
	}
	return point, nil
}

// parentsOf are the parents of some commits that are none of them, in a fixed order.
func parentsOf(commits map[plumbing.Hash]*object.Commit) []plumbing.Hash {
	var parents []plumbing.Hash
	for _, commit := range commits {
		for _, parent := range commit.ParentHashes {
			if commits[parent] == nil {
				parents = append(parents, parent)
			}
		}
	}
	slices.SortFunc(parents, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(parents)
}

// newest is the commit that descends from all others; where there is none, one that
// no other descends from. Their times say nothing: clocks differ, and a second is
// long.
func newest(ctx context.Context, objs objects, commits []plumbing.Hash) (plumbing.Hash, error) {
	var newest plumbing.Hash
	for _, commit := range commits {
		descends := newest.IsZero()
		_, err := walk(ctx, objs, commit, func(hash plumbing.Hash) bool {
			descends = descends || hash == newest
			return descends
		})
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if descends {
			newest = commit
		}
	}
	return newest, nil
}
