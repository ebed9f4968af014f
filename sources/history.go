package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Trust is what a new head is measured against.
type Trust struct {
	// Applied is the commit that was accepted last; empty for none yet. The head
	// must descend from it, unless the Config names a commit itself.
	Applied string
	// Tag is the tag by which that commit was accepted; none where that is not known.
	Tag Tag
	// Approved is a commit that a person has approved, by its full hash: it is
	// accepted whatever its history and signatures are, and those of its tag.
	Approved string
}

// question is what a verdict rests on.
type question struct {
	head    named
	applied string
	tag     Tag
	signers string
}

// verdict is what was found of a head; it stays so while nothing it rests on
// changes.
type verdict struct {
	question
	by  signatures
	err error
}

// signatures are whose signatures of a commit and of a tag were verified; "" for none.
type signatures struct{ commit, tag string }

// judge reports whether a head may be followed, and whose signatures it has. What it finds
// is kept, so that a head that is held is not fetched at each poll.
func (r *Repository) judge(ctx context.Context, s session, head named, trust Trust) (by signatures, err error) {
	if head.commit.String() == trust.Approved {
		return signatures{}, nil
	}
	signers, err := r.signers.read(ctx)
	if err != nil {
		return signatures{}, err
	}
	asked := question{head, trust.Applied, trust.Tag, signers.digest}
	r.mu.Lock()
	known := r.judged
	r.mu.Unlock()
	if known.question == asked {
		return known.by, known.err
	}
	commit, err := r.examine(ctx, s, head.commit, trust.Applied, signers)
	by.commit = signers.signer(commit)
	if err == nil {
		by.tag, err = examineTag(ctx, s, head, trust, signers)
	}
	err = describe(err, commit)
	if err == nil || errors.Is(err, ErrRewritten) || errors.Is(err, ErrUntrusted) {
		r.mu.Lock()
		r.judged = verdict{asked, by, err}
		r.mu.Unlock()
	}
	return by, err
}

// examine checks the commits between the accepted one and the head: at all of
// them, because what a later one takes back may have been seen in between by
// others, and unsigned commits would come in below a good signature. It returns the head
// where it had to be read.
func (r *Repository) examine(ctx context.Context, s session, head plumbing.Hash, applied string, signers keys) (*object.Commit, error) {
	if applied == head.String() || signers.isEmpty() && (applied == "" || r.ref.isFixed()) {
		return nil, nil
	}
	if applied == "" {
		alone, err := s.objects(ctx, head)
		if err != nil {
			return nil, err
		}
		commit, err := object.GetCommit(alone, head)
		if err != nil {
			return nil, damaged("commit "+head.String(), err)
		}
		return commit, signers.verify([]*object.Commit{commit})
	}
	between, err := r.between(ctx, s, plumbing.NewHash(applied), head)
	switch {
	case errors.Is(err, ErrTooLarge):
		return nil, rewritten(fmt.Sprintf("what lies between %s, accepted last, and %s is more than is read", applied, head), head)
	case err != nil:
		return nil, err
	case !between.descends && !r.ref.isFixed():
		return between.head, rewritten(fmt.Sprintf("commit %s does not descend from %s, accepted last: the history was rewritten", head, applied), head)
	}
	err = signers.verify(between.commits)
	if err == nil && !signers.isEmpty() {
		err = r.checkUnsent(ctx, s, plumbing.NewHash(applied), between.unsent)
	}
	return between.head, err
}

// checkUnsent requires each parent that the server omitted to be an ancestor of the accepted
// commit, whose history was verified before: a server could otherwise hide unsigned commits
// below a signed merge. Commit hashes prove the ancestry, so the server need not be trusted.
func (r *Repository) checkUnsent(ctx context.Context, s session, accepted plumbing.Hash, unsent []plumbing.Hash) error {
	before := map[plumbing.Hash]bool{}
	for _, parent := range unsent {
		if before[parent] {
			continue
		}
		objs, err := s.history(ctx, parent, accepted)
		if err != nil && !errors.Is(err, ErrTooLarge) {
			return err
		}
		if err == nil {
			found, err := walk(ctx, objs, accepted, nil)
			if err != nil {
				return err
			}
			for _, commit := range found {
				for _, hash := range commit.ParentHashes {
					before[hash] = true
				}
			}
		}
		if !before[parent] {
			return untrusted(fmt.Sprintf("commit %s is merged into the branch, was not sent, and is not known to be in the history of %s, accepted last, so that its signature cannot be checked", parent, accepted),
				"merge again from a newer commit, or approve the head by its hash if it is intended")
		}
	}
	return nil
}

// describe has a refusal say whose commit the head is, where that is known.
func describe(refusal error, head *object.Commit) error {
	var f *failure
	if head != nil && errors.As(refusal, &f) {
		f.head = headOf(head)
	}
	return refusal
}

func rewritten(why string, head plumbing.Hash) *failure {
	return &failure{why: why, next: "restore it, or approve " + head.String() + " if that is intended", kinds: []error{ErrRewritten}, head: Head{Commit: head.String()}}
}

// lineage are the commits that one has in its history and another has not.
type lineage struct {
	commits  []*object.Commit // the oldest last
	unsent   []plumbing.Hash  // parents of theirs that the server left out, as it may where the other has them
	descends bool             // whether one descends from the other
	head     *object.Commit   // the one; nil where the server did not give it
}

func (r *Repository) between(ctx context.Context, s session, from, to plumbing.Hash) (lineage, error) {
	objs, err := s.history(ctx, from, to)
	if err != nil {
		return lineage{}, err
	}
	common, err := walk(ctx, objs, from, nil)
	if err != nil {
		return lineage{}, err
	}
	older := common[to]
	delete(common, from)
	found, err := walk(ctx, objs, to, func(hash plumbing.Hash) bool { return hash == from || common[hash] != nil })
	if err != nil {
		return lineage{}, err
	}
	l := lineage{head: cmp.Or(found[to], older)}
	for _, commit := range found {
		l.commits = append(l.commits, commit)
		l.descends = l.descends || slices.Contains(commit.ParentHashes, from)
		for _, parent := range commit.ParentHashes {
			if parent != from && found[parent] == nil && common[parent] == nil {
				l.unsent = append(l.unsent, parent)
			}
		}
	}
	// By time for the order in which they are named only; clocks decide nothing.
	slices.SortFunc(l.commits, func(a, b *object.Commit) int { return b.Committer.When.Compare(a.Committer.When) })
	return l, nil
}

// walk gathers a commit and its ancestors, up to those to stop at and those that
// are not there: a server leaves out what the accepted commit has in its history.
func walk(ctx context.Context, objs objects, start plumbing.Hash, stop func(plumbing.Hash) bool) (map[plumbing.Hash]*object.Commit, error) {
	found := map[plumbing.Hash]*object.Commit{}
	for todo := []plumbing.Hash{start}; len(todo) > 0; {
		hash := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if found[hash] != nil || stop != nil && stop(hash) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		commit, err := object.GetCommit(objs, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return nil, damaged("commit "+hash.String(), err)
		}
		found[hash] = commit
		todo = append(todo, commit.ParentHashes...)
	}
	return found, nil
}
