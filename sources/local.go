package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const reasonSymlink = "symbolic link, which is never followed"

// ReadPaths reads local files and directories, without Git, by the rules of a
// fetch: the same names, the same limits, no symbolic link followed. Only the
// given paths themselves may be links. What the snapshot reports of a commit is
// empty.
//
// A path that does not exist is an ErrPathGone.
func ReadPaths(ctx context.Context, paths []string, limits Limits) (Snapshot, error) {
	r := &pathReader{
		collector: collector{limits: limits.withDefaults()},
		seen:      map[string]bool{},
	}
	for _, given := range paths {
		if err := r.read(ctx, given); err != nil {
			return Snapshot{}, explain(ctx, "read "+given, err)
		}
	}
	files, skipped := r.sorted()
	return Snapshot{Files: files, Skipped: skipped}, nil
}

type pathReader struct {
	collector
	seen map[string]bool // files by path, as the paths asked for may overlap
}

func (r *pathReader) read(ctx context.Context, given string) error {
	info, err := os.Stat(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return pathGone("it does not exist")
	case err != nil:
		return unreadable(err)
	case info.IsDir():
		return r.walk(ctx, given)
	case !isYAML(given):
		r.skip(filepath.ToSlash(given), "neither .yaml nor .yml")
		return nil
	}
	target, err := filepath.EvalSymlinks(given)
	if err != nil {
		return unreadable(err)
	}
	return r.inRoot(filepath.Dir(target), func(root *os.Root) error {
		return r.file(root, filepath.Base(target), filepath.ToSlash(filepath.Clean(given)))
	})
}

// inRoot opens a directory so that nothing outside it can be reached through it.
func (r *pathReader) inRoot(dir string, do func(*os.Root) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return unreadable(err)
	}
	defer root.Close()
	return do(root)
}

func (r *pathReader) walk(ctx context.Context, given string) error {
	return r.inRoot(given, func(root *os.Root) error {
		return fs.WalkDir(root.FS(), ".", func(rel string, entry fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return unreadable(err)
			}
			return r.enter(root, rel, path.Join(filepath.ToSlash(given), rel), entry)
		})
	})
}

// enter reads one entry of a directory, or says why it is left.
func (r *pathReader) enter(root *os.Root, rel, shown string, entry fs.DirEntry) error {
	if err := r.visit(shown, strings.Count(rel, "/")); err != nil {
		return err
	}
	switch {
	case entry.IsDir():
		return r.directory(root, rel, shown)
	case entry.Type()&fs.ModeSymlink != 0:
		r.skip(shown, reasonSymlink)
	case isYAML(rel):
		return r.file(root, rel, shown)
	}
	return nil
}

// directory leaves out what Git would: its own directory, and the repositories
// checked out below this one.
func (r *pathReader) directory(root *os.Root, rel, shown string) error {
	if path.Base(rel) == ".git" {
		return fs.SkipDir
	}
	if rel == "." {
		return nil
	}
	if _, err := root.Lstat(path.Join(rel, ".git")); err == nil {
		r.skip(shown, "another Git repository, which is never followed")
		return fs.SkipDir
	}
	return nil
}

// file reads one file. It asks for the kind first: to open a named pipe would
// wait for its writer.
func (r *pathReader) file(root *os.Root, rel, shown string) error {
	if r.seen[shown] {
		return nil
	}
	info, err := root.Stat(rel)
	if err != nil {
		return unreadable(err)
	}
	if !info.Mode().IsRegular() {
		r.skip(shown, "not a regular file")
		return nil
	}
	r.seen[shown] = true
	if read, err := r.admit(shown, info.Size()); !read {
		return err
	}
	data, err := r.content(root, rel)
	if err != nil {
		return unreadable(err)
	}
	if read, err := r.admit(shown, int64(len(data))); !read {
		return err
	}
	r.add(File{Path: shown, Data: data})
	return nil
}

// content stops one byte after the limit, should the file have grown since.
func (r *pathReader) content(root *os.Root, rel string) ([]byte, error) {
	file, err := root.Open(rel)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, r.limits.FileBytes+1))
}

func unreadable(err error) *failure {
	return unreachable(fmt.Sprintf("it cannot be read (%s)", oneLine(err.Error())), "check its permissions")
}
