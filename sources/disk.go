package sources

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// diskOrigin reads a repository of this machine, bare or with a working tree, in
// place: no git program is needed, nothing is copied, and only what has been
// committed counts.
type diskOrigin struct {
	dir string
}

func (o diskOrigin) open(context.Context) (session, error) {
	repo, err := git.PlainOpenWithOptions(o.dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, notFound("there is no Git repository in this directory", "create it or correct the path")
	}
	if err != nil {
		return nil, unreachable(fmt.Sprintf("it cannot be opened (%s)", oneLine(osReason(err))),
			"check the directory and its permissions")
	}
	return diskSession{repo: repo}, nil
}

type diskSession struct {
	repo *git.Repository
}

func (s diskSession) head(branch string) (plumbing.Hash, error) {
	ref, err := storer.ResolveReference(s.repo.Storer, plumbing.NewBranchReferenceName(branch))
	switch {
	case err == nil:
		return ref.Hash(), nil
	case !errors.Is(err, plumbing.ErrReferenceNotFound):
		return plumbing.ZeroHash, damaged("branch "+branch, err)
	case s.isEmpty():
		return plumbing.ZeroHash, emptyRepository()
	}
	return plumbing.ZeroHash, branchGone(branch)
}

// isEmpty looks for anything but the symbolic HEAD that a new repository has.
func (s diskSession) isEmpty() bool {
	refs, err := s.repo.Storer.IterReferences()
	if err != nil {
		return false
	}
	defer refs.Close()
	for {
		ref, err := refs.Next()
		if err != nil {
			return true
		}
		if ref.Type() == plumbing.HashReference {
			return false
		}
	}
}

func (s diskSession) objects(context.Context, plumbing.Hash) (objects, error) {
	return objects{EncodedObjectStorer: s.repo.Storer}, nil
}
