package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// push writes into a repository of this machine. It runs no hooks.
func (o diskOrigin) push(ctx context.Context, u update) error {
	repo, err := o.repository()
	if err != nil {
		return err
	}
	for _, hash := range u.hashes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if repo.Storer.HasEncodedObject(hash) == nil {
			continue
		}
		object, err := u.stored.EncodedObject(plumbing.AnyObject, hash)
		if err == nil {
			_, err = repo.Storer.SetEncodedObject(object)
		}
		if err != nil {
			return unwritable(err)
		}
	}
	return moveRef(repo, u)
}

// moveRef moves a branch as Git itself does, so that Git and other quorates see each
// other: the new value goes into a file that is its lock, and then replaces it.
func moveRef(repo *git.Repository, u update) error {
	storage, ok := repo.Storer.(*filesystem.Storage)
	if !ok {
		return unwritable(errors.New("it is of an unknown kind"))
	}
	files, lock := storage.Filesystem(), u.ref.String()+".lock"
	file, err := files.OpenFile(lock, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return errLocked
	}
	if err != nil {
		return unwritable(err)
	}
	if err := writeRef(repo, files, file, u); err != nil {
		_ = files.Remove(lock)
		return err
	}
	return nil
}

// writeRef is what is done under the lock.
func writeRef(repo *git.Repository, files billy.Filesystem, lock billy.File, u update) error {
	now, err := repo.Storer.Reference(u.ref)
	var is plumbing.Hash
	switch {
	case err == nil:
		is = now.Hash()
	case !errors.Is(err, plumbing.ErrReferenceNotFound):
		lock.Close()
		return damaged(u.ref.String(), err)
	}
	if is != u.old {
		lock.Close()
		return errMoved
	}
	_, err = fmt.Fprintln(lock, u.new)
	if err := errors.Join(err, lock.Close()); err != nil {
		return unwritable(err)
	}
	if err := files.Rename(lock.Name(), u.ref.String()); err != nil {
		return unwritable(err)
	}
	return nil
}

func unwritable(err error) *failure {
	return unreachable(fmt.Sprintf("it cannot be written to (%s)", oneLine(osReason(err))), "check the directory and its permissions")
}
