package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// treeReader reads the files of a commit out of Git's objects.
type treeReader struct {
	objects objects
	place   place
	// before is what was read of an earlier commit, and next what is read of this one.
	before, next known
	collector
}

// known is what was read of one commit, by what Git names it by, which is its content: what has the
// same name in another commit is the same. It is not changed once that is done.
type known struct {
	commit plumbing.Hash
	trees  map[plumbing.Hash]*object.Tree
	files  map[plumbing.Hash]content
}

// content is that of a file; of one that is too large to be read, its size, or what stands for it.
type content struct {
	size int64
	data []byte
}

func newTreeReader(objs objects, limits Limits) *treeReader {
	return readerAfter(objs, limits, known{})
}

// readerAfter is newTreeReader where objs need not have what is known of an earlier commit. A commit has about as many
// files as the one before.
func readerAfter(objs objects, limits Limits, before known) *treeReader {
	next := known{
		trees: make(map[plumbing.Hash]*object.Tree, len(before.trees)), files: make(map[plumbing.Hash]content, len(before.files)),
	}
	files := make([]File, 0, len(before.files))
	return &treeReader{objects: objs, before: before, next: next, collector: collector{limits: limits, files: files}}
}

// place is a directory of a repository, "" for all of it, and which of its files
// are read.
type place struct {
	dir    string
	choice patterns
}

func (p place) has(name string) bool {
	return p.choice.choose(strings.TrimPrefix(strings.TrimPrefix(name, p.dir), "/"))
}

// readCommit reads what a commit says at a place.
func readCommit(ctx context.Context, objs objects, head plumbing.Hash, at place, limits Limits) (Snapshot, error) {
	snapshot, _, err := readAfter(ctx, objs, head, at, limits, known{})
	return snapshot, err
}

// readAfter is readCommit where objs need not have what is known of an earlier commit. It returns what is
// known of this one.
func readAfter(ctx context.Context, objs objects, head plumbing.Hash, at place, limits Limits, before known) (Snapshot, known, error) {
	r := readerAfter(objs, limits, before)
	r.place, r.next.commit = at, head
	commit, err := r.commit(head)
	if err != nil {
		return Snapshot{}, known{}, err
	}
	tree, err := r.descend(commit, at.dir)
	if err != nil {
		return Snapshot{}, known{}, err
	}
	if err := r.walk(ctx, tree, at.dir, 0); err != nil {
		return Snapshot{}, known{}, err
	}
	return r.snapshot(commit, tree), r.next, nil
}

func (r *treeReader) snapshot(commit *object.Commit, tree *object.Tree) Snapshot {
	head := headOf(commit)
	files, skipped := r.sorted()
	return Snapshot{
		Commit:  head.Commit,
		Tree:    tree.Hash.String(),
		Subject: head.Subject,
		Author:  head.Author,
		When:    head.When,
		Files:   files,
		Skipped: skipped,
	}
}

// headOf is what a commit says of itself.
func headOf(commit *object.Commit) Head {
	subject, _, _ := strings.Cut(strings.TrimLeft(commit.Message, "\n"), "\n")
	return Head{
		Commit:  commit.Hash.String(),
		Subject: strings.ToValidUTF8(strings.TrimSpace(subject), "?"),
		Author:  strings.ToValidUTF8(commit.Author.String(), "?"),
		When:    commit.Committer.When,
	}
}

func (r *treeReader) commit(hash plumbing.Hash) (*object.Commit, error) {
	what := "commit " + hash.String()
	if err := r.checkSize(what, hash, r.limits.FileBytes); err != nil {
		return nil, err
	}
	commit, err := object.GetCommit(r.objects, hash)
	if err != nil {
		return nil, damaged(what, err)
	}
	return commit, nil
}

