package sources

import (
	"fmt"
	"io/fs"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// built are files as Git's objects.
type built struct {
	root   plumbing.Hash
	stored *memory.Storage
	// order is files first, then directories, the root last.
	order []plumbing.Hash
	has   map[plumbing.Hash]bool
}

// directory is one that is about to become a tree.
type directory struct {
	files map[string]plumbing.Hash
	below map[string]*directory
}

func newDirectory() *directory {
	return &directory{files: map[string]plumbing.Hash{}, below: map[string]*directory{}}
}

// buildTree makes Git's objects of files.
func buildTree(files []File) (*built, error) {
	b := &built{stored: memory.NewStorage(), has: map[plumbing.Hash]bool{}}
	root := newDirectory()
	for _, f := range files {
		if !fs.ValidPath(f.Path) || f.Path == "." || strings.Contains("/"+strings.ToLower(f.Path)+"/", "/.git/") {
			return nil, fmt.Errorf("%q is no path of a file", f.Path)
		}
		hash, err := b.put(plumbing.BlobObject, f.Data)
		if err != nil {
			return nil, err
		}
		if err := root.add(f.Path, hash); err != nil {
			return nil, err
		}
	}
	var err error
	b.root, err = b.tree(root)
	return b, err
}

func (d *directory) add(path string, hash plumbing.Hash) error {
	name, rest, more := strings.Cut(path, "/")
	if !more {
		if _, twice := d.files[name]; twice || d.below[name] != nil {
			return fmt.Errorf("there are two files %q", name)
		}
		d.files[name] = hash
		return nil
	}
	if _, file := d.files[name]; file {
		return fmt.Errorf("%q is a file and a directory", name)
	}
	if d.below[name] == nil {
		d.below[name] = newDirectory()
	}
	return d.below[name].add(rest, hash)
}

func (b *built) tree(d *directory) (plumbing.Hash, error) {
	t := &object.Tree{}
	for name, hash := range d.files {
		t.Entries = append(t.Entries, object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: hash})
	}
	for name, below := range d.below {
		hash, err := b.tree(below)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		t.Entries = append(t.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: hash})
	}
	sort.Sort(object.TreeEntrySorter(t.Entries))
	return b.store(t)
}

// put stores a file.
func (b *built) put(kind plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	if _, err := o.Write(data); err != nil {
		return plumbing.ZeroHash, err
	}
	return b.keep(o)
}

// encoder is a directory or a commit.
type encoder interface {
	Encode(o plumbing.EncodedObject) error
}

func (b *built) store(thing encoder) (plumbing.Hash, error) {
	o := &plumbing.MemoryObject{}
	if err := thing.Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	return b.keep(o)
}

func (b *built) keep(o plumbing.EncodedObject) (plumbing.Hash, error) {
	hash, err := b.stored.SetEncodedObject(o)
	if err == nil && !b.has[hash] && o.Type() != plumbing.CommitObject {
		b.has[hash] = true
		b.order = append(b.order, hash)
	}
	return hash, err
}

// without are the objects that the repository has not yet.
func (b *built) without(there map[plumbing.Hash]bool) []plumbing.Hash {
	var missing []plumbing.Hash
	for _, hash := range b.order {
		if !there[hash] {
			missing = append(missing, hash)
		}
	}
	return missing
}
