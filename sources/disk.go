package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// diskOrigin reads a repository of this machine, bare or with a working tree, in
// place: no git program is needed, no file is copied, and only what has been
// committed counts.
type diskOrigin struct {
	dir string
}

func (o diskOrigin) open(context.Context) (session, error) {
	repo, err := o.repository()
	if err != nil {
		return nil, err
	}
	return diskSession{repo: repo}, nil
}

func (o diskOrigin) repository() (*git.Repository, error) {
	repo, err := git.PlainOpenWithOptions(o.dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, notFound("there is no Git repository in this directory", "create it or correct the path")
	}
	if err != nil {
		return nil, unreachable(fmt.Sprintf("it cannot be opened (%s)", oneLine(osReason(err))),
			"check the directory and its permissions")
	}
	if s, ok := repo.Storer.(*filesystem.Storage); ok {
		repo.Storer = filesystem.NewStorage(withoutLocks{s.Filesystem()}, cache.NewObjectLRUDefault())
	}
	return repo, nil
}

// withoutLocks hides the files by which Git locks what it is about to write. go-git
// takes those next to branches for branches, and fails where they are still empty.
type withoutLocks struct{ billy.Filesystem }

// Capabilities are those of the files, as go-git wants to know.
func (f withoutLocks) Capabilities() billy.Capability { return billy.Capabilities(f.Filesystem) }

func (f withoutLocks) ReadDir(path string) ([]os.FileInfo, error) {
	list, err := f.Filesystem.ReadDir(path)
	return slices.DeleteFunc(list, func(i os.FileInfo) bool { return strings.HasSuffix(i.Name(), ".lock") }), err
}

type diskSession struct {
	repo *git.Repository
}

func (s diskSession) close() {}

func (s diskSession) refs(_ context.Context, prefix string) (map[string]target, error) {
	all, err := s.repo.Storer.IterReferences()
	if err != nil {
		return nil, damaged("the list of references", err)
	}
	defer all.Close()
	found := map[string]target{}
	return found, all.ForEach(func(ref *plumbing.Reference) error {
		name := ref.Name().String()
		if !strings.HasPrefix(name, prefix) {
			return nil
		}
		direct, err := storer.ResolveReference(s.repo.Storer, ref.Name())
		if err != nil {
			return damaged(name, err)
		}
		found[name] = target{object: direct.Hash(), commit: s.peel(direct.Hash())}
		return nil
	})
}

// peel goes from a tag with a message to what it names.
func (s diskSession) peel(hash plumbing.Hash) plumbing.Hash {
	for range maxHops {
		tag, err := object.GetTag(s.repo.Storer, hash)
		if err != nil {
			break
		}
		hash = tag.Target
	}
	return hash
}

// isEmpty reports whether there is nothing but the symbolic HEAD that a new repository has.
func (s diskSession) isEmpty(context.Context) bool {
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

func (s diskSession) changes(context.Context, plumbing.Hash, plumbing.Hash) (objects, error) {
	return objects{EncodedObjectStorer: s.repo.Storer}, nil
}

func (s diskSession) directories(context.Context, plumbing.Hash) (objects, error) {
	return objects{EncodedObjectStorer: s.repo.Storer}, nil
}

func (s diskSession) history(context.Context, plumbing.Hash, plumbing.Hash) (objects, error) {
	return objects{EncodedObjectStorer: s.repo.Storer}, nil
}
