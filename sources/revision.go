package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// ReadRevision reads what a revision of a local Git repository says at the given
// files and directories, by the rules of ReadPaths: the files have the same
// names as those on disk, so that the two can be compared. revision is a branch,
// a remote branch such as origin/main, a tag, or a commit.
//
// A path that the revision does not have is no error: there was nothing yet. The
// paths must lie in one repository; they need not exist on disk.
func ReadRevision(ctx context.Context, paths []string, revision string, limits Limits) (Snapshot, error) {
	during := "read revision " + revision
	r := &revisionReader{revision: revision, limits: limits.withDefaults(), seen: map[string]bool{}}
	for _, given := range paths {
		if err := r.read(ctx, given); err != nil {
			return Snapshot{}, explain(ctx, during, err)
		}
	}
	r.out.Files, r.out.Skipped = r.sorted()
	return r.out, nil
}

// revisionReader gathers the files of one revision.
type revisionReader struct {
	collector
	revision string
	limits   Limits
	seen     map[string]bool // files by path, as the paths asked for may overlap
	out      Snapshot
}

// read adds what the revision has at one path of this machine.
func (r *revisionReader) read(ctx context.Context, given string) error {
	repository, inside, err := openAround(given)
	if err != nil {
		return err
	}
	head, err := r.resolve(repository)
	if err != nil {
		return err
	}
	part, err := readAt(ctx, objects{EncodedObjectStorer: repository.Storer}, head, inside, r.limits)
	if errors.Is(err, ErrPathGone) {
		part, err = Snapshot{Commit: head.String()}, nil
	}
	if err != nil {
		return err
	}
	if r.out.Commit == "" {
		r.out = part
	}
	r.collector.limits = r.limits
	return r.rename(part, given, inside)
}

// rename gives the files of a part the names that they have on disk.
func (r *revisionReader) rename(part Snapshot, given, inside string) error {
	root := filepath.ToSlash(filepath.Clean(given))
	shown := func(name string) string {
		rest := strings.TrimPrefix(strings.TrimPrefix(name, inside), "/")
		if rest == "" {
			return root
		}
		return filepath.ToSlash(filepath.Join(root, rest))
	}
	for _, f := range part.Files {
		name := shown(f.Path)
		if r.seen[name] {
			continue
		}
		if err := r.admit(name, int64(len(f.Data))); err != nil {
			return err
		}
		r.seen[name] = true
		r.add(name, f.Data)
	}
	r.skipped = append(r.skipped, part.Skipped...)
	return nil
}

// resolve finds the commit of the revision.
func (r *revisionReader) resolve(repository *git.Repository) (plumbing.Hash, error) {
	hash, err := repository.ResolveRevision(plumbing.Revision(r.revision))
	if err == nil {
		return *hash, nil
	}
	next := "see `git branch -a` for the ones that there are"
	if remote, branch, ok := strings.Cut(r.revision, "/"); ok {
		next = fmt.Sprintf("fetch it first, with `git fetch %s %s`; a CI system often fetches one commit only, so ask it for the whole history (fetch-depth: 0)", remote, branch)
	}
	return plumbing.ZeroHash, &failure{
		why: "the repository does not know it", next: next, kinds: []error{ErrBranchGone},
	}
}

// openAround opens the repository that a path lies in, and says where in it.
func openAround(given string) (*git.Repository, string, error) {
	path, err := realPath(given)
	if err != nil {
		return nil, "", unreadable(err)
	}
	repository, err := git.PlainOpenWithOptions(nearest(path), &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if err != nil {
		return nil, "", notFound(given+" is in no Git repository ("+oneLine(err.Error())+")", "give a path in a clone")
	}
	tree, err := repository.Worktree()
	if err != nil {
		return nil, "", notFound(given+" is in a bare repository", "give a path in a clone with files")
	}
	root, err := realPath(tree.Filesystem.Root())
	if err != nil {
		return nil, "", unreadable(err)
	}
	inside, err := filepath.Rel(root, path)
	if err != nil || strings.HasPrefix(inside, "..") {
		return nil, "", notFound(given+" is not in the repository at "+root, "give a path in a clone")
	}
	if inside == "." {
		inside = ""
	}
	return repository, filepath.ToSlash(inside), nil
}

// realPath is an absolute path with its links followed, as far as it exists.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	there := nearest(path)
	resolved, err := filepath.EvalSymlinks(there)
	if err != nil {
		return "", err
	}
	return filepath.Join(resolved, strings.TrimPrefix(path, there)), nil
}

// nearest is the path itself, or the nearest directory above it that exists: a
// change may have removed the path.
func nearest(path string) string {
	for {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return path
		}
		if parent := filepath.Dir(path); parent != path {
			path = parent
			continue
		}
		return path
	}
}

// readAt reads a directory of a commit, or the one file that stands there.
func readAt(ctx context.Context, objs objects, head plumbing.Hash, inside string, limits Limits) (Snapshot, error) {
	r := &treeReader{objects: objs, collector: collector{limits: limits}}
	commit, err := r.commit(head)
	if err != nil {
		return Snapshot{}, err
	}
	dir, name := "", inside
	if i := strings.LastIndexByte(inside, '/'); i >= 0 {
		dir, name = inside[:i], inside[i+1:]
	}
	if inside == "" {
		return readCommit(ctx, objs, head, "", limits)
	}
	parent, err := r.descend(commit, dir)
	if err != nil {
		return Snapshot{}, err
	}
	entry := find(parent, name)
	if entry == nil || entry.Mode == filemode.Dir {
		return readCommit(ctx, objs, head, inside, limits)
	}
	return r.one(commit, parent, *entry, inside)
}

// one reads a single file.
func (r *treeReader) one(commit *object.Commit, parent *object.Tree, entry object.TreeEntry, name string) (Snapshot, error) {
	if entry.Mode.IsFile() && entry.Mode != filemode.Symlink && isYAML(name) {
		if err := r.file(name, entry.Hash); err != nil {
			return Snapshot{}, err
		}
	}
	return r.snapshot(commit, parent), nil
}
