package sources

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Snapshot is what one commit says under the watched path. The repository keeps
// and returns it again while the commit stays the head, so it must not be
// changed by its readers.
type Snapshot struct {
	// Commit is the full hash of the commit; empty for local files.
	Commit string
	// Tree is the hash of the directory at the watched path. It changes only
	// when something under the path does, whatever is committed elsewhere.
	// Empty for local files.
	Tree string
	// Subject is the first line of the commit message.
	Subject string
	// Author wrote the change, as "Name <address>".
	Author string
	// Signer is the key whose signature of the commit was verified, and whose that is
	// as far as Signers say; "" where none was wanted, or the commit was accepted without.
	Signer string `json:",omitempty"`
	// Tag is the tag that named the commit; none where a branch or a commit is followed.
	Tag Tag `json:",omitzero"`
	// When is the time of the commit, by its committer's clock.
	When time.Time
	// Files are the regular .yaml and .yml files, ordered by path.
	Files []File
	// Skipped are the entries which were deliberately not read, each as
	// "path: reason", ordered by path.
	Skipped []string
}

// WithoutFiles is what it says of the commit alone; its Tree is empty.
func (s Snapshot) WithoutFiles() Snapshot {
	s.Tree, s.Files, s.Skipped = "", nil, nil
	return s
}

// File is one file and all of its content.
type File struct {
	// Path is separated by slashes. It is relative to the root of the
	// repository, or for local files begins with the path that was asked for.
	Path string
	// Data is the content, at most Limits.FileBytes long.
	Data []byte
	// Unread is why the file was not read, for people: it is larger than that. Then there
	// is no Data, which says nothing of what the file declares. "" of one that was read.
	Unread string `json:",omitempty"`
}

// isYAML reports whether a name is one of those that are read.
func isYAML(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// collector gathers files and refuses whatever would pass the limits. It is the
// one place where both kinds of source are counted.
type collector struct {
	limits  Limits
	files   []File
	skipped []string
	bytes   int64
	entries int
}

// visit counts one directory entry, wanted or not: without it, a few small trees
// that contain one another many times over would be walked without an end.
func (c *collector) visit(name string, depth int) error {
	c.entries++
	if c.entries > c.limits.Objects {
		return tooLarge("there are more than %d files and directories", c.limits.Objects)
	}
	if depth > maxDepth {
		return tooLarge("%.80q… is nested more than %d directories deep", name, maxDepth)
	}
	return nil
}

// admit decides, before a file is read, whether it leaves all of them within the
// limits. One that is too large by itself is not read, and is no reason to refuse the
// others.
func (c *collector) admit(name string, size int64) (read bool, err error) {
	switch {
	case len(c.files) >= c.limits.Files:
		return false, tooLarge("there are more than %d YAML files", c.limits.Files)
	case size > c.limits.FileBytes:
		c.add(File{Path: name, Unread: fmt.Sprintf(
			"the file has more than %d bytes, the most that is read: split it, or leave it out with --ignore or by naming other paths", c.limits.FileBytes)})
		return false, nil
	case c.bytes+size > c.limits.TotalBytes:
		return false, tooLarge("the YAML files have more than %d bytes together", c.limits.TotalBytes)
	}
	return true, nil
}

func (c *collector) add(f File) {
	c.bytes += int64(len(f.Data))
	c.files = append(c.files, f)
}

func (c *collector) skip(name, reason string) {
	c.skipped = append(c.skipped, name+": "+reason)
}

// sorted orders by path, because a crafted tree need not be in order.
func (c *collector) sorted() ([]File, []string) {
	slices.SortFunc(c.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(c.skipped)
	return c.files, c.skipped
}