func (r *treeReader) tree(hash plumbing.Hash) (*object.Tree, error) {
	if tree := r.before.trees[hash]; tree != nil {
		r.next.trees[hash] = tree
		return tree, nil
	}
	what := "tree " + hash.String()
	if err := r.checkSize(what, hash, r.limits.TotalBytes); err != nil {
		return nil, err
	}
	tree, err := object.GetTree(r.objects, hash)
	if err != nil {
		return nil, damaged(what, err)
	}
	alone := &object.Tree{Entries: tree.Entries, Hash: tree.Hash} // keeps no objects
	r.next.trees[hash] = alone
	return alone, nil
}

// checkSize asks for the size of an object that is no file, before it is read.
func (r *treeReader) checkSize(what string, hash plumbing.Hash, most int64) error {
	size, err := r.objects.EncodedObjectSize(hash)
	if err != nil {
		return damaged(what, err)
	}
	if size > most {
		return tooLarge("%s has %d bytes and at most %d are read", what, size, most)
	}
	return nil
}

// descend goes from the root of a commit to the watched directory.
func (r *treeReader) descend(commit *object.Commit, dir string) (*object.Tree, error) {
	tree, err := r.tree(commit.TreeHash)
	if err != nil || dir == "" {
		return tree, err
	}
	for name := range strings.SplitSeq(dir, "/") {
		entry := find(tree, name)
		if entry == nil {
			return nil, pathGone("path %s does not exist in commit %s", dir, commit.Hash)
		}
		if entry.Mode != filemode.Dir {
			return nil, pathGone("%s in path %s is %s and not a directory in commit %s",
				name, dir, kind(entry.Mode), commit.Hash)
		}
		if tree, err = r.tree(entry.Hash); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

func find(tree *object.Tree, name string) *object.TreeEntry {
	for i := range tree.Entries {
		if tree.Entries[i].Name == name {
			return &tree.Entries[i]
		}
	}
	return nil
}

func kind(mode filemode.FileMode) string {
	switch mode {
	case filemode.Symlink:
		return "a symbolic link"
	case filemode.Submodule:
		return "a submodule"
	}
	return "a file"
}

// walk reads a directory and all below it.
func (r *treeReader) walk(ctx context.Context, tree *object.Tree, dir string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, entry := range tree.Entries {
		name := entry.Name
		if dir != "" {
			name = dir + "/" + name
		}
		if err := r.visit(name, depth); err != nil {
			return err
		}
		if err := r.enter(ctx, entry, name, depth); err != nil {
			return err
		}
	}
	return nil
}

// enter reads one entry of a directory, or says why it is left.
func (r *treeReader) enter(ctx context.Context, entry object.TreeEntry, name string, depth int) error {
	switch {
	case !fs.ValidPath(name):
		r.skip(fmt.Sprintf("%q", name), "not a valid path")
	case entry.Mode == filemode.Symlink:
		r.skip(name, reasonSymlink)
	case entry.Mode == filemode.Submodule:
		r.skip(name, "submodule, which is never followed")
	case entry.Mode == filemode.Dir:
		tree, err := r.tree(entry.Hash)
		if err != nil {
			return err
		}
		return r.walk(ctx, tree, name, depth+1)
	case isYAML(name) && r.place.has(name):
		return r.file(name, entry.Hash)
	}
	return nil
}

func (r *treeReader) file(name string, hash plumbing.Hash) error {
	c, there := r.before.files[hash]
	if !there {
		size, err := r.objects.EncodedObjectSize(hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) && r.objects.withoutLarge {
			size, err = r.limits.FileBytes+1, nil // or more: it was left out for its size
		}
		if err != nil {
			return damaged("file "+name, err)
		}
		c.size = size
	}
	read, err := r.admit(name, c.size)
	if err != nil {
		return err
	}
	if read && !there {
		if c.data, err = r.blob(hash, c.size); err != nil {
			return damaged("file "+name, err)
		}
	}
	r.next.files[hash] = c
	if read {
		r.add(File{Path: name, Data: c.data})
	}
	return nil
}

func (r *treeReader) blob(hash plumbing.Hash, size int64) ([]byte, error) {
	blob, err := r.objects.EncodedObject(plumbing.BlobObject, hash)
	if err != nil {
		return nil, err
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	data := make([]byte, size)
	_, err = io.ReadFull(reader, data)
	return data, err
}
